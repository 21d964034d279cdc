// Private to the core: Householder reduction of a symmetric matrix to a tridiagonal one, and what
// eigenpairs of the tridiagonal one need.
//
// LAPACK's sytrd multiplies by the trailing matrix and then updates it, a pass each. Here one pass
// applies the update of the step before (A -= v w^T + w v^T) and multiplies by the next vector while
// the entries are in registers: 4/3 d^3 flops as there, with half of the traffic and no calls.
//
// Eigenvalues and vectors of T are computed for many shifts at a time, one in each lane: recurrences
// along T are chains of dependent operations, which leave room for that.
#pragma once

#include "kernels/family.hpp"

namespace eigenfeat {

inline constexpr index_t kFactorLines = 5;  // of a row of T - shift, factorised

struct TridiagonalKernels {
  // Q^T A Q = T, with order = d rounded up to whole lines. scratch: 4 orders; a: order^2 numbers by columns, on a line's boundary, of magnitude at most
  // 1; the lower triangle, the whole lines that cross the diagonal, and zeros beyond row and column d.
  // On return diagonal (d) and off (d - 1) hold T; column i of `a` from row i + 2 on, and tau (d - 1),
  // the reflections, as sytrd leaves them: Q = H_0 H_1 ..., H_i = I - tau_i v v^T, v_(i+1) = 1.
  void (*reduce)(double* a, index_t d, double* diagonal, double* off, double* tau, double* scratch);

  // below[s]: the number of eigenvalues of T that are less than shifts[s]; n_shifts fills whole
  // lines. Signs of the leading principal minors of T - shift, a Sturm sequence. squares: of `off`;
  // ||T|| <= 1, and no square below 1e-40.
  void (*count_below)(const double* diagonal, const double* squares, index_t d,
                      const double* shifts, index_t n_shifts, double* below);

  // P L U = T - shift by Gaussian elimination with partial pivoting, for a line of shifts. Pivots are
  // at least `least` in magnitude. factors: d kFactorLines lines.
  void (*factorise)(const double* diagonal, const double* off, index_t d, double least,
                    const double* shifts, double* factors);
  // x (d lines) <- U^-1 x or, if all, (P L U)^-1 x, each lane scaled to length 1.
  void (*solve)(const double* factors, index_t d, bool all, double* x);

  // x (d lines) <- Q x, Q as reduce leaves it.
  void (*reflect)(const double* a, index_t d, const double* tau, double* x);
};
EIGENFEAT_FAMILY(TridiagonalKernels);

}  // namespace eigenfeat
