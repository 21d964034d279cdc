// Private to trust_region: bounds of x^T A x + 2 g^T x + c over a ball from a point and a
// multiplier, including all rounding errors. All numbers are scaled (see BallScale).
#pragma once

#include "eigenfeat/trust_region.hpp"
#include "regions/secular.hpp"

namespace eigenfeat {

// Terms of the bounds at a point x and a multiplier mu; lengths are Euclidean.
struct BallTerms {
  double quadratic = 0.0;  // x^T A x
  double linear = 0.0;     // g^T x
  double value = 0.0;      // x^T (A x + 2 g), as one sum
  double magnitude = 0.0;  // sum |x_i| (|(A x)_i| + 2 |g_i|)
  double length = 0.0;     // |x|
  double slope = 0.0;      // |g|
  double size = 0.0;       // |A|_F
  double residual = 0.0;   // |(A + mu I) x + g|
};

// `factor` multiplies the entries of A. For diagonal A, `quadratic` and `linear` are not computed.
BallTerms diagonal_terms(const double* a, const PowerOfTwo& factor, const double* g,
                         const double* x, double mu, index_t d);

// largest: largest magnitude in a. line: d numbers of scratch.
BallTerms dense_terms(MatrixView<const double> a, double largest, const PowerOfTwo& factor,
                      const double* g, const double* x, double mu, double* line);

struct BallBounds {
  double lower, upper;  // bounds of the minimum over the ball
};

// Requires that A + (mu + defect) I is positive semidefinite. With M = A + mu I, r = M x + g and
// any y in the ball,
//
//   q(y) = c + (y - x)^T M (y - x) - x^T M x + 2 r^T y - mu |y|^2
//        >= c + g^T x - r^T x - 2 |r| radius - mu radius^2 - defect (radius + |x|)^2,
//
// because M x = r - g. Upper bounds are q(t x), t = min(1, radius / |x|), and q(0) = c.
// Rounding: with u = 2^-53, the error of a sum of d products, in any order, is at most (d + 4) u
// times the sum of their magnitudes. The error of A x is therefore at most (d + 4) u |A|_F |x|, and
// that of every term above at most share = (d + 64) 2 u times the product of norms that bounds the
// magnitude of the term.
BallBounds bounds_from(const BallTerms& at, double mu, double defect, double radius,
                       double constant, index_t d);

// Converts scaled bounds to original units; bounds that become subnormal are rounded outward.
void bring_back(const BallScale& scale, Certificate& certificate);

// Bounds if the constant exceeds 1e300 times all other terms, so that the constant term dominates.
Certificate beyond_scale(double constant, double uncertainty);

// |g|, or an upper bound that includes rounding, underflow and overflow of squares.
double length_above(const double* g, index_t n);

}  // namespace eigenfeat
