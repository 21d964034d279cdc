// Sums of scatters between neighbouring rows of a class, by local scaling (Zelnik-Manor and Perona
// 2004), as local Fisher discriminant analysis needs them (Sugiyama 2007).
//
//   sigma_i  = distance of row i to the k-th nearest other row of its class
//   A_ij     = exp(-|x_i - x_j|^2 / (sigma_i sigma_j)) for rows of a class, A_ii = 0
//   L_c      = diag(A_c 1) - A_c
//   sums[s]  = sum_c X_c^T (laplacian[s, c] L_c + plain[s, c] I) X_c
//
// k is the class's rows less one where it has no more than k. Rows whose sigma^2 is at most
// 4 d eps |x_i|^2, where the rounding of distances lies, have no affinity to others: those with k
// equals or more. Hence A_ij is off by at most eps (c / (sigma_i sigma_j) + 8), c = (d + 4) (|x_i| +
// |x_j|)^2, and rows should be about the mean of their class.
//
// All is double: squared distances are differences of inner products, in which floats would lose
// what tells near rows apart. Threads share blocks of 128 rows; every number of threads gives the
// same bits. Cost a class of n_c rows and more than 64 columns: n_c^2 d flops for distances, n_c^2 /
// 2 exponentials, 2 n_c^2 d for A X; then 2 n d^2 a sum. Its A is kept, but never more than 32 MiB
// of them at a time. Classes of more than 2,048 rows, and narrow ones, keep nothing but a block a
// thread: 3 n_c^2 d for distances, n_c^2 d for A X, 4 n d^2 a sum. Besides: 3 n d numbers for
// copies of the rows and L X, 40 n for degrees, k a row of a thread's block.
#pragma once

#include "eigenfeat/status.hpp"
#include "eigenfeat/view.hpp"

namespace eigenfeat {

struct AffinityRows {
  MatrixView<const double> rows;     // (n, d) row-major, the rows of a class together
  VectorView<const index_t> counts;  // of each class's rows, in order
  index_t n_neighbors = 0;           // k, at least 1
};

// laplacian, plain: (n_sums, n_classes); sums: n_sums (d, d) matrices, both triangles. Throws
// std::invalid_argument where shapes do not conform or a row's |x|^2 is not finite.
void affinity_sums(const AffinityRows& rows, MatrixView<const double> laplacian,
                   MatrixView<const double> plain, VectorView<double> sums, int n_threads);

}  // namespace eigenfeat
