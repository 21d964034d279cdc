// Private to signals: logarithms of many small symmetric matrices, one in each lane of a vector.
#pragma once

#include "kernels/family.hpp"

namespace eigenfeat {

// Arrays of matrices have shape (rows, columns | 1, lanes); an even number of columns has a column of
// padding. They start on a 64-byte boundary. Lanes are independent: the result of a matrix does not
// depend on the matrices in other lanes. Vectors d, e, ... are (n, lanes).
inline constexpr index_t kLogNodes = 4;  // nodes are processed in groups of this size

struct LaneLogKernels {
  index_t lanes;  // matrices in a vector
  // out (n, columns, lanes) <- product of a (n, m, lanes) and w (m, columns), row-major and common
  // to all lanes; column j of w is 0 from row ends[j] on
  void (*multiply)(const double* a, index_t n, index_t m, const double* w, const index_t* ends,
                   index_t columns, double* out);
  // out (n, n, lanes), lower triangle <- a^T w for a (m, n, lanes), and w (m, n) with `ends` as in
  // `multiply`
  void (*project)(const double* a, const double* w, const index_t* ends, index_t n, double* out);
  // a (n, n, lanes), lower triangle, A = Q T Q^T: d <- diagonal of T; e <- off-diagonal entries of
  // T, and 0 at the end; a <- reflections of Q, with their betas; work (4 n, lanes)
  void (*reduce)(double* a, index_t n, double* d, double* e, double* betas, double* work);
  // smallest (0 unless T is positive definite) and largest eigenvalue of T, with a relative error
  // of 1%; work (n, lanes)
  void (*extremes)(const double* d, const double* e, index_t n, double* work, double* low,
                   double* high);
  // out (n, n, lanes), lower triangle <- sum_j (constant_j - weight_j (T + shift_j)^-1). Constants,
  // weights and shifts are (count, lanes), count a multiple of kLogNodes; work (2 n kLogNodes, lanes)
  void (*logarithm)(const double* d, const double* e, index_t n, const double* shifts,
                    const double* weights, const double* constants, index_t count, double* out,
                    double* work);
  // out (n, n, lanes), lower triangle <- Q out Q^T; work (8 n, lanes)
  void (*rotate)(const double* a, index_t n, const double* betas, double* out, double* work);
};
EIGENFEAT_FAMILY(LaneLogKernels);

}  // namespace eigenfeat
