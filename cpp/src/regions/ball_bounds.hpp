// Private to trust_region: what a point and a multiplier prove of x^T A x + 2 g^T x + c over a ball,
// with every rounding accounted for. Scaled numbers throughout (see BallScale).
#pragma once

#include "eigenfeat/trust_region.hpp"
#include "regions/secular.hpp"

namespace eigenfeat {

// At a point x and a multiplier mu; lengths are Euclidean.
struct BallTerms {
  double quadratic = 0.0;  // x^T A x
  double linear = 0.0;     // g^T x
  double value = 0.0;      // x^T (A x + 2 g), summed at once
  double magnitude = 0.0;  // sum |x_i| (|(A x)_i| + 2 |g_i|)
  double length = 0.0;     // |x|
  double slope = 0.0;      // |g|
  double size = 0.0;       // |A|_F
  double residual = 0.0;   // |(A + mu I) x + g|
};

// factor is applied to the entries of A. For diagonal ones, without quadratic and linear.
BallTerms diagonal_terms(const double* a, const PowerOfTwo& factor, const double* g,
                         const double* x, double mu, index_t d);

// largest: of the magnitudes in a; line: d numbers of scratch.
BallTerms dense_terms(MatrixView<const double> a, double largest, const PowerOfTwo& factor,
                      const double* g, const double* x, double mu, double* line);

struct BallBounds {
  double lower, upper;  // of the minimum over the ball
};

// For A with A + (mu + defect) I positive semidefinite. With M = A + mu I, r = M x + g and any y of
// the ball,
//
//   q(y) = c + (y - x)^T M (y - x) - x^T M x + 2 r^T y - mu |y|^2
//        >= c + g^T x - r^T x - 2 |r| radius - mu radius^2 - defect (radius + |x|)^2,
//
// since M x = r - g; and q(t x), t = min(1, radius / |x|), is an upper bound, as is q(0) = c.
// Rounding: with u = 2^-53 a sum of d products, in any order, is off by at most (d + 4) u times the
// sum of their magnitudes; so A x by (d + 4) u |A|_F |x|, and every term above by at most
// share = (d + 64) 2 u times the product of norms that bounds its magnitude.
BallBounds bounds_from(const BallTerms& at, double mu, double defect, double radius,
                       double constant, index_t d);

// From scaled to given numbers; bounds that become subnormal are rounded outward.
void bring_back(const BallScale& scale, Certificate& certificate);

// Where the constant is past 1e300 times all else: it alone decides.
Certificate beyond_scale(double constant, double uncertainty);

// |g|, or something above it by rounding or where squares would underflow or overflow.
double length_above(const double* g, index_t n);

}  // namespace eigenfeat
