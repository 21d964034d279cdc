// Multinomial logistic regression on feature rows: loss, energy of the logits and their gradient,
// fused into one pass.
//
//   z_i = W^T phi_i,   p_i = softmax(z_i)
//   loss   = - sum_i w_i log p_i[y_i]
//   energy = sum_i w_i |z_i|^2
//   G = Phi^T R,  R_i = w_i (p_i - e_{y_i} + energy_weight z_i)
//
// so that G is the gradient of loss + energy_weight / 2 energy. Each tile of features is filled once,
// and used for its scores and for its part of the gradient. The Hessian of the loss is at most
// 1/2 Phi^T diag(w) Phi for each of the k columns of W (Boehning 1992). This bound plus a diagonal is
// the Metric below, in which the caller takes steps.
//
// Logits are T; sums over rows are double. Cost: 4 n p k flops. If the logits of a row are not
// finite, the loss is not finite, and the line search of the caller shortens its step.
#pragma once

#include <cstdint>
#include <memory>

#include "eigenfeat/features.hpp"

namespace eigenfeat {

struct LogitTerms {
  double loss = 0.0;
  double energy = 0.0;
};

// labels: n indices in [0, k); weights: n nonnegative numbers or empty; coefficients (p, k) and
// gradient (p, k) row-major.
template <class T>
LogitTerms logit_gradient(const FeatureRows<T>& features, VectorView<const std::int32_t> labels,
                          VectorView<const double> weights, double energy_weight,
                          MatrixView<const double> coefficients, MatrixView<double> gradient,
                          int n_threads);

// H = D^-1 (factor Phi~^T diag(w) Phi~ + diagonal) D^-1 with Phi~ = Phi D, D = diag(scale), in the
// form of its Cholesky factor. Tiles of scaled features are multiplied in float; sums across panels
// are double; the factor is float, one triangle in tiles: 2 p^2 bytes (4 p^2 while it is summed). A
// preconditioner need not be exact: the rows may be a subsample.
// Cost: n p^2 flops for the Gram matrix, p^3 / 3 for the factor, 2 p^2 k for a solve.
class Metric {
 public:
  // How tiles are multiplied: `single` in float, `coarse` in bytes, at up to four times the rate,
  // if the processor has the instructions. `coarse` rounds features to 255 steps of the range of
  // their column (see logit/byte_panel.hpp): the result is the exact Gram matrix of the rounded
  // features, and accurate enough for a preconditioner.
  enum class Products { single, coarse };

  // scale, diagonal: p positive numbers. positive() tells whether the factorisation succeeded; if
  // it failed, solve() must not be called, and the caller raises the diagonal.
  template <class T>
  static std::unique_ptr<Metric> make(const FeatureRows<T>& features,
                                      VectorView<const double> weights,
                                      VectorView<const double> scale,
                                      VectorView<const double> diagonal, double factor,
                                      Products products, int n_threads);
  // H from an (n, n) kernel instead of a (p, p) matrix, for fewer rows than features. The factor
  // takes 4 n^2 bytes, or 2 n^2 bytes in float, with Products::coarse and float features. Every
  // solve reads the features, so that the metric must not outlive their arrays. If entries of the
  // diagonal are below eps_float times the trace of the scaled Gram matrix, rounding can make
  // solves indefinite.
  template <class T>
  static std::unique_ptr<Metric> make_dual(const FeatureRows<T>& features,
                                           VectorView<const double> weights,
                                           VectorView<const double> scale,
                                           VectorView<const double> diagonal, double factor,
                                           Products products, int n_threads);
  // H from a Gram matrix in the packed form of scaled_gram. Memory: 6 p^2 bytes, with the Gram
  // matrix.
  static std::unique_ptr<Metric> from_gram(VectorView<const double> gram,
                                           VectorView<const double> scale,
                                           VectorView<const double> diagonal, double factor,
                                           int n_threads);
  virtual ~Metric() = default;

  virtual bool positive() const = 0;
  virtual index_t order() const = 0;
  // out (p, k) row-major <- H^-1 b
  virtual void solve(MatrixView<const double> b, MatrixView<double> out, int n_threads) const = 0;
};

// Mean over the rows of the squared distance of sqrt(w_i) D phi_i from the span of the other rows:
// the variance of a row given the other rows, 1 / (K^-1)_ii - ridge with K = ridge I + B B^T and
// B = diag(w)^1/2 Phi D (Rasmussen and Williams 2006, 5.12). Infinite if K is not positive
// definite. One thread inverts K: n^2 p + n^3 flops, 12 n^2 bytes.
template <class T>
double mean_residual(const FeatureRows<T>& features, VectorView<const double> weights,
                     VectorView<const double> scale, double ridge, int n_threads);

// kernel (n, n) row-major <- Phi D^2 Phi^T, D = diag(scale). Products are double; with `coarse`
// they are float over 4,096 features, summed in double, at twice the rate. Cost: n^2 p flops;
// panels of 8 n p or 4 n p bytes, at most about 200 MB.
template <class T>
void feature_kernel(const FeatureRows<T>& features, VectorView<const double> scale, bool coarse,
                    MatrixView<double> kernel, int n_threads);

// out (m n, k) row-major: for each of m positive ridges the solution A (n, k) of
// (diag(w) K + ridge I) A = diag(w) Y, with a kernel K (n, n), weights w that are positive or empty
// (all ones) and targets Y (n, k); NaN if rounding makes the matrix indefinite. n^3 / 3 flops for
// each ridge.
void kernel_ridge(MatrixView<const double> kernel, VectorView<const double> weights,
                  MatrixView<const double> targets, VectorView<const double> ridges,
                  MatrixView<double> out, int n_threads);

// gram <- Phi~^T diag(w) Phi~, with products as in Metric: the lower triangle row by row, entry (i,
// j) at i (i + 1) / 2 + j, p (p + 1) / 2 sums in double. The matrices of disjoint sets of rows add
// up to the matrix of their union, which agrees with Metric::make up to the rounding of float
// products.
// Scratch: 4 p^2 bytes.
template <class T>
void scaled_gram(const FeatureRows<T>& features, VectorView<const double> weights,
                 VectorView<const double> scale, Metric::Products products, VectorView<double> gram,
                 int n_threads);

}  // namespace eigenfeat
