// Private to the training: products of row-major matrices, by tiles that threads share.
#pragma once

#include <algorithm>

#include "eigenfeat/lapack.hpp"
#include "eigenfeat/parallel.hpp"

namespace eigenfeat {

// C <- op(A) op(B) + beta C, all row-major. Tiles are of fixed size: the same bits for any threads.
template <class T>
void row_products(Op op_a, MatrixView<const T> a, Op op_b, MatrixView<const T> b, T beta,
                  MatrixView<T> c, int n_threads) {
  constexpr index_t kRows = 128,
                    kCols = 256;  // four tiles of one step keep two cores as busy as eight
  const index_t inner = op_a == Op::none ? a.cols : a.rows;
  const index_t down = (c.rows + kRows - 1) / kRows, across = (c.cols + kCols - 1) / kCols;
  const double work = 2.0 * static_cast<double>(c.rows) * static_cast<double>(c.cols * inner);
  for_blocks(down * across, threads_for(work, n_threads), [&](index_t tile, int) {
    const index_t i = tile / across * kRows, j = tile % across * kCols;
    const index_t m = std::min(kRows, c.rows - i), n = std::min(kCols, c.cols - j);
    const auto left = op_a == Op::none ? a.block(i, 0, m, inner) : a.block(0, i, inner, m);
    const auto right = op_b == Op::none ? b.block(0, j, inner, n) : b.block(j, 0, n, inner);
    // Columns of LAPACK's are our rows: C^T = op(B)^T op(A)^T.
    gemm<T>(op_b, op_a, T(1), right.transposed(), left.transposed(), beta,
            c.block(i, j, m, n).transposed());
  });
}

}  // namespace eigenfeat
