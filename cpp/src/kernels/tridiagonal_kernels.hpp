// Private to trust_region: Householder reduction of a symmetric matrix to a tridiagonal one.
//
// LAPACK's sytrd multiplies by the trailing matrix and then updates it, a pass each. Here one pass
// applies the update of the step before (A -= v w^T + w v^T) and multiplies by the next vector while
// the entries are in registers: 4/3 d^3 flops as there, with half of the traffic and no calls.
#pragma once

#include "kernels/family.hpp"

namespace eigenfeat {

struct TridiagonalKernels {
  // Q^T A Q = T, with order = d rounded up to whole lines. scratch: 4 orders; a: order^2 numbers by columns, on a line's boundary, of magnitude at most
  // 1; the lower triangle, the whole lines that cross the diagonal, and zeros beyond row and column d.
  // On return diagonal (d) and off (d - 1) hold T; column i of `a` from row i + 2 on, and tau (d - 1),
  // the reflections, as sytrd leaves them: Q = H_0 H_1 ..., H_i = I - tau_i v v^T, v_(i+1) = 1.
  void (*reduce)(double* a, index_t d, double* diagonal, double* off, double* tau, double* scratch);
};
EIGENFEAT_FAMILY(TridiagonalKernels);

}  // namespace eigenfeat
