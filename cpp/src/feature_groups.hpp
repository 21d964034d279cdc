// Private to the linear models: how passes over feature rows are cut, and sums over them merged.
//
// Tiles are some rows, so few that their features stay in the second-level cache; a group is a run
// of tiles with a sum of its own. Both depend on n, p and k alone. Within a group sums are T over at
// most kFlush rows, and double beyond.
#pragma once

#include <algorithm>

#include "eigenfeat/features.hpp"
#include "eigenfeat/parallel.hpp"
#include "eigenfeat/scratch.hpp"
#include "tile_products.hpp"

namespace eigenfeat {

struct Groups {
  index_t n = 0;
  index_t tile = 0;   // rows of a tile
  index_t run = 0;    // tiles of a group
  index_t count = 0;  // groups

  template <class T>
  static Groups of(index_t n, index_t p, index_t k) {
    constexpr index_t most_groups = 64;
    constexpr double tile_bytes = 768e3, sum_bytes = 512e6;
    const double row_bytes = static_cast<double>(std::max<index_t>(p, 1)) * sizeof(T);
    Groups groups;
    groups.n = n;
    const index_t fitting = static_cast<index_t>(tile_bytes / row_bytes) / 12 * 12;
    groups.tile = std::clamp<index_t>(fitting, 24, 240);
    const double per_group = row_bytes * static_cast<double>(std::max<index_t>(k, 1)) * 3.0;
    const index_t affordable =
        std::clamp<index_t>(static_cast<index_t>(sum_bytes / per_group), 2, most_groups);
    const index_t tiles = (n + groups.tile - 1) / groups.tile;
    groups.run = std::max<index_t>((tiles + affordable - 1) / affordable, 1);
    groups.count = (tiles + groups.run - 1) / groups.run;
    return groups;
  }

  template <class F>
  void for_tiles(index_t group, F&& f) const {
    const index_t last = std::min(n, (group + 1) * run * tile);
    for (index_t begin = group * run * tile; begin < last; begin += tile)
      f(begin, std::min(begin + tile, last));
  }
};

// One tile of features, loaded once and used for both products. Sparse features without an
// expansion are used where they stand.
template <class T>
struct LoadedTile {
  const FeatureRows<T>* source = nullptr;
  index_t begin = 0;
  index_t rows = 0;
  bool direct = true;
  MatrixView<const T> tile;

  void load(const FeatureRows<T>& features, index_t first, index_t last, TileScratch<T>& scratch);
  // z (rows, width) <- Phi w, with w (p, width)
  void scores(const T* w, index_t width, T* z) const;
  // g (p, width) += Phi^T residuals
  void products(const T* residuals, index_t width, T* g) const;
};

// Flops of a product with k columns, about.
template <class T>
double product_work(const FeatureRows<T>& features, index_t k) {
  const double n = static_cast<double>(features.rows());
  const double each = 2.0 * static_cast<double>(k) + 4.0;
  double work = n * static_cast<double>(features.cols()) * each;
  if (features.expanded && features.projections.data == nullptr)
    work += 2.0 * n * static_cast<double>(features.directions.rows * features.directions.cols);
  return work;
}

// out (rows, width) <- narrow (rows, k), padded with zeros
template <class T, class U>
void copy_padded(MatrixView<const U> narrow, index_t width, T* out) {
  for (index_t i = 0; i < narrow.rows; ++i) {
    T* row = out + i * width;
    for (index_t c = 0; c < narrow.cols; ++c) row[c] = static_cast<T>(narrow(i, c));
    std::fill(row + narrow.cols, row + width, T(0));
  }
}

template <class T>
AlignedBuffer<T> padded(MatrixView<const T> narrow, index_t width) {
  AlignedBuffer<T> out(std::max<index_t>(narrow.rows * width, 1));
  copy_padded(narrow, width, out.data());
  return out;
}

// sum += weight x, square += weight x^2, for n numbers
void add_weighted_squares(const float* x, index_t n, double weight, double* sum, double* square);
void add_weighted_squares(const double* x, index_t n, double weight, double* sum, double* square);
// sum += part; part <- 0
void flush(float* part, index_t n, double* sum);
void flush(double* part, index_t n, double* sum);

// out (p, k) <- sum over tiles of what add(tile, scratch, g) adds to g (p, padded width)
template <class T, class Add>
void sum_over_groups(const FeatureRows<T>& features, index_t k, MatrixView<double> out,
                     int n_threads, Add&& add) {
  constexpr index_t flush_rows = 4096;
  const index_t p = features.cols(), width = padded_width<T>(k), size = p * width;
  const Groups groups = Groups::of<T>(features.rows(), p, k);
  const int threads = threads_for(2.0 * product_work(features, k), n_threads);
  PerThread<TileScratch<T>> scratch(threads);
  PerThread<AlignedBuffer<T>> parts(threads);
  AlignedBuffer<double> sums =
      AlignedBuffer<double>::zeros(std::max<index_t>(groups.count, 1) * size);
  for_blocks(groups.count, threads, [&](index_t group, int thread) {
    if (parts[thread].empty()) parts[thread] = AlignedBuffer<T>::zeros(size);
    T* part = parts[thread].data();
    double* sum = sums.data() + group * size;
    index_t since = 0;
    groups.for_tiles(group, [&](index_t begin, index_t end) {
      LoadedTile<T> tile;
      tile.load(features, begin, end, scratch[thread]);
      add(tile, scratch[thread], part);
      since += end - begin;
      if (since >= flush_rows) {
        flush(part, size, sum);
        since = 0;
      }
    });
    flush(part, size, sum);
  });
  for_ranges(p, 256, threads, [&](index_t begin, index_t end, int) {
    for (index_t i = begin; i < end; ++i) {
      for (index_t c = 0; c < k; ++c) {
        double total = 0.0;
        for (index_t group = 0; group < groups.count; ++group)
          total += sums[group * size + i * width + c];
        out(i, c) = total;
      }
    }
  });
}

}  // namespace eigenfeat
