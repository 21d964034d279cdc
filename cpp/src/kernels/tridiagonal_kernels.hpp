// Private to the core: Householder reduction of a symmetric matrix A to a tridiagonal matrix T, and
// kernels for the eigenpairs of T.
//
// LAPACK's sytrd multiplies by the trailing matrix in one pass and updates it in another. Here one
// pass applies the update of the previous step (A -= v w^T + w v^T) and multiplies by the next
// vector while the entries are in registers: 4/3 d^3 flops, as in sytrd, with half of the memory
// traffic.
//
// Eigenvalues and vectors of T are computed for many shifts at a time, one in each lane, because a
// recurrence along T is a chain of dependent operations.
#pragma once

#include "kernels/family.hpp"

namespace eigenfeat {

inline constexpr index_t kFactorLines = 5;  // lines of a row of the factorised T - shift

struct TridiagonalKernels {
  // Q^T A Q = T, with order = d rounded up to whole lines. scratch: 4 order numbers. a: (order,
  // order), column-major, on a 64-byte boundary, with magnitudes at most 1. The lower triangle and
  // the whole lines that cross the diagonal are read; entries after row and column d must be zero.
  // On return, diagonal (d) and off (d - 1) have T, and column i of `a` from row i + 2 on,
  // with tau (d - 1), has the reflections, as in sytrd: Q = H_0 H_1 ..., H_i = I - tau_i v v^T,
  // v_(i+1) = 1.
  void (*reduce)(double* a, index_t d, double* diagonal, double* off, double* tau, double* scratch);

  // below[s]: number of eigenvalues of T less than shifts[s], from the signs of the leading principal
  // minors of T - shift, a Sturm sequence. n_shifts is a multiple of a line. squares: squares of
  // `off`, at least 1e-40. ||T|| <= 1.
  void (*count_below)(const double* diagonal, const double* squares, index_t d,
                      const double* shifts, index_t n_shifts, double* below);

  // P L U = T - shift by Gaussian elimination with partial pivoting, for a line of shifts. Pivots
  // smaller than `least` are replaced by `least`. factors: d kFactorLines lines.
  void (*factorise)(const double* diagonal, const double* off, index_t d, double least,
                    const double* shifts, double* factors);
  // x (d lines) <- U^-1 x or, if `all`, (P L U)^-1 x, each lane scaled to length 1.
  void (*solve)(const double* factors, index_t d, bool all, double* x);

  // x (d lines) <- Q x, with Q from `reduce`.
  void (*reflect)(const double* a, index_t d, const double* tau, double* x);
};
EIGENFEAT_FAMILY(TridiagonalKernels);

}  // namespace eigenfeat
