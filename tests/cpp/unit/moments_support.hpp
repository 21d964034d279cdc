// Helpers of the tests of class moments: reading moments and comparing them with the reference.
#pragma once

#include <doctest/doctest.h>

#include <cmath>
#include <cstdint>

#include "eigenfeat/moments.hpp"
#include "eigenfeat/vector.hpp"
#include "reference/moments_reference.hpp"
#include "unit/support.hpp"

namespace eigenfeat::support {

using Labels = Vector<std::int32_t>;
using Weights = Vector<double>;

inline Matrix<double> covariance_of(const ClassMoments& moments, index_t c) {
  Matrix<double> result(moments.n_features(), moments.n_features());
  moments.covariance(c, result.view());
  return result;
}

inline Matrix<double> second_moment_of(const ClassMoments& moments, index_t c) {
  Matrix<double> result(moments.n_features(), moments.n_features());
  moments.second_moment(c, result.view());
  return result;
}

inline long double mean_of(const ClassMoments& moments, index_t c, index_t j) {
  return static_cast<long double>(moments.mean_high(c)[j]) +
         static_cast<long double>(moments.mean_low(c)[j]);
}

template <class T>
ClassMoments moments_of(const Matrix<T>& rows, const Labels& labels, const Weights& weights,
                        index_t n_classes, int n_threads = 2) {
  ClassMoments moments(n_classes, rows.cols());
  moments.update<T>(rows.read(), read(labels), read(weights), n_threads);
  return moments;
}

// The largest deviation of class c from the reference, in units of the expected rounding error:
//   weight: sqrt(n) eps;
//   mean: sqrt(n) eps sigma, and the rounding of a double-double;
//   covariance (i, j): sqrt(n) eps_T sigma_i sigma_j, the bound that no scaling of columns changes;
// where sigma is at least an ulp of the mean, for constant columns and their rounded means.
// An exact kernel stays below about 1; a bound of 10 leaves room for unlucky sums.
template <class T>
long double deviation(const ClassMoments& moments, index_t c, const reference::Moments& expected,
                      index_t n) {
  const index_t d = moments.n_features();
  const long double root = std::sqrt(static_cast<long double>(n)) + 4;
  const long double weight_error =
      std::fabs(static_cast<long double>(moments.weight(c)) - expected.weight);
  long double worst = weight_error / (root * epsilon<double>() * expected.weight);
  const Matrix<double> covariance = covariance_of(moments, c);
  const Matrix<double> second = second_moment_of(moments, c);
  const auto magnitude = [&](index_t i) { return std::fabs(expected.mean[i]); };
  const auto sigma = [&](index_t i) {
    return std::sqrt(expected.covariance(i, i)) + epsilon<double>() * magnitude(i) +
           std::numeric_limits<double>::min();
  };
  for (index_t i = 0; i < d; ++i) {
    const long double mean_error = std::fabs(mean_of(moments, c, i) - expected.mean[i]);
    const long double mean_bound = root * epsilon<double>() * sigma(i);
    // The reference's own rounding in long double, for means far from zero.
    const long double reference_error = epsilon<long double>() * magnitude(i);
    worst = std::max(worst, (mean_error - reference_error) / mean_bound);
    for (index_t j = 0; j < d; ++j) {
      const long double scatter_bound =
          root * epsilon<T>() * sigma(i) * sigma(j) + std::numeric_limits<double>::denorm_min();
      const long double covariance_error =
          std::fabs(static_cast<long double>(covariance(i, j)) - expected.covariance(i, j));
      worst = std::max(worst, covariance_error / scatter_bound);
      const long double second_bound = scatter_bound + root * epsilon<double>() *
                                                           (sigma(i) + magnitude(i)) *
                                                           (sigma(j) + magnitude(j));
      const long double second_error =
          std::fabs(static_cast<long double>(second(i, j)) - expected.second_moment(i, j));
      worst = std::max(worst, second_error / second_bound);
      if (covariance(i, j) < covariance(j, i) || covariance(j, i) < covariance(i, j)) return 1e30L;
      if (second(i, j) < second(j, i) || second(j, i) < second(i, j)) return 1e30L;
      if (std::isnan(covariance(i, j)) || std::isnan(second(i, j))) return 1e30L;
    }
  }
  return worst;
}

template <class T>
void check_against_reference(const ClassMoments& moments, const Matrix<T>& rows,
                             const Labels& labels, const Weights& weights) {
  for (index_t c = 0; c < moments.n_classes(); ++c) {
    const auto label = static_cast<std::int32_t>(c);
    const reference::Moments expected =
        reference::class_moments<T>(rows.read(), read(labels), read(weights), label);
    if (!(expected.weight > 0)) {
      CHECK(moments.weight(c) == 0);
      continue;
    }
    CHECK(deviation<T>(moments, c, expected, rows.rows()) < 10);
  }
}

}  // namespace eigenfeat::support
