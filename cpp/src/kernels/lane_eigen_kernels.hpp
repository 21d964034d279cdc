// Private to signals: eigenvectors of many small symmetric matrices, one in each lane of a vector.
#pragma once

#include "kernels/family.hpp"

namespace eigenfeat {

// Arrays of matrices have shape (rows, columns | 1, lanes), the last column being padding if their
// number is even, and start on a 64-byte boundary. A lane's
// numbers never meet another's: what comes out for a matrix does not depend on its neighbours.
inline constexpr index_t kLaneEigenWork = 12;

struct LaneEigenKernels {
  index_t lanes;  // matrices in a vector
  // out (n, columns, lanes) <- product of a (n, m, lanes) and w (m, columns) row-major, the same w for all
  void (*multiply)(const double* a, index_t n, index_t m, const double* w, index_t columns,
                   double* out);
  // out (n, n, lanes), lower triangle <- a^T w, a (m, n, lanes), w (m, n) row-major
  void (*project)(const double* a, index_t m, const double* w, index_t n, double* out);
  // a (n, n, lanes), lower triangle -> A = V diag(values) V^T, a <- V, eigenvectors in columns;
  // values (n, lanes), in no order; work (kLaneEigenWork n, lanes). Bit l of the result: lane l did not converge.
  unsigned (*decompose)(double* a, index_t n, double* values, double* work);
  // out (n, n, lanes), upper triangle <- V diag(weights) V^T; scaled (n, n, lanes) is scratch
  void (*compose)(const double* vectors, const double* weights, index_t n, double* scaled,
                  double* out);
};
EIGENFEAT_FAMILY(LaneEigenKernels);

}  // namespace eigenfeat
