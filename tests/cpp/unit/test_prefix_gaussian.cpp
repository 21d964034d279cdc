// Conditional Gaussians of prefixes against conditioning entry by entry.
#include <doctest/doctest.h>

#include <cmath>
#include <limits>
#include <stdexcept>

#include "eigenfeat/prefix_gaussian.hpp"
#include "eigenfeat/vector.hpp"
#include "reference/decision_reference.hpp"
#include "unit/support.hpp"

using namespace eigenfeat;
using namespace eigenfeat::support;

namespace {

struct Model {
  Model(Random& random, index_t d, index_t ell)
      : sigma(random.positive_definite<double>(d, 0.2)),
        factor(d, d),
        features(random.normal_matrix<double>(d, ell)),
        gains(d, ell) {
    for (index_t i = 0; i < d; ++i) mean.push_back(3 + random.normal());
    REQUIRE(factorise_covariance(sigma.read(), factor.view()) == Status::ok);
    prefix_gains(factor.read(), features.read(), gains.view(), 2);
    for (index_t j = 0; j < ell; ++j) {
      double sum = 0.0;
      for (index_t i = 0; i < d; ++i) sum += features(i, j) * mean[i];
      feature_mean.push_back(sum);
    }
  }
  Matrix<double> sigma, factor, features, gains;
  Vector<double> mean, feature_mean;
};

Matrix<double> innovations_of(const Model& model, const Matrix<double>& rows, index_t t,
                              int n_threads = 2) {
  Matrix<double> out(rows.rows(), t);
  prefix_innovations(model.factor.read(), read(model.mean), rows.read(), out.view(), n_threads);
  return out;
}

Vector<index_t> all_steps(index_t t) {
  Vector<index_t> steps;
  for (index_t s = 0; s <= t; ++s) steps.push_back(s);
  return steps;
}

constexpr double kTolerance = 1e-12;

}  // namespace

TEST_CASE("means, covariances, variances and densities of every prefix") {
  Random random(701);
  for (const index_t d : {1, 2, 5, 17}) {
    const index_t ell = d / 2 + 1, n = 3;
    const Model model(random, d, ell);
    Matrix<double> rows = random.normal_matrix<double>(n, d);
    const Matrix<double> e = innovations_of(model, rows, d);
    const Vector<index_t> steps = all_steps(d);
    const index_t p = d + 1;
    Vector<double> means(n * p * ell), covariances(p * ell * ell);
    Matrix<double> variances(p, ell), log_densities(n, p);
    prefix_means(model.gains.read(), read(model.feature_mean), e.read(), read(steps), write(means),
                 2);
    prefix_covariances(model.gains.read(), read(steps), write(covariances), 2);
    prefix_variances(model.gains.read(), read(steps), variances.view());
    prefix_log_densities(model.factor.read(), e.read(), read(steps), log_densities.view(), 2);
    for (index_t i = 0; i < n; ++i) {
      for (index_t t = 0; t <= d; ++t) {
        const auto right = reference::condition_on_prefix(reference::Table(model.sigma.read()),
                                                          {model.mean.begin(), model.mean.end()},
                                                          {&rows(i, 0), &rows(i, 0) + d}, t);
        CHECK(std::fabs(log_densities(i, t) - static_cast<double>(right.log_density)) <=
              kTolerance * (1 + std::fabs(log_densities(i, t))));
        for (index_t j = 0; j < ell; ++j) {
          long double mean = 0;
          for (index_t r = 0; r < d; ++r)
            mean += static_cast<long double>(model.features(r, j)) * right.mean[r];
          CHECK(std::fabs(means[(i * p + t) * ell + j] - static_cast<double>(mean)) <=
                kTolerance * 100);
          for (index_t k = 0; k < ell; ++k) {
            long double covariance = 0;
            for (index_t r = 0; r < d; ++r) {
              for (index_t s = 0; s < d; ++s)
                covariance += static_cast<long double>(model.features(r, j)) *
                              right.covariance(r, s) *
                              static_cast<long double>(model.features(s, k));
            }
            const double got = covariances[(t * ell + j) * ell + k];
            CHECK(std::fabs(got - static_cast<double>(covariance)) <= kTolerance * 10);
            CHECK(got == covariances[(t * ell + k) * ell + j]);
            if (j == k) CHECK(std::fabs(variances(t, j) - got) <= kTolerance * (1 + got));
          }
        }
      }
    }
  }
}

