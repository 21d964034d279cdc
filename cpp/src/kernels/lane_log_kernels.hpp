// Private to signals: logarithms of many small symmetric matrices, one in each lane of a vector.
#pragma once

#include "kernels/family.hpp"

namespace eigenfeat {

// Arrays of matrices have shape (rows, columns | 1, lanes), the last column being padding if their
// number is even, and start on a 64-byte boundary. A lane's numbers never meet another's: what comes
// out for a matrix does not depend on its neighbours. Vectors d, e, ... are (n, lanes).
inline constexpr index_t kLogNodes = 4;  // nodes come in such groups

struct LaneLogKernels {
  index_t lanes;  // matrices in a vector
  // out (n, columns, lanes) <- product of a (n, m, lanes) and w (m, columns) row-major, the same w for
  // all, which is 0 in rows from ends[j] on of column j
  void (*multiply)(const double* a, index_t n, index_t m, const double* w, const index_t* ends,
                   index_t columns, double* out);
  // out (n, n, lanes), lower triangle <- a^T w, a (m, n, lanes), w (m, n) likewise
  void (*project)(const double* a, const double* w, const index_t* ends, index_t n, double* out);
  // a (n, n, lanes), lower triangle -> A = Q T Q^T: diagonal d and what is beside it, e (last 0), of T;
  // a <- the reflections of Q, with their betas; work (4 n, lanes)
  void (*reduce)(double* a, index_t n, double* d, double* e, double* betas, double* work);
  // smallest (0 unless T is positive definite) and largest eigenvalue of T, to 1% of themselves;
  // work (n, lanes)
  void (*extremes)(const double* d, const double* e, index_t n, double* work, double* low,
                   double* high);
  // out (n, n, lanes), lower triangle <- sum_j (constant_j - weight_j (T + shift_j)^-1), of `count` nodes,
  // a multiple of kLogNodes, (count, lanes) each; work (2 n kLogNodes, lanes)
  void (*logarithm)(const double* d, const double* e, index_t n, const double* shifts,
                    const double* weights, const double* constants, index_t count, double* out,
                    double* work);
  // out (n, n, lanes), lower triangle <- Q out Q^T; work (8 n, lanes)
  void (*rotate)(const double* a, index_t n, const double* betas, double* out, double* work);
};
EIGENFEAT_FAMILY(LaneLogKernels);

}  // namespace eigenfeat
