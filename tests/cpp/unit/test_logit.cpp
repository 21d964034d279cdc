// The fused multinomial logit against plain loops: loss, energy, gradient, extremes, threads.
#include <doctest/doctest.h>

#include <cmath>
#include <limits>
#include <stdexcept>

#include "eigenfeat/logit.hpp"
#include "eigenfeat/vector.hpp"
#include "unit/features_support.hpp"

using namespace eigenfeat;
using namespace eigenfeat::support;

namespace {

struct Result {
  LogitTerms terms;
  Matrix<double> gradient;
};

template <class T>
Result logit(const FeatureRows<T>& rows, const Vector<std::int32_t>& labels,
             const Vector<double>& weights, double energy_weight, const Matrix<double>& w,
             int n_threads = 2) {
  Result out{{}, Matrix<double>(w.rows(), w.cols(), Order::rows, 1)};
  out.terms = logit_gradient<T>(rows, read(labels), read(weights), energy_weight, w.read(),
                                out.gradient.view(), n_threads);
  return out;
}

template <class T>
void check_logit(const Features<T>& features, const Vector<std::int32_t>& labels,
                 const Vector<double>& weights, double energy_weight, const Matrix<double>& w) {
  const Result got = logit<T>(features.rows, labels, weights, energy_weight, w);
  const index_t n = features.rows.rows(), p = features.rows.cols();
  const linear::Logit right =
      linear::logit(features.phi, labels, weights, static_cast<long double>(energy_weight),
                    linear::table_of(w.read()), rounding<T>(p), epsilon<T>());
  const long double slack = 1 + rounding<double>(n);
  CHECK(std::fabs(static_cast<long double>(got.terms.loss) - right.loss) <=
        slack * right.loss_error);
  CHECK(std::fabs(static_cast<long double>(got.terms.energy) - right.energy) <=
        slack * right.energy_error + 8 * epsilon<double>() * right.energy);
  CHECK(count_off(got.gradient.read(), right.gradient, rounding<T>(std::min<index_t>(n, 4096)),
                  &right.gradient_error) == 0);
  CHECK(got.gradient.padding_untouched());
}

// One row with one feature, 1: the logits are the coefficients.
template <class T>
Result of_logits(const Vector<double>& z, std::int32_t label, double weight = 1.0,
                 double energy_weight = 0.0) {
  const Matrix<T> x(1, 1, {1.0});
  FeatureRows<T> rows;
  rows.dense = x.read();
  Matrix<double> w(1, z.size());
  for (index_t c = 0; c < w.cols(); ++c) w(0, c) = z[c];
  return logit<T>(rows, {label}, {weight}, energy_weight, w, 1);
}

}  // namespace

TEST_CASE_TEMPLATE("loss, energy and gradient for every kind and number of classes", T, float,
                   double) {
  Random random(311);
  for (const Kind kind : kKinds) {
    bool constant = false;
    for (const index_t k : {1, 2, 3, 8, 10, 16, 17, 32, 33, 64, 65, 100}) {
      constant = !constant;
      const Features<T> features(random, kind, 37, 6, constant, {Wave::half_wave, {1, 2, 3}, true});
      const auto labels = random.labels(37, k);
      const Matrix<double> w =
          random.normal_matrix<double>(features.rows.cols(), k, Order::rows, 2);
      check_logit<T>(features, labels, {}, 0.0, w);
      check_logit<T>(features, labels, random_weights(random, 37), 0.3, w);
    }
  }
}

