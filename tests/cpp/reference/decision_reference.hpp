// Minima of quadratics over balls and boxes, and conditional Gaussians, by plain loops in long
// double: Jacobi rotations for eigenvalues, bisection for the secular equation, elimination for
// conditional distributions.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>

#include "eigenfeat/vector.hpp"
#include "eigenfeat/view.hpp"
#include "reference/pencil_reference.hpp"

namespace eigenfeat::reference {

using Numbers = Vector<long double>;

// The dual -sum g^2 / (a + mu) - mu radius^2, and |x|^2 at x = -g / (a + mu), for the multiplier
// mu = shift - low. 0 / 0 counts as 0.
struct AtMultiplier {
  long double dual = 0, square = 0;
};
inline AtMultiplier at_multiplier(const Numbers& a, const Numbers& g, long double radius,
                                  long double low, long double shift) {
  AtMultiplier out;
  for (index_t i = 0; i < a.size(); ++i) {
    if (g[i] == 0) continue;
    const long double x = g[i] / ((a[i] - low) + shift);
    out.dual -= g[i] * x;
    out.square += x * x;
  }
  out.dual -= (shift - low) * radius * radius;
  return out;
}

struct BallReference {
  long double value = 0, multiplier = 0, low = 0;
};

// min sum a x^2 + 2 g x over |x| <= radius.
inline BallReference minimum_over_ball(const Numbers& a, const Numbers& g, long double radius) {
  const long double low = *std::min_element(a.begin(), a.end());
  const long double base = std::max(low, 0.0L);
  const AtMultiplier first = at_multiplier(a, g, radius, low, base);
  if (first.square <= radius * radius) return {first.dual, base - low, low};
  long double below = base, above = base;
  for (const long double slope : g) above += std::fabs(slope) / radius;
  for (int step = 0; step < 400 && above - below > 0; ++step) {
    const long double middle = below + (above - below) / 2;
    (at_multiplier(a, g, radius, low, middle).square > radius * radius ? below : above) = middle;
  }
  return {at_multiplier(a, g, radius, low, above).dual, above - low, low};
}

// min x^T A x + 2 g^T x over |x| <= radius.
inline BallReference minimum_over_ball(const Table& a, const Numbers& g, long double radius) {
  const Eigenpairs pairs = symmetric_eigenpairs(a);
  Numbers slopes(g.size(), 0.0L);
  for (index_t j = 0; j < a.order(); ++j) {
    for (index_t i = 0; i < a.order(); ++i) slopes[j] += pairs.vectors(i, j) * g[i];
  }
  return minimum_over_ball(pairs.values, slopes, radius);
}

// min sum a x^2 + 2 g x over |x| <= w, entry by entry: at an edge, or at the vertex inside.
inline long double minimum_over_box(const Numbers& a, const Numbers& g, const Numbers& w) {
  long double sum = 0;
  for (index_t i = 0; i < a.size(); ++i) {
    const auto value = [&](long double x) { return a[i] * x * x + 2 * g[i] * x; };
    long double least = std::min(value(w[i]), value(-w[i]));
    if (a[i] > 0 && std::fabs(g[i]) <= a[i] * w[i]) least = std::min(least, value(-g[i] / a[i]));
    sum += least;
  }
  return sum;
}

struct Conditional {
  Numbers mean;
  Table covariance;
  long double log_density = 0;
  explicit Conditional(index_t d) : covariance(d) {}
};

// N(mean, sigma) given its first t entries, by conditioning on one entry after the other.
inline Conditional condition_on_prefix(const Table& sigma, const Numbers& mean, const Numbers& x,
                                       index_t t) {
  constexpr long double kTwoPi = 6.283185307179586476925286766559L;
  const index_t d = sigma.order();
  Conditional out(d);
  out.mean = mean;
  out.covariance = sigma;
  for (index_t s = 0; s < t; ++s) {
    const Table before = out.covariance;
    const long double variance = before(s, s);
    const long double from = x[s] - out.mean[s];
    out.log_density -= from * from / (2 * variance) + std::log(kTwoPi * variance) / 2;
    for (index_t i = 0; i < d; ++i) {
      out.mean[i] += before(i, s) / variance * from;
      for (index_t j = 0; j < d; ++j)
        out.covariance(i, j) = before(i, j) - before(i, s) * before(s, j) / variance;
    }
  }
  return out;
}

}  // namespace eigenfeat::reference
