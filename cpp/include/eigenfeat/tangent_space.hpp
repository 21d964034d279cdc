// Covariances in the tangent space of the symmetric positive definite matrices:
//
//   S_i = log(W^T C_i W),   s_i = (upper triangle of S_i, row by row, off-diagonal times sqrt 2),
//
// with a whitening matrix W, such as W = G^(-1/2) for a reference G; |s_i| is then the
// affine-invariant distance between C_i and G. C_i is (d, d), W is (d, r), and s_i has
// r (r + 1) / 2 entries.
//
// Each lane of a vector computes one matrix. Householder reflections reduce A = W^T C W to a
// tridiagonal T, A = Q T Q^T. Then log T = sum_j (w_j / (1 + t_j) - w_j (T + t_j)^-1), the
// Gauss-Legendre rule for log z = int_0^inf (z - 1) / ((1 + t) (z + t)) dt at t = ((1 + x) / (1 -
// x))^p, with 25 nodes for a condition number of 50, and 150 for 10^14; the inverse of a
// tridiagonal matrix takes about 5 r^2 / 4 operations. Finally log A = Q log(T) Q^T. All steps take
// about 6 r^3 flops, a quarter of them for W^T C W, where zeros at the end of the columns of W are
// skipped. The error of S_i is of the order of eps |A| / lambda_min(A), as with LAPACK's syevr.
// If the smallest eigenvalue is below r eps times the largest, the matrix is not positive definite to
// working precision, and s_i is NaN.
//
// Threads: over blocks of matrices of a fixed size. Scratch: about 4 d^2 numbers for each lane and
// thread.
// Misuse throws std::invalid_argument. Source: Barachant et al. 2012, "Multiclass brain-computer
// interface classification by Riemannian geometry"; Higham 2008, "Functions of Matrices", chapter 11.
#pragma once

#include "eigenfeat/status.hpp"
#include "eigenfeat/view.hpp"

namespace eigenfeat {

// matrices: (n, d * d), each symmetric, both triangles; vectors (n, r (r + 1) / 2).
void tangent_vectors(MatrixView<const double> matrices, MatrixView<const double> whitening,
                     MatrixView<double> vectors, int n_threads);

// mean (r (r + 1) / 2) <- sum_i w_i s_i, bit-for-bit identical for any number of threads;
// extremes (n, 2): smallest (0 unless positive definite) and largest eigenvalue of W^T C_i W, with a
// relative error of 1%; status (n,), the Status of each matrix. Matrices are summed in groups
// of as many matrices as a register has lanes. Scratch: one vector s for each group.
void mean_tangent_vector(MatrixView<const double> matrices, VectorView<const double> weights,
                         MatrixView<const double> whitening, VectorView<double> mean,
                         MatrixView<double> extremes, VectorView<int> status, int n_threads);

// C_i = sum_t (x_it - m_i) (x_it - m_i)^T / times of epochs x_i (channels, times) with means m_i,
// both triangles, in float64. epochs: (n, channels * times) row-major; covariances (n, channels^2).
template <class T>
void epoch_covariances(MatrixView<const T> epochs, index_t channels, MatrixView<double> covariances,
                       int n_threads);

}  // namespace eigenfeat