TEST_CASE_TEMPLATE("loss, energy and gradient of rows beyond one tile", T, float, double) {
  Random random(312);
  for (const Kind kind : {Kind::dense, Kind::sparse, Kind::expanded}) {
    for (const index_t n : {1, 12, 239, 240, 241, 481}) {
      const Features<T> features(random, kind, n, 5, n % 2 == 0);
      check_logit<T>(features, random.labels(n, 3), random_weights(random, n), 0.1,
                     random.normal_matrix<double>(features.rows.cols(), 3));
    }
    for (const index_t columns : {255, 257}) {
      const Features<T> features(random, kind, 250, kind == Kind::expanded ? 43 : columns, true);
      Matrix<double> w = random.normal_matrix<double>(features.rows.cols(), 10);
      for (index_t j = 0; j < w.rows(); ++j) {
        for (index_t c = 0; c < 10; ++c) w(j, c) *= 0.1;
      }
      check_logit<T>(features, random.labels(250, 10), {}, 0.1, w);
    }
  }
  const Features<T> many(random, Kind::dense, 64 * 240 + 1, 1, true, {}, 0);
  check_logit<T>(many, random.labels(64 * 240 + 1, 2), {}, 0.1, random.normal_matrix<double>(2, 2));
}

TEST_CASE("the gradient agrees with central differences of loss and energy") {
  Random random(313);
  const double energy_weight = 0.2, h = 1e-5;
  for (const Kind kind : kKinds) {
    const Features<double> features(random, kind, 29, 3, true, {Wave::half_wave, {1, 2}, true});
    const auto labels = random.labels(29, 4);
    const auto weights = random_weights(random, 29);
    Matrix<double> w = random.normal_matrix<double>(features.rows.cols(), 4);
    const Result at = logit<double>(features.rows, labels, weights, energy_weight, w);
    const auto value = [&] {
      const LogitTerms terms =
          logit<double>(features.rows, labels, weights, energy_weight, w).terms;
      return terms.loss + energy_weight / 2 * terms.energy;
    };
    const double size = value();
    for (index_t j = 0; j < w.rows(); ++j) {
      for (index_t c = 0; c < 4; ++c) {
        const double here = w(j, c);
        w(j, c) = here + h;
        const double above = value();
        w(j, c) = here - h;
        const double below = value();
        w(j, c) = here;
        CHECK(std::fabs((above - below) / (2 * h) - at.gradient(j, c)) <= 1e-8 * (1 + size));
      }
    }
  }
}

TEST_CASE_TEMPLATE("huge logits have exact losses", T, float, double) {
  for (const double size : {1e2, 1e4, 1e18}) {
    const double far = static_cast<double>(static_cast<T>(size));
    Result got = of_logits<T>({far, 0, -far}, 0);
    CHECK(got.terms.loss == doctest::Approx(0.0));
    CHECK(got.gradient(0, 0) == doctest::Approx(0.0));
    got = of_logits<T>({far, 0, -far}, 1, 2.0);
    CHECK(got.terms.loss == doctest::Approx(2 * far).epsilon(1e-6));
    CHECK(got.gradient(0, 0) == doctest::Approx(2.0));
    CHECK(got.gradient(0, 1) == doctest::Approx(-2.0));
    got = of_logits<T>({far, 0, -far}, 2);
    CHECK(got.terms.loss == doctest::Approx(2 * far).epsilon(1e-6));
    CHECK(got.terms.energy == doctest::Approx(2 * far * far).epsilon(1e-6));
  }
}

TEST_CASE_TEMPLATE("tiny losses and gradients are exact, not rounded to 0", T, float, double) {
  for (const double lead : {5.0, 20.0, 40.0, 80.0}) {
    const Result got = of_logits<T>({0, lead}, 1, 3.0);
    const double left = std::exp(-lead);
    CHECK(got.terms.loss == doctest::Approx(3 * std::log1p(left)).epsilon(1e-5));
    CHECK(got.gradient(0, 1) == doctest::Approx(-3 * left / (1 + left)).epsilon(1e-5));
    CHECK(got.gradient(0, 0) == doctest::Approx(3 * left / (1 + left)).epsilon(1e-5));
  }
}

TEST_CASE_TEMPLATE("the objective of non-finite logits is not finite", T, float, double) {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  const double inf = std::numeric_limits<double>::infinity();
  for (const double bad : {nan, inf, -inf}) {
    for (index_t at = 0; at < 3; ++at) {
      for (std::int32_t label = 0; label < 3; ++label) {
        Vector<double> z{0.5, -0.25, 1.0};
        z[at] = bad;
        const LogitTerms terms = of_logits<T>(z, label).terms;
        CHECK_FALSE(std::isfinite(terms.loss + terms.energy));
        if (bad != -inf) CHECK_FALSE(std::isfinite(terms.loss));
      }
    }
  }
  const LogitTerms overflow = of_logits<T>({1e300, 0, 0}, 0).terms;
  CHECK_FALSE(std::isfinite(overflow.energy));
}

