// Private to local_affinity: L X of every class, where L is the Laplacian of its affinities.
#pragma once

#include <algorithm>

#include "eigenfeat/local_affinity.hpp"
#include "eigenfeat/parallel.hpp"
#include "eigenfeat/scratch.hpp"
#include "eigenfeat/vector.hpp"
#include "kernels/affinity_kernels.hpp"

namespace eigenfeat {

// The rows of a class. Tile t of its affinities has rows [32 t, 32 t + 32) of the class as columns.
struct AffinityClass {
  index_t begin = 0;      // the first row
  index_t count = 0;      // number of rows
  index_t place = 0;      // index of the numbers of the first row, a multiple of a tile
  bool kept = false;      // whether A is stored, tile by tile with all rows
  index_t held = 0;       // index of the stored A
  index_t first_sum = 0;  // index of its column sums, if A is not stored
  index_t n_groups = 0;   // number of groups of column sums
  index_t n_tiles() const { return (count + kTileWidth - 1) / kTileWidth; }
  index_t padded() const { return n_tiles() * kTileWidth; }
};

// A matrix (n, d) in panels of 32 columns, the last one padded to whole lines. A panel is row-major.
class Panels {
 public:
  Panels(index_t n, index_t d);
  index_t count() const { return (d_ + kTileWidth - 1) / kTileWidth; }
  index_t columns(index_t p) const { return std::min(kTileWidth, d_ - p * kTileWidth); }
  index_t width(index_t p) const;
  double* row(index_t p, index_t i) { return numbers_.data() + p * kTileWidth * n_ + i * width(p); }
  const double* row(index_t p, index_t i) const {
    return numbers_.data() + p * kTileWidth * n_ + i * width(p);
  }

 private:
  index_t n_, d_;
  AlignedBuffer<double> numbers_;
};

class LocalLaplacian {
 public:
  LocalLaplacian(const AffinityRows& rows, int n_threads);

  const Vector<AffinityClass>& classes() const { return classes_; }
  const Panels& rows() const { return x_; }
  // L X. If A was not stored, the sums are over j > i only, with half of the degrees; then X^T L X
  // = H + H^T, where H is X^T times this result.
  const Panels& laplacian() const { return z_; }

 private:
  struct Block {  // rows [first, last) of a class
    index_t c = 0, first = 0, last = 0;
    index_t size() const { return last - first; }
    index_t first_tile() const { return first / kTileWidth; }
  };
  struct Group {
    index_t c = 0, g = 0;
  };
  struct Scratch {
    AlignedBuffer<double> tiles, nearest, minima, limits;
    void start();
  };

  void lay_out(VectorView<const index_t> counts);
  void work_on_kept(const Vector<index_t>& wave);
  void work_on_streamed(const Vector<index_t>& classes);
  Vector<Block> blocks_of(const Vector<index_t>& classes) const;
  template <class F>
  void for_each(const Vector<Block>& blocks, F f);

  void pack(const Block& b);
  void multiply(const Block& b, index_t tile, double* out) const;
  void add_products(const Block& b, index_t tile, const double* affinities, index_t panel);
  void start_nearest(const Block& b, Scratch& s) const;
  void look_for_nearest(const Block& b, index_t first, index_t last, const double* dots,
                        index_t stride, Scratch& s) const;
  void set_scales(const Block& b, const Scratch& s);
  void finish(const Block& b);

  void keep_products(const Block& b);
  void mirror(const Block& b);
  void select_kept(const Block& b, Scratch& s);
  void keep_affinities(const Block& b);
  void finish_kept(const Block& b);

  void select_streamed(const Block& b, Scratch& s);
  void stream_group(const Group& group, Scratch& s);
  void stream_affinities(const Block& b, double* column_sums, Scratch& s);
  void finish_streamed(const Block& b);

  const AffinityClass& class_of(const Block& b) const { return classes_[b.c]; }
  double* held(const AffinityClass& c, index_t tile, index_t i) {
    return held_.data() + c.held + (tile * c.count + i) * kTileWidth;
  }
  AffinityNorms norms_of(const AffinityClass& c, index_t i) const {
    return {affinity_norms_.data() + c.place + i, inverse_.data() + c.place + i};
  }
  index_t neighbours(const AffinityClass& c) const { return std::min(n_neighbors_, c.count - 1); }
  index_t columns_of(const AffinityClass& c, index_t tile) const {
    return std::min(kTileWidth, c.count - tile * kTileWidth);
  }

  MatrixView<const double> given_;
  index_t n_neighbors_;
  int n_threads_;
  Vector<AffinityClass> classes_;
  PerThread<Scratch> scratch_;
  Panels x_, z_;
  AlignedBuffer<double> transposed_;  // (d, 32) for every tile of rows
  // For each place: |x|^2, |x|^2 or infinity for affinities, 1 / sigma, degrees.
  AlignedBuffer<double> norms_, affinity_norms_, inverse_, degrees_;
  AlignedBuffer<double> column_sums_;
  AlignedBuffer<double> held_;
};

}  // namespace eigenfeat