TEST_CASE("if the features are the entries, variances of known entries are zero") {
  Random random(702);
  const index_t d = 6;
  Model model(random, d, d);
  Matrix<double> identity(d, d);
  for (index_t i = 0; i < d; ++i) identity(i, i) = 1.0;
  prefix_gains(model.factor.read(), identity.read(), model.gains.view(), 1);
  Matrix<double> variances(d + 1, d);
  const auto steps = all_steps(d);
  prefix_variances(model.gains.read(), read(steps), variances.view());
  for (index_t t = 0; t <= d; ++t) {
    for (index_t j = 0; j < d; ++j) CHECK((variances(t, j) == 0.0) == (j < t));
  }
}

TEST_CASE("entries beyond the prefix are not read, and a step's result depends on no other step") {
  Random random(703);
  const index_t d = 9, ell = 4, n = 70;
  const Model model(random, d, ell);
  Matrix<double> rows = random.normal_matrix<double>(n, d);
  for (index_t i = 0; i < n; ++i) {
    for (index_t j = 5; j < d; ++j) rows(i, j) = std::numeric_limits<double>::quiet_NaN();
  }
  const Matrix<double> e = innovations_of(model, rows, 5);
  const Vector<index_t> some{0, 3, 5}, all = all_steps(5);
  Vector<double> few(n * 3 * ell), many(n * 6 * ell);
  prefix_means(model.gains.read(), read(model.feature_mean), e.read(), read(some), write(few), 1);
  prefix_means(model.gains.read(), read(model.feature_mean), e.read(), read(all), write(many), 1);
  for (index_t i = 0; i < n; ++i) {
    for (index_t k = 0; k < 3; ++k) {
      for (index_t j = 0; j < ell; ++j)
        CHECK(few[(i * 3 + k) * ell + j] == many[(i * 6 + some[k]) * ell + j]);
    }
  }
}

TEST_CASE("the same bits for every number of threads") {
  Random random(705);
  const index_t d = 150, ell = 40, n = 300;
  const Model model(random, d, ell);
  const Matrix<double> rows = random.normal_matrix<double>(n, d);
  const auto steps = all_steps(d);
  const auto everything = [&](int threads) {
    Matrix<double> gains(d, ell);
    prefix_gains(model.factor.read(), model.features.read(), gains.view(), threads);
    const Matrix<double> e = innovations_of(model, rows, d, threads);
    Vector<double> out(n * (d + 1) * ell + (d + 1) * ell * ell);
    const index_t split = n * (d + 1) * ell;
    prefix_means(gains.read(), read(model.feature_mean), e.read(), read(steps), {out.data(), split},
                 threads);
    prefix_covariances(gains.read(), read(steps), {out.data() + split, (d + 1) * ell * ell},
                       threads);
    return out;
  };
  const Vector<double> expected = everything(1);
  CHECK(same_bits(everything(2), expected));
  CHECK(same_bits(everything(7), expected));
}

TEST_CASE("matrices that are not positive definite and wrong shapes are refused") {
  Matrix<double> indefinite(2, 2, {1, 2, 2, 1}), factor(2, 2);
  CHECK(factorise_covariance(indefinite.read(), factor.view()) == Status::not_positive_definite);
  Random random(706);
  const Model model(random, 4, 2);
  const Vector<index_t> descending{2, 1};
  Matrix<double> out(2, 2);
  CHECK(starts_with(message_of<std::invalid_argument>([&] {
                      prefix_variances(model.gains.read(), read(descending), out.view());
                    }),
                    "steps: expected ascending numbers in 0..4"));
  Matrix<double> rows(3, 4), wide(3, 5);
  CHECK_THROWS_AS(
      prefix_innovations(model.factor.read(), read(model.mean), rows.read(), wide.view(), 1),
      std::invalid_argument);
}
