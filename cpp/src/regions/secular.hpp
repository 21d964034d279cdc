// Private to the core: the secular equation of a diagonal quadratic over a ball, and how numbers of
// any size are brought near 1 without rounding.
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

// x = 2^radius_exponent y, q = 2^value_exponent q': then the radius is in [1/2, 1) and the largest
// of max |a| and max |g| as well.
struct BallScale {
  BallScale(double size, double steepest, double radius);
  int radius_exponent, value_exponent;
  PowerOfTwo curvature, slope, value;   // from given to scaled
  PowerOfTwo length, back, multiplier;  // from scaled to given: x, q, mu
  double radius;                        // scaled
};

struct RegionPoint {
  double value = 0.0;       // dual bound at the multiplier, the minimum but for rounding
  double multiplier = 0.0;  // mu
  double shift = 0.0;       // s = mu + a_min
  // Of a tridiagonal T: T + mu I is no less than -defect I for certain.
  double defect = std::numeric_limits<double>::infinity();
  bool hard = false;
  bool converged = true;
  int iterations = 0;
};

// Scaled numbers: 1/2 <= radius < 1, entries at most 1. x: n numbers.
RegionPoint minimise_diagonal(const double* a, const double* g, index_t n, double radius,
                              double* x);

}  // namespace eigenfeat
