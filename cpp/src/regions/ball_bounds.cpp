#include "regions/ball_bounds.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include "base/vectors.hpp"

namespace eigenfeat {

namespace {

// Adds the terms of entry i, for which (A x)_i is given.
struct Sums {
  double value = 0.0, magnitude = 0.0, residual = 0.0;
  void add(double ax, double g, double x, double mu) {
    const double term = ax + mu * x + g;
    value += x * (ax + 2.0 * g);
    magnitude += std::fabs(x) * (std::fabs(ax) + 2.0 * std::fabs(g));
    residual += term * term;
  }
};

BallTerms terms_of(const Sums& sums, double squares, const double* g, const double* x, index_t d) {
  BallTerms at;
  at.value = sums.value;
  at.magnitude = sums.magnitude;
  at.length = std::sqrt(dot(x, x, d));
  at.slope = std::sqrt(dot(g, g, d));
  at.size = std::sqrt(squares);
  at.residual = std::sqrt(sums.residual);
  return at;
}

}  // namespace

BallTerms diagonal_terms(const double* a, const PowerOfTwo& factor, const double* g,
                         const double* x, double mu, index_t d) {
  Sums sums;
  double squares = 0.0;
  for (index_t i = 0; i < d; ++i) {
    const double curvature = factor(a[i]);
    squares += curvature * curvature;
    sums.add(curvature * x[i], g[i], x[i], mu);
  }
  return terms_of(sums, squares, g, x, d);
}

BallTerms dense_terms(MatrixView<const double> a, double largest, const PowerOfTwo& factor,
                      const double* g, const double* x, double mu, double* line) {
  const index_t d = a.cols;
  // Squares and products then neither overflow nor lose relevant digits by underflow.
  const bool moderate = largest > 1e-20 && largest < 1e140;
  Sums sums;
  double squares = 0.0, quadratic = 0.0;
  for (index_t i = 0; i < d; ++i) {
    const double* row = a.row(i);
    if (!moderate) {
      std::transform(row, row + d, line, factor);
      row = line;
    }
    squares += dot(row, row, d);
    const double product = dot(row, x, d);
    const double ax = moderate ? factor(product) : product;
    quadratic += x[i] * ax;
    sums.add(ax, g[i], x[i], mu);
  }
  BallTerms at = terms_of(sums, squares, g, x, d);
  if (moderate) at.size = factor(at.size);
  at.quadratic = quadratic;
  at.linear = dot(g, x, d);
  return at;
}

BallBounds bounds_from(const BallTerms& at, double mu, double defect, double radius,
                       double constant, index_t d) {
  constexpr double kUnderflow = 1e-290;  // exceeds the sum of all underflow errors
  const double share = static_cast<double>(d + 64) * kRound;
  const double bent = at.size * at.length, fixed = std::fabs(constant);
  const double square = radius * radius, span = radius + at.length;
  const double residual =
      at.residual * (1.0 + share) + share * (bent + mu * at.length + at.slope) + kUnderflow;
  const double fall = mu * square + residual * (span + radius) + defect * span * span;
  const double lower_error = share * (fixed + at.slope * at.length + fall) + kUnderflow;

  const double inside = radius * (1.0 - share);
  const double t = at.length > inside ? inside / at.length : 1.0;
  const double upper_error =
      share * (fixed + t * at.length * (t * bent + 2.0 * at.slope)) + kUnderflow;
  const double change = t * (t * at.quadratic + 2.0 * at.linear);
  return {(constant + at.linear) - fall - lower_error,
          std::min(constant, (constant + change) + upper_error)};
}

void bring_back(const BallScale& scale, Certificate& certificate) {
  const auto outward = [&](double x, double towards) {
    const double given = scale.back(x);
    const bool exact = x == 0.0 || std::fabs(given) >= std::numeric_limits<double>::min();
    return exact ? given : std::nextafter(given, towards);
  };
  certificate.lower = outward(certificate.lower, -kInfinity);
  certificate.upper = outward(certificate.upper, kInfinity);
}

Certificate beyond_scale(double constant, double uncertainty) {
  Certificate out;
  const double slack = uncertainty + kRound * std::fabs(constant);
  out.lower = constant - slack;
  out.upper = constant + uncertainty;
  if (out.lower >= 0.0) out.verdict = Verdict::nonnegative;
  if (out.upper < 0.0) out.verdict = Verdict::negative;
  return out;
}

double length_above(const double* g, index_t n) {
  const double steepest = largest_magnitude(g, n), order = static_cast<double>(n);
  // Squares outside these limits may vanish or overflow.
  if (steepest < 1e-140 || steepest > 1e140) return 1.01 * steepest * std::sqrt(order);
  return (1.0 + (order + 8) * kRound) * std::sqrt(dot(g, g, n));
}

}  // namespace eigenfeat
