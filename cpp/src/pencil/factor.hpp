// Private to the pencils: one denominator, factorised once for all its items.
//
//   B + diag(shifts) = L L^T
//
// Threads: over tiles of fixed size; results are bit-for-bit identical for any number of threads.
//
// The Krylov solver applies x -> L^-1 (A (L^-T x)) to narrow blocks, by substitution in blocks of
// rows:
//
//   y_j = W_jj (x_j - L_j0 y_0 - ... - L_j,j-1 y_j-1),  W_jj = L_jj^-1,
//
// which consists of products, because only the diagonal blocks are inverted. Products with L and
// with L^T both read the rows of L^T, because a second copy would exceed the cache. If many rows of
// B have no off-diagonal entries, the Krylov solver leaves them out; L is then the factor of the
// other rows, whose entries are not affected.
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
  VectorView<const T> shifts;  // (d,), owned by the caller
  Status status = Status::ok;
  double norm = 0.0;          // lower bound of ||B + diag(shifts)||_2, accurate to a few per cent
  CompactMatrix<T> compact;   // B without the rows that are left out
  Vector<T> compact_shifts;   // shifts of the rows of `compact`
  AlignedBuffer<T> lower;     // L, column-major
  AlignedBuffer<T> inverses;  // W_jj of each diagonal block, column-major

  index_t order() const { return compact.order(); }  // order of L
  MatrixView<const T> lower_view() const { return column_major(lower.data(), order(), order()); }
};

// Upper bound of the numbers in a factor: L and, for solves, the inverses and a compact copy of B,
// or the L of the whole B, which is larger.
index_t factor_numbers(index_t d, bool for_solves);

// Factorises, and prepares the solves on request. status is not_positive_definite if a squared
// pivot is below d eps times its diagonal entry.
template <class T>
void factorise(MatrixView<const T> matrix, VectorView<const T> shifts, bool for_solves,
               int n_threads, Factor<T>& factor);

// y <- L^-1 x and y <- L^-T x; blocks are as in multiply_narrow.
template <class T>
void solve_lower(const Factor<T>& factor, const T* x, index_t width, T* y, int n_threads);
template <class T>
void solve_upper(const Factor<T>& factor, const T* x, index_t width, T* y, int n_threads);

}  // namespace eigenfeat