TEST_CASE_TEMPLATE("the loss of one class and of no rows is zero", T, float, double) {
  Random random(314);
  const Features<T> features(random, Kind::dense, 11, 3, true);
  const Matrix<double> w = random.normal_matrix<double>(4, 1);
  CHECK(logit<T>(features.rows, random.labels(11, 1), {}, 0.0, w).terms.loss == 0.0);
  const Matrix<T> one(1, 3);
  FeatureRows<T> none;
  none.dense = row_major<const T>(one.read().data, 0, 3);
  const Result got = logit<T>(none, {}, {}, 0.5, random.normal_matrix<double>(3, 2));
  CHECK(got.terms.loss == 0.0);
  CHECK(got.terms.energy == 0.0);
  CHECK(got.gradient(2, 1) == 0.0);
}

TEST_CASE_TEMPLATE("a weight is a number of equal rows", T, float, double) {
  Random random(315);
  const Features<T> features(random, Kind::dense, 40, 3, true, {}, 0);
  Matrix<T> twice(80, 3);
  for (index_t i = 0; i < 80; ++i) {
    for (index_t j = 0; j < 3; ++j) twice(i, j) = features.x(i / 2, j);
  }
  const auto labels = random.labels(40, 3);
  Vector<std::int32_t> double_labels(80);
  for (index_t i = 0; i < 80; ++i) double_labels[i] = labels[i / 2];
  FeatureRows<T> rows = features.rows;
  rows.dense = twice.read();
  const Matrix<double> w = random.normal_matrix<double>(4, 3);
  const Result a = logit<T>(features.rows, labels, Vector<double>(40, 2.0), 0.1, w),
               b = logit<T>(rows, double_labels, {}, 0.1, w);
  const double eps = static_cast<double>(epsilon<T>());
  CHECK(a.terms.loss == doctest::Approx(b.terms.loss).epsilon(10 * eps));
  for (index_t j = 0; j < 4; ++j) {
    for (index_t c = 0; c < 3; ++c)
      CHECK(std::fabs(a.gradient(j, c) - b.gradient(j, c)) <= 500 * eps);
  }
}

TEST_CASE_TEMPLATE("errors of the logit name the argument", T, float, double) {
  Random random(316);
  const Features<T> features(random, Kind::dense, 6, 4, true);
  const Matrix<double> w(5, 3), few(4, 3), none(5, 0);
  Matrix<double> g(5, 3), narrow(5, 2);
  Vector<std::int32_t> labels(6, 0), short_labels(5, 0), bad{0, 1, 2, 3, 0, 0},
      negative{0, 1, 2, 0, -1, 0};
  const Vector<double> weights(5, 1.0), all;
  const auto error = [&](const Vector<std::int32_t>& y, const Vector<double>& by,
                         const Matrix<double>& at, Matrix<double>& out) {
    return message_of<std::invalid_argument>([&] {
      logit_gradient<T>(features.rows, read(y), read(by), 0.0, at.read(), out.view(), 1);
    });
  };
  CHECK(starts_with(error(short_labels, all, w, g), "labels: expected 6 entries, got 5"));
  CHECK(starts_with(error(bad, all, w, g), "labels: expected indices in [0, 3), got 3 in row 3"));
  CHECK(contains(error(negative, all, w, g), "got -1 in row 4"));
  CHECK(starts_with(error(labels, weights, w, g), "weights: expected 6 entries, got 5"));
  CHECK(starts_with(error(labels, all, few, g), "coefficients: expected 5 rows, got 4"));
  CHECK(starts_with(error(labels, all, none, g), "coefficients: "));
  CHECK(starts_with(error(labels, all, w, narrow), "gradient: "));
}
