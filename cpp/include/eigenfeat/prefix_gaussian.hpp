// Nested conditional Gaussians: the distribution of x ~ N(xbar, Sigma), or of its features y = B^T x,
// given the first t entries of x, for every t from one Cholesky factor.
//
// With Sigma = L L^T in the order of time, the first t innovations e = L^-1 (x - xbar) depend on the
// first t entries only, and
//
//   E[x | x_1..t] = xbar + L[:, :t] e[:t],   Cov = L[:, t:] L[:, t:]^T          (Parrish 2012, 5.19)
//   E[y | x_1..t] = B^T xbar + sum_{s<t} K_s e_s,   Cov = sum_{s>=t} K_s K_s^T,   K = B^T L,
//   log p(x_1..t) = sum_{s<t} (-e_s^2 / 2 - log L_ss) - t/2 log 2 pi.
//
// A further entry costs O(t + ell) for each row. Covariances are suffix sums and do not depend on the
// row. If entries other than the last ones are missing, the known entries are a prefix of a permuted
// Sigma. Without features, K = L and ell = d. Gains are stored step by step: (d, ell), row s is K_s.
//
// Sums have nonnegative terms (covariances) or run over steps in order: cancellation does not
// accumulate, and results are bit-for-bit identical for any number of threads. Numbers are double;
// entries after the first t are not read and may be NaN. Misuse throws std::invalid_argument.
#pragma once

#include "eigenfeat/status.hpp"
#include "eigenfeat/view.hpp"

namespace eigenfeat {

// factor (d, d) row-major <- L, zeros above its diagonal. d^3 / 3 flops.
Status factorise_covariance(MatrixView<const double> covariance, MatrixView<double> factor);

// gains (d, ell) <- L^T B, B (d, ell) row-major. d^2 ell flops.
void prefix_gains(MatrixView<const double> factor, MatrixView<const double> features,
                  MatrixView<double> gains, int n_threads);

// innovations (n, t) of the rows' first t = innovations.cols entries. n t^2 flops.
void prefix_innovations(MatrixView<const double> factor, VectorView<const double> mean,
                        MatrixView<const double> rows, MatrixView<double> innovations,
                        int n_threads);

// out (n, p, ell), flat: feature means after steps[0] < ... < steps[p - 1] entries, each at most
// innovations.cols. mean: (ell,), feature means without entries. n t ell flops.
void prefix_means(MatrixView<const double> gains, VectorView<const double> mean,
                  MatrixView<const double> innovations, VectorView<const index_t> steps,
                  VectorView<double> out, int n_threads);

// out (n, p): log p(x_1..t) for t in steps.
void prefix_log_densities(MatrixView<const double> factor, MatrixView<const double> innovations,
                          VectorView<const index_t> steps, MatrixView<double> out, int n_threads);

// out (p, ell, ell), flat. d ell^2 flops.
void prefix_covariances(MatrixView<const double> gains, VectorView<const index_t> steps,
                        VectorView<double> out, int n_threads);

// out (p, ell): diagonals of the covariances. d ell flops.
void prefix_variances(MatrixView<const double> gains, VectorView<const index_t> steps,
                      MatrixView<double> out);

}  // namespace eigenfeat
