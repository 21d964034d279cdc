// Private to the pencils: one denominator, factorised once for all its items.
//
//   B + diag(shifts) = L L^T,  W = L^-1 explicitly (for the Krylov operator x -> W (A (W^T x))).
//
// Tiled over our own threads: tiles have fixed sizes, so every thread count gives the same bits.
// Applying the explicit inverse instead of solving loses at most a factor cond(L) eps in the
// operator; the final residuals are computed from A and B themselves.
//
// With an inverse, rows of B without an entry beside the diagonal are left out where they are many:
// L and W are those of the others, which is what Cholesky's method has there in any case.
#pragma once

#include "eigenfeat/scratch.hpp"
#include "eigenfeat/status.hpp"
#include "eigenfeat/vector.hpp"
#include "eigenfeat/view.hpp"
#include "pencil/compact_matrix.hpp"

namespace eigenfeat {

template <class T>
struct Factor {
  MatrixView<const T> matrix;  // B, row-major, without the shifts
  VectorView<const T> shifts;  // (d,), of the caller
  Status status = Status::ok;
  double norm = 0.0;               // ||B + diag(shifts)||_2, from below, within some per cent
  CompactMatrix<T> compact;        // B, without the rows left out
  Vector<T> compact_shifts;        // of its rows
  AlignedBuffer<T> lower;          // L, column-major
  AlignedBuffer<T> inverse_lower;  // W, row-major
  AlignedBuffer<T> inverse_upper;  // W^T, row-major

  index_t order() const { return compact.order(); }  // of L and W
  MatrixView<const T> lower_view() const { return column_major(lower.data(), order(), order()); }
  MatrixView<const T> lower_inverse_view() const {
    return row_major<const T>(inverse_lower.data(), order(), order());
  }
  MatrixView<const T> upper_inverse_view() const {
    return row_major<const T>(inverse_upper.data(), order(), order());
  }
};

// Factorises; status is not_positive_definite where a squared pivot is below d eps times its
// diagonal entry.
template <class T>
void factorise(MatrixView<const T> matrix, VectorView<const T> shifts, bool with_inverse,
               int n_threads, Factor<T>& factor);

}  // namespace eigenfeat
