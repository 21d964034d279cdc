// Private to the core: the lower triangle of a symmetric matrix in square tiles, and its Cholesky
// factor in place.
//
// Tile (i, j), i >= j, is column-major and contiguous. The tiles take about n^2 / 2 numbers, and
// every task works on a few tiles that fit its cache.
#pragma once

#include <algorithm>
#include <cstddef>

#include "eigenfeat/scratch.hpp"
#include "eigenfeat/vector.hpp"
#include "eigenfeat/view.hpp"

namespace eigenfeat {

template <class T>
class TiledLower {
 public:
  static constexpr index_t kTile = 256;  // rows and columns of a tile

  explicit TiledLower(index_t order)
      : order_(order), tiles_((order + kTile - 1) / kTile), buffers_(tiles_ * (tiles_ + 1) / 2) {}

  index_t order() const { return order_; }
  index_t tiles() const { return tiles_; }
  index_t size(index_t i) const { return std::min(kTile, order_ - i * kTile); }
  AlignedBuffer<T>& buffer(index_t i, index_t j) { return buffers_[i * (i + 1) / 2 + j]; }
  const AlignedBuffer<T>& buffer(index_t i, index_t j) const {
    return buffers_[i * (i + 1) / 2 + j];
  }
  MatrixView<T> tile(index_t i, index_t j) {
    return column_major(buffer(i, j).data(), size(i), size(j));
  }
  MatrixView<const T> tile(index_t i, index_t j) const {
    return column_major(buffer(i, j).data(), size(i), size(j));
  }

 private:
  index_t order_ = 0;
  index_t tiles_ = 0;
  Vector<AlignedBuffer<T>> buffers_;
};

struct TileIndex {
  index_t i = 0;
  index_t j = 0;
};
// Tile number b in the order (0, 0), (1, 0), (1, 1), (2, 0), ...
TileIndex lower_tile(index_t b);

// A = L L^T in place, on the core's threads; false if a pivot is not positive and finite.
template <class T>
bool factorise_tiles(TiledLower<T>& a, int n_threads);

// Replaces diagonal tiles of L by their inverses, with zero upper triangles, so that a solve
// consists of products alone.
template <class T>
void invert_diagonal_tiles(TiledLower<T>& factor);

// x <- (L L^T)^-1 x for x (n, width) row-major, after invert_diagonal_tiles; columns from `used` on
// are padding.
template <class T>
void solve_tiles(const TiledLower<T>& factor, T* x, index_t width, index_t used, int n_threads);

}  // namespace eigenfeat
