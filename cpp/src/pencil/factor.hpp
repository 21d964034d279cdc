// Private to the pencils: one denominator, factorised once for all its items.
//
//   B + diag(shifts) = L L^T
//
// Tiled over our own threads: tiles have fixed sizes, so every thread count gives the same bits.
//
// The Krylov solver applies x -> L^-1 (A (L^-T x)) to narrow blocks, by substitution in blocks of rows:
//
//   y_j = W_jj (x_j - L_j0 y_0 - ... - L_j,j-1 y_j-1),  W_jj = L_jj^-1,
//
// so that all of it is products and only the blocks on the diagonal are inverted. Both L and L^T are read
// by the rows of L^T: a second copy would leave the cache. For it, rows of B
// without an entry beside the diagonal are left out where they are many: L is that of the others, which
// is what Cholesky's method has there in any case.
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
  double norm = 0.0;          // ||B + diag(shifts)||_2, from below, within some per cent
  CompactMatrix<T> compact;   // B, without the rows left out
  Vector<T> compact_shifts;   // of its rows
  AlignedBuffer<T> lower;     // L, column-major: its transpose by rows
  AlignedBuffer<T> inverses;  // W_jj of each block on the diagonal, column-major

  index_t order() const { return compact.order(); }  // of L
  MatrixView<const T> lower_view() const { return column_major(lower.data(), order(), order()); }
};

// Numbers that a factor holds: L, and for solves the inverses and a compact copy of B, which the L of a
// whole B is larger than.
index_t factor_numbers(index_t d, bool for_solves);

// Factorises, with what the two solves need on request; status is not_positive_definite where a squared
// pivot is below d eps times its diagonal entry.
template <class T>
void factorise(MatrixView<const T> matrix, VectorView<const T> shifts, bool for_solves,
               int n_threads, Factor<T>& factor);

// y <- L^-1 x and y <- L^-T x; blocks as multiply_narrow takes them.
template <class T>
void solve_lower(const Factor<T>& factor, const T* x, index_t width, T* y, int n_threads);
template <class T>
void solve_upper(const Factor<T>& factor, const T* x, index_t width, T* y, int n_threads);

}  // namespace eigenfeat
