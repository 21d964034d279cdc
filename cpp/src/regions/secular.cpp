#include "regions/secular.hpp"

#include <algorithm>
#include <cmath>

namespace eigenfeat {

SecularSums secular_sums(const double* a, const double* g, index_t n, double low, double shift) {
  return kernels<RegionKernels>().secular_sums(a, g, n, low, shift);
}

Survey survey(const double* a, const double* g, index_t n) {
  return kernels<RegionKernels>().survey(a, g, n);
}

PowerOfTwo::PowerOfTwo(int exponent)
    : first(std::ldexp(1.0, exponent / 2)), second(std::ldexp(1.0, exponent - exponent / 2)) {}

namespace {

// The exponent e of x = f 2^e with 1/2 <= f < 1; for 0, an exponent below all others.
int exponent_of(double x) {
  if (x == 0.0) return -4000;
  int exponent = 0;
  std::frexp(x, &exponent);
  return exponent;
}

int value_exponent_of(double size, double steepest, int radius_exponent) {
  const int exponent =
      std::max(exponent_of(size) + 2 * radius_exponent, exponent_of(steepest) + radius_exponent);
  return exponent < -3500 ? 0 : exponent;  // all numbers are zero
}

}  // namespace

BallScale::BallScale(double size, double steepest, double given_radius)
    : radius_exponent(exponent_of(given_radius)),
      value_exponent(value_exponent_of(size, steepest, radius_exponent)),
      curvature(2 * radius_exponent - value_exponent),
      slope(radius_exponent - value_exponent),
      value(-value_exponent),
      length(radius_exponent),
      back(value_exponent),
      multiplier(value_exponent - 2 * radius_exponent),
      radius(PowerOfTwo(-radius_exponent)(given_radius)) {}

namespace {

// |x|^2 and the sum of g^2 / b with b = a - low + shift, where 0 / 0 is 0.
SecularSums careful_sums(const double* a, const double* g, index_t n, double low, double shift) {
  SecularSums sums;
  for (index_t i = 0; i < n; ++i) {
    if (g[i] == 0.0) continue;
    const double x = g[i] / ((a[i] - low) + shift);
    sums.first += g[i] * x;
    sums.second += x * x;
  }
  return sums;
}

void set_point(const double* a, const double* g, index_t n, double low, double shift, double* x) {
  for (index_t i = 0; i < n; ++i) x[i] = g[i] == 0.0 ? 0.0 : -g[i] / ((a[i] - low) + shift);
}

// A shift at which |x| >= r, from every component alone, and from their mean by Jensen's inequality.
double left_of_root(const double* a, const double* g, index_t n, const Survey& survey,
                    double radius) {
  double shift = std::max(survey.low, 0.0);
  for (index_t i = 0; i < n; ++i)
    shift = std::max(shift, std::fabs(g[i]) / radius - (a[i] - survey.low));
  if (survey.gradient > 0.0)
    shift = std::max(
        shift, std::sqrt(survey.gradient) / radius - (survey.bend / survey.gradient - survey.low));
  return shift;
}

}  // namespace

namespace {

// Hard case: a multiple of the lowest eigenvector is added until |x| = radius; the multiplier is
// -low to working precision.
void fill_ball(const double* a, const double* g, index_t n, double radius, double inner,
               double* x) {
  const index_t lowest = std::min_element(a, a + n) - a;
  const double rest = std::sqrt(std::max(radius * radius - inner, 0.0));
  x[lowest] = g[lowest] > 0.0 ? -rest : rest;
}

// The unconstrained minimiser is outside the ball or does not exist: |x| = radius, low < shift.
void solve_secular(const double* a, const double* g, index_t n, double low, double radius,
                   double* x, RegionPoint& point) {
  const double base = std::max(low, 0.0);
  double shift = point.shift;
  SecularSums sums = secular_sums(a, g, n, low, shift);
  point.converged = false;
  for (constexpr int kMax = 200; point.iterations < kMax; ++point.iterations) {
    const double excess = (std::sqrt(sums.second) - radius) / radius;
    const double next = std::max(shift + sums.second / sums.third * excess, base);
    // From the left, |x| is at least the radius except by rounding, where the iteration ends.
    point.converged = next - shift <= 2 * kRound * shift || excess <= 4 * kRound;
    if (point.converged || !(next > 0.0)) break;
    shift = next;
    sums = secular_sums(a, g, n, low, shift);
  }
  point.shift = shift;
  point.multiplier = shift - low;
  point.value = -(sums.first + point.multiplier * radius * radius);
  set_point(a, g, n, low, shift, x);
  const double length = radius / std::sqrt(sums.second);
  for (index_t i = 0; i < n; ++i) x[i] *= length;
}

}  // namespace

RegionPoint minimise_diagonal(const double* a, const double* g, index_t n, double radius,
                              double* x) {
  const Survey terms = survey(a, g, n);
  RegionPoint point;
  point.shift = std::max(terms.low, 0.0);
  SecularSums sums = careful_sums(a, g, n, terms.low, point.shift);
  bool inside = sums.second <= radius * radius;
  if (!inside) {
    point.shift = left_of_root(a, g, n, terms, radius);
    constexpr double kTiny = 1e-290;
    if (point.shift < kTiny) {  // the slopes along the lowest eigenvectors are negligible
      point.shift = kTiny;
      sums = careful_sums(a, g, n, terms.low, kTiny);
      inside = sums.second <= radius * radius;
    }
  }
  if (!inside) {
    solve_secular(a, g, n, terms.low, radius, x, point);
  } else {
    point.multiplier = point.shift - terms.low;
    point.value = -(sums.first + point.multiplier * radius * radius);
    set_point(a, g, n, terms.low, point.shift, x);
    if (terms.low < 0.0 || point.multiplier > 0.0) fill_ball(a, g, n, radius, sums.second, x);
  }
  point.hard = terms.low < 0.0 && point.shift <= static_cast<double>(n) * kRound * terms.size;
  return point;
}

}  // namespace eigenfeat
