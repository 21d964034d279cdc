// Private to the pencils: one denominator, factorised once for all its items.
//
//   B + diag(shifts) = L L^T,  W = L^-1 explicitly (for the Krylov operator x -> W (A (W^T x))).
//
// Tiled over our own threads: tiles have fixed sizes, so every thread count gives the same bits.
// Applying the explicit inverse instead of solving loses at most a factor cond(L) eps in the
// operator; the final residuals are computed from A and B themselves.
#pragma once

#include "eigenfeat/scratch.hpp"
#include "eigenfeat/status.hpp"
#include "eigenfeat/view.hpp"

namespace eigenfeat {

template <class T>
struct Factor {
  MatrixView<const T> matrix;  // B, row-major, without the shifts
  VectorView<const T> shifts;  // (d,), of the caller
  Status status = Status::ok;
  double norm = 0.0;               // ||B + diag(shifts)||_2, from below, within some per cent
  AlignedBuffer<T> lower;          // L, column-major
  AlignedBuffer<T> inverse_lower;  // W, row-major
  AlignedBuffer<T> inverse_upper;  // W^T, row-major

  MatrixView<const T> lower_view() const {
    return column_major(lower.data(), matrix.rows, matrix.rows);
  }
};

// Factorises; status is not_positive_definite where a squared pivot is below d eps times its
// diagonal entry.
template <class T>
void factorise(MatrixView<const T> matrix, VectorView<const T> shifts, bool with_inverse,
               int n_threads, Factor<T>& factor);

}  // namespace eigenfeat
