// Scatters of local Fisher discriminant analysis (Sugiyama 2007), from locally scaled affinities
// between the rows of a class (Zelnik-Manor and Perona 2004).
//
//   sigma_i  = distance of row i to the k-th nearest other row of its class
//   A_ij     = exp(-|x_i - x_j|^2 / (sigma_i sigma_j)) for rows of one class, A_ii = 0
//   L_c      = diag(A_c 1) - A_c
//   sums[s]  = sum_c X_c^T (laplacian[s, c] L_c + plain[s, c] I) X_c
//
// In a class of at most k rows, k is the number of other rows. Rows with sigma^2 at most
// 4 d eps |x_i|^2, the rounding error of distances, have affinity 0 to all others; these are rows
// with k or more duplicates. The error of A_ij is at most eps (c / (sigma_i sigma_j) + 8) with
// c = (d + 4) (|x_i| + |x_j|)^2, so that callers should subtract the mean of each class from its
// rows.
//
// All numbers are double: squared distances are differences of inner products, in which float would
// lose the distances between near rows. Threads: over blocks of 128 rows; results are bit-for-bit
// identical for any number of threads. Cost for a class of n_c rows with more than 64 columns:
// n_c^2 d flops for distances, n_c^2 / 2 exponentials, 2 n_c^2 d flops for A X, and 2 n d^2 flops
// for each sum. The matrices A of classes are stored, at most 32 MiB of them at a time. For classes
// of more than 2,048 rows, and with at most 64 columns, only a block of A for each thread is stored:
// 3 n_c^2 d flops for distances, n_c^2 d for A X, and 4 n d^2 for each sum. Further memory: 3 n d
// numbers for copies of the rows and L X, 40 n for degrees, and k for each row of the block of a
// thread.
#pragma once

#include "eigenfeat/status.hpp"
#include "eigenfeat/view.hpp"

namespace eigenfeat {

struct AffinityRows {
  MatrixView<const double> rows;     // (n, d) row-major, sorted by class
  VectorView<const index_t> counts;  // number of rows of each class, in order
  index_t n_neighbors = 0;           // k, at least 1
};

// laplacian, plain: (n_sums, n_classes); sums: n_sums (d, d) matrices, both triangles. Throws
// std::invalid_argument if shapes do not conform, or |x|^2 of a row is not finite.
void affinity_sums(const AffinityRows& rows, MatrixView<const double> laplacian,
                   MatrixView<const double> plain, VectorView<double> sums, int n_threads);

}  // namespace eigenfeat
