#include "base/tiled_lower.hpp"

#include <cmath>

#include "base/tile_products.hpp"
#include "eigenfeat/lapack.hpp"
#include "eigenfeat/parallel.hpp"

namespace eigenfeat {

TileIndex lower_tile(index_t b) {
  index_t i = static_cast<index_t>((std::sqrt(8.0 * static_cast<double>(b) + 1.0) - 1.0) / 2.0);
  while (i * (i + 1) / 2 > b) --i;
  while ((i + 1) * (i + 2) / 2 <= b) ++i;
  return {i, b - i * (i + 1) / 2};
}

namespace {

// Implementations of LAPACK differ in whether a NaN pivot is an error.
template <class T>
bool factorise_tile(MatrixView<T> tile) {
  if (potrf(Triangle::lower, tile) != 0) return false;
  for (index_t i = 0; i < tile.rows; ++i) {
    if (!std::isfinite(tile(i, i))) return false;
  }
  return true;
}

}  // namespace

// Right-looking: factorise the diagonal tile, solve the panel below it, update the trailing matrix.
template <class T>
bool factorise_tiles(TiledLower<T>& a, int n_threads) {
  const index_t tiles = a.tiles();
  for (index_t k = 0; k < tiles; ++k) {
    if (!factorise_tile(a.tile(k, k))) return false;
    const index_t rest = tiles - k - 1;
    for_blocks(rest, n_threads, [&](index_t b, int) {
      trsm<T>(Side::right, Triangle::lower, Op::transpose, T(1), a.tile(k, k),
              a.tile(k + 1 + b, k));
    });
    for_blocks(rest * (rest + 1) / 2, n_threads, [&](index_t b, int) {
      const TileIndex at = lower_tile(b);
      const index_t i = k + 1 + at.i, j = k + 1 + at.j;
      if (i == j) {
        syrk<T>(Triangle::lower, Op::none, T(-1), a.tile(i, k), T(1), a.tile(i, i));
      } else {
        gemm<T>(Op::none, Op::transpose, T(-1), a.tile(i, k), a.tile(j, k), T(1), a.tile(i, j));
      }
    });
  }
  return true;
}

template <class T>
void invert_diagonal_tiles(TiledLower<T>& factor) {
  for (index_t i = 0; i < factor.tiles(); ++i) {
    const MatrixView<T> tile = factor.tile(i, i);
    for (index_t c = 0; c < tile.cols; ++c) std::fill(tile.col(c), tile.col(c) + c, T(0));
    trtri<T>(Triangle::lower, tile);
  }
}

namespace {

// A column-major tile L (m, n) is L^T (n, m) in row-major order.
template <class T>
MatrixView<const T> rows_of(const TiledLower<T>& factor, index_t i, index_t j) {
  return factor.tile(i, j).transposed();
}

// x <- L^-1 x
template <class T>
void forward(const TiledLower<T>& factor, T* x, index_t width, index_t used, int n_threads,
             T* negative) {
  constexpr index_t tile = TiledLower<T>::kTile;
  for (index_t j = 0; j < factor.tiles(); ++j) {
    T* at = x + j * tile * width;
    const index_t size = factor.size(j) * width;
    std::copy(at, at + size, negative);
    std::fill(at, at + size, T(0));
    add_products<T>(rows_of(factor, j, j), negative, width, used, at);
    for (index_t i = 0; i < size; ++i) negative[i] = -at[i];
    for_blocks(factor.tiles() - j - 1, n_threads, [&](index_t b, int) {
      const index_t i = j + 1 + b;
      add_products<T>(rows_of(factor, i, j), negative, width, used, x + i * tile * width);
    });
  }
}

// x <- L^-T x
template <class T>
void backward(const TiledLower<T>& factor, T* x, index_t width, index_t used, int n_threads,
              T* negative) {
  constexpr index_t tile = TiledLower<T>::kTile;
  for (index_t j = factor.tiles() - 1; j >= 0; --j) {
    T* at = x + j * tile * width;
    const index_t size = factor.size(j) * width;
    std::copy(at, at + size, negative);
    std::fill(at, at + size, T(0));
    add_scores<T>(rows_of(factor, j, j), negative, width, used, at);
    for (index_t i = 0; i < size; ++i) negative[i] = -at[i];
    for_blocks(j, n_threads, [&](index_t i, int) {
      add_scores<T>(rows_of(factor, j, i), negative, width, used, x + i * tile * width);
    });
  }
}

}  // namespace

template <class T>
void solve_tiles(const TiledLower<T>& factor, T* x, index_t width, index_t used, int n_threads) {
  AlignedBuffer<T> negative(std::max<index_t>(TiledLower<T>::kTile * width, 1));
  forward(factor, x, width, used, n_threads, negative.data());
  backward(factor, x, width, used, n_threads, negative.data());
}

template void invert_diagonal_tiles<float>(TiledLower<float>&);
template void invert_diagonal_tiles<double>(TiledLower<double>&);
template void solve_tiles<float>(const TiledLower<float>&, float*, index_t, index_t, int);
template void solve_tiles<double>(const TiledLower<double>&, double*, index_t, index_t, int);
template bool factorise_tiles<float>(TiledLower<float>&, int);
template bool factorise_tiles<double>(TiledLower<double>&, int);

}  // namespace eigenfeat
