// Private to the training: products of row-major matrices, by tiles in parallel.
#pragma once

#include <algorithm>

#include "eigenfeat/lapack.hpp"
#include "eigenfeat/parallel.hpp"

namespace eigenfeat {

// Largest tile of a product.
struct TileShape {
  index_t rows, cols;
};
// BLAS packs both factors of each tile, which would take a fifth of the time of a product of 250
// rows with tiles of half this height. Two cores are used fully with four tiles.
inline constexpr TileShape kProductTile{256, 256};
// Gradients have a row for each entry of a direction, so that there are many tiles of this size.
inline constexpr TileShape kGradientTile{512, 1024};

// Divides rows or columns into nearly equal parts of at most `most`, multiples of 16.
class EvenParts {
 public:
  EvenParts(index_t all, index_t most) : all_(all) {
    const index_t parts = std::max((all + most - 1) / most, index_t{1});
    size_ = ((all + parts - 1) / parts + 15) / 16 * 16;
  }

  index_t count() const { return (all_ + size_ - 1) / size_; }
  index_t begin(index_t part) const { return part * size_; }
  index_t size(index_t part) const { return std::min(size_, all_ - begin(part)); }

 private:
  index_t all_, size_;
};

// Calls function(i, j, m, n, thread) for tiles of rows [i, i + m) and columns [j, j + n) of a
// product with `inner` terms in each sum. Tiles, and thereby results, do not depend on the number
// of threads.
template <class F>
void for_tiles(index_t rows, index_t cols, index_t inner, TileShape most, int n_threads,
               F&& function) {
  const EvenParts down(rows, most.rows), across(cols, most.cols);
  const double work = 2.0 * static_cast<double>(rows) * static_cast<double>(cols * inner);
  for_blocks(down.count() * across.count(), threads_for(work, n_threads),
             [&](index_t tile, int thread) {
               const index_t i = tile / across.count(), j = tile % across.count();
               function(down.begin(i), across.begin(j), down.size(i), across.size(j), thread);
             });
}

// C <- op(A) op(B) + beta C, all row-major, on the calling thread.
template <class T>
void row_product(Op op_a, MatrixView<const T> a, Op op_b, MatrixView<const T> b, T beta,
                 MatrixView<T> c) {
  // Rows are the columns of BLAS: C^T = op(B)^T op(A)^T.
  gemm<T>(op_b, op_a, T(1), b.transposed(), a.transposed(), beta, c.transposed());
}

// C <- op(A) op(B) + beta C by tiles, in parallel.
template <class T>
void row_products(Op op_a, MatrixView<const T> a, Op op_b, MatrixView<const T> b, T beta,
                  MatrixView<T> c, int n_threads) {
  const index_t inner = op_a == Op::none ? a.cols : a.rows;
  const auto product = [&](index_t i, index_t j, index_t m, index_t n, int) {
    const auto left = op_a == Op::none ? a.block(i, 0, m, inner) : a.block(0, i, inner, m);
    const auto right = op_b == Op::none ? b.block(0, j, inner, n) : b.block(j, 0, n, inner);
    row_product<T>(op_a, left, op_b, right, beta, c.block(i, j, m, n));
  };
  for_tiles(c.rows, c.cols, inner, kProductTile, n_threads, product);
}

}  // namespace eigenfeat
