// Private to signals: logarithms of many small symmetric matrices, one in each lane of a vector.
#pragma once

#include "kernels/family.hpp"

namespace eigenfeat {

// Arrays of matrices have shape (rows, columns | 1, lanes), the last column being padding if their
// number is even, and start on a 64-byte boundary. A lane's numbers never meet another's: what comes
// out for a matrix does not depend on its neighbours. Vectors d, e, ... are (n, lanes).
inline constexpr index_t kLogNodes = 4;  // nodes come in such groups

template <class T>
struct LaneLogKernels {
  index_t lanes;  // matrices in a vector
  // out (n, columns, lanes) <- product of a (n, m, lanes) and w (m, columns) row-major, the same w for
  // all, which is 0 in rows from ends[j] on of column j
  void (*multiply)(const T* a, index_t n, index_t m, const T* w, const index_t* ends,
                   index_t columns, T* out);
  // out (n, n, lanes), lower triangle <- a^T w, a (m, n, lanes), w (m, n) likewise
  void (*project)(const T* a, const T* w, const index_t* ends, index_t n, T* out);
  // a (n, n, lanes), lower triangle -> A = Q T Q^T: diagonal d and what is beside it, e (last 0), of T;
  // a <- the reflections of Q, with their betas; work (4 n, lanes)
  void (*reduce)(T* a, index_t n, T* d, T* e, T* betas, T* work);
  // smallest (0 unless T is positive definite) and largest eigenvalue of T, to 1% of themselves;
  // work (n, lanes)
  void (*extremes)(const T* d, const T* e, index_t n, T* work, T* low, T* high);
  // out (n, n, lanes), lower triangle <- sum_j (constant_j - weight_j (T + shift_j)^-1), of `count` nodes,
  // a multiple of kLogNodes, (count, lanes) each; work (2 n kLogNodes, lanes)
  void (*logarithm)(const T* d, const T* e, index_t n, const T* shifts, const T* weights,
                    const T* constants, index_t count, T* out, T* work);
  // out (n, n, lanes), lower triangle <- Q out Q^T; work (8 n, lanes)
  void (*rotate)(const T* a, index_t n, const T* betas, T* out, T* work);
};
EIGENFEAT_FAMILY(LaneLogKernels<float>);
EIGENFEAT_FAMILY(LaneLogKernels<double>);

}  // namespace eigenfeat
