// Private to trust_region: eigenvectors of one dense quadratic, and bounds of their rounding errors.
#pragma once

#include "eigenfeat/lapack.hpp"
#include "eigenfeat/scratch.hpp"
#include "eigenfeat/view.hpp"

namespace eigenfeat {

// Eigenvalues of a quadratic, and slopes of its items along the eigenvectors.
class Eigenbasis {
 public:
  // a: (d, d), kept by reference; slopes: (n, d)
  Eigenbasis(MatrixView<const double> a, MatrixView<const double> slopes, int n_threads);

  bool converged = false;
  const double* values() const { return values_.data(); }
  const double* slope(index_t item) const { return slopes_.data() + item * d_; }

  // x <- Q y
  void back(const double* y, double* x) const;

  // Computes what error() needs: two products of matrices.
  void measure();

  // Upper bound, over the ball, of the difference between x^T A x + 2 g^T x and the quadratic with
  // values() and slope() at a point of equal length. length: |g|.
  //
  // Let Q be the computed eigenvectors, L the values, R = A - Q L Q^T, h = |Q^T Q - I|_F and U the
  // orthogonal factor of Q = U H, so that |H - I| <= h. With x = U z, |z| = |x|,
  //   |x^T A x - z^T L z| <= (|R| + (2 h + h^2) max |L|) |x|^2,
  //   |2 g^T x - 2 (Q^T g)^T z| <= 2 h |g| |x|,
  // and the product Q^T g has an error of (d + 8) u sqrt(d (1 + h)) |g|, u = 2^-53. R and h are
  // computed; the rounding error of their products is at most (d + 8) u times
  // | |Q| |L| |Q|^T |_F <= (1 + h) sum |L| and | |Q|^T |Q| |_F <= d (1 + h).
  double error(double length, double radius) const;

 private:
  MatrixView<double> vectors() { return column_major(vectors_.data(), d_, d_); }
  MatrixView<const double> vectors() const { return column_major(vectors_.data(), d_, d_); }

  index_t d_;
  MatrixView<const double> a_;
  int exponent_;
  double curved_, sloped_;  // error = curved_ radius^2 + sloped_ |g| radius
  AlignedBuffer<double> vectors_, values_, slopes_;
};

}  // namespace eigenfeat
