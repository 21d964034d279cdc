#include "regions/ball_bounds.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include "kernels/sums.hpp"

namespace eigenfeat {

BallTerms terms_at(MatrixView<const double> a, const PowerOfTwo& factor, const double* g,
                   const double* x, double mu, double* line) {
  const index_t d = a.cols;
  const bool diagonal = a.rows == 1 && d > 1;
  BallTerms at;
  double squares = 0.0, residual = 0.0;
  if (diagonal) {
    std::transform(a.data, a.data + d, line, factor);
    squares = dot(line, line, d);
  }
  for (index_t i = 0; i < d; ++i) {
    double ax = 0.0;
    if (diagonal) {
      ax = line[i] * x[i];
    } else {
      std::transform(a.row(i), a.row(i) + d, line, factor);
      squares += dot(line, line, d);
      ax = dot(line, x, d);
    }
    const double term = ax + mu * x[i] + g[i];
    at.quadratic += x[i] * ax;
    at.value += x[i] * (ax + 2.0 * g[i]);
    at.magnitude += std::fabs(x[i]) * (std::fabs(ax) + 2.0 * std::fabs(g[i]));
    residual += term * term;
  }
  at.linear = dot(g, x, d);
  at.length = std::sqrt(dot(x, x, d));
  at.slope = std::sqrt(dot(g, g, d));
  at.size = std::sqrt(squares);
  at.residual = std::sqrt(residual);
  return at;
}

BallBounds bounds_from(const BallTerms& at, double mu, double defect, double radius,
                       double constant, index_t d) {
  constexpr double kUnderflow = 1e-290;  // more than all that was lost below the smallest numbers
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
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
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
  if (steepest < 1e-140 || steepest > 1e140) return 1.01 * steepest * std::sqrt(order);
  return (1.0 + (order + 8) * kRound) * std::sqrt(dot(g, g, n));
}

}  // namespace eigenfeat
