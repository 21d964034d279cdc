// Private to the core: the secular equation of a diagonal quadratic over a ball, and exact scaling
// of numbers to about 1.
#pragma once

#include <limits>

#include "kernels/region_kernels.hpp"

namespace eigenfeat {

inline constexpr double kRound = std::numeric_limits<double>::epsilon();
inline constexpr double kInfinity = std::numeric_limits<double>::infinity();

SecularSums secular_sums(const double* a, const double* g, index_t n, double low, double shift);
Survey survey(const double* a, const double* g, index_t n);

// Exact factors 2^k, also where 2^k itself is out of range.
struct PowerOfTwo {
  explicit PowerOfTwo(int exponent);
  double operator()(double x) const { return x * first * second; }
  double first, second;
};

// x = 2^radius_exponent y, q = 2^value_exponent q', with exponents for which the radius, and the
// larger of max |a| and max |g|, are in [1/2, 1).
struct BallScale {
  BallScale(double size, double steepest, double radius);
  int radius_exponent, value_exponent;
  PowerOfTwo curvature, slope, value;   // from original to scaled numbers
  PowerOfTwo length, back, multiplier;  // from scaled to original numbers: x, q, mu
  double radius;                        // scaled
};

struct RegionPoint {
  double value = 0.0;       // dual bound at the multiplier, which is the minimum up to rounding
  double multiplier = 0.0;  // mu
  double shift = 0.0;       // s = mu + a_min
  // For a tridiagonal T, T + (mu + defect) I is proved to be positive semidefinite.
  double defect = std::numeric_limits<double>::infinity();
  bool hard = false;  // the hard case, mu = -a_min
  bool converged = true;
  int iterations = 0;
};

// Scaled numbers: 1/2 <= radius < 1, entries at most 1. x: n numbers.
RegionPoint minimise_diagonal(const double* a, const double* g, index_t n, double radius,
                              double* x);

}  // namespace eigenfeat
