// The kernel matrix of few rows, its factor, its ridge regressions, and residuals of logits,
// against plain loops.
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

Matrix<double> random_rows(index_t n, index_t p) {
  Matrix<double> out(n, p);
  std::uint64_t state = 7;
  for (index_t i = 0; i < n; ++i) {
    for (index_t j = 0; j < p; ++j) {
      state = state * 6364136223846793005ULL + 1442695040888963407ULL;
      out(i, j) = static_cast<double>(state >> 40) / static_cast<double>(1 << 24) - 0.5;
    }
  }
  return out;
}

template <class T>
void check_kernel_of(index_t n, index_t p, bool coarse) {
  const Matrix<double> source = random_rows(n, p);
  Matrix<T> x(n, p);
  for (index_t i = 0; i < n; ++i) {
    for (index_t j = 0; j < p; ++j) x(i, j) = static_cast<T>(source(i, j));
  }
  FeatureRows<T> rows;
  rows.dense = x.read();
  rows.constant = true;
  Vector<double> scale(p + 1);
  for (index_t j = 0; j <= p; ++j) scale[j] = 0.5 + 0.01 * static_cast<double>(j % 7);
  Matrix<double> first(n, n), second(n, n);
  feature_kernel<T>(rows, read(scale), coarse, first.view(), 1);
  feature_kernel<T>(rows, read(scale), coarse, second.view(), 3);
  const double epsilon = coarse ? 6e-8 : 1.2e-16;
  index_t off = 0, apart = 0;
  for (index_t i = 0; i < n; ++i) {
    for (index_t j = 0; j < n; ++j) {
      long double sum = scale[p] * scale[p], size = sum;
      for (index_t c = 0; c < p; ++c) {
        const long double s = scale[c] * static_cast<long double>(scale[c]);
        const long double part =
            s * static_cast<long double>(x(i, c)) * static_cast<long double>(x(j, c));
        sum += part;
        size += std::fabs(part);
      }
      const long double bound =
          4.0L * epsilon * std::sqrt(static_cast<long double>(p) + 16.0L) * size;
      if (!(std::fabs(static_cast<long double>(first(i, j)) - sum) <= bound)) ++off;
      if (first(i, j) != second(i, j) || first(i, j) != first(j, i)) ++apart;
    }
  }
  CHECK(off == 0);
  CHECK(apart == 0);
}

}  // namespace

TEST_CASE("kernel of few rows, of one row, and of several tiles") {
  for (const bool coarse : {true, false}) {
    check_kernel_of<float>(1, 3, coarse);
    check_kernel_of<double>(37, 91, coarse);
    check_kernel_of<float>(300, 410, coarse);
    check_kernel_of<double>(530, 40, coarse);
  }
}

TEST_CASE("ridge regressions of a kernel solve their systems") {
  const index_t n = 300, k = 3;
  const Matrix<double> half = random_rows(n, 350);
  FeatureRows<double> rows;
  rows.dense = half.read();
  const Vector<double> scale(350, 1.0);
  Matrix<double> kernel(n, n);
  feature_kernel<double>(rows, read(scale), false, kernel.view(), 2);
  Vector<double> weights(n);
  for (index_t i = 0; i < n; ++i) weights[i] = 0.5 + 0.1 * static_cast<double>(i % 5);
  const Matrix<double> b = random_rows(n, k);
  Matrix<double> y(2 * n, k);
  const Vector<double> ridges{0.25, 4.0};
  kernel_ridge(kernel.read(), read(weights), b.read(), read(ridges), y.view(), 2);
  double worst = 0.0;
  for (index_t i = 0; i < n; ++i) {
    for (index_t c = 0; c < k; ++c) {
      double first = 0.25 * y(i, c), second = 4.0 * y(n + i, c);
      for (index_t j = 0; j < n; ++j) {
        first += weights[i] * kernel(i, j) * y(j, c);
        second += weights[i] * kernel(i, j) * y(n + j, c);
      }
      worst = std::max({worst, std::fabs(first - weights[i] * b(i, c)),
                        std::fabs(second - weights[i] * b(i, c))});
    }
  }
  CHECK(worst < 1e-10);
}

TEST_CASE("ridge regressions of an indefinite kernel are NaN") {
  Matrix<double> kernel(2, 2, {1.0, 2.0, 2.0, 1.0});
  const Matrix<double> b(2, 1, {1.0, 1.0});
  Matrix<double> out(2, 1);
  const Vector<double> ridges{0.5};
  kernel_ridge(kernel.read(), {}, b.read(), read(ridges), out.view(), 1);
  CHECK(std::isnan(out(0, 0)));
  Matrix<double> oblong(2, 1, {1.0, 1.0});
  CHECK_THROWS_AS(kernel_ridge(kernel.read(), {}, oblong.read(), read(ridges), kernel.view(), 1),
                  std::invalid_argument);
}

namespace {

// Loss of a sample with logits z (1, k), which its residuals replace. Its only feature is 1.
LogitTerms one_sample(Matrix<double>& z, std::int32_t label) {
  const Matrix<double> unit(1, 1, {1.0});
  FeatureRows<double> rows;
  rows.dense = unit.read();
  const Vector<std::int32_t> labels{label};
  Matrix<double> residuals(1, z.cols());
  const LogitTerms terms =
      logit_gradient<double>(rows, read(labels), {}, 0.0, z.read(), residuals.view(), 1);
  for (index_t c = 0; c < z.cols(); ++c) z(0, c) = residuals(0, c);
  return terms;
}

// Loss and residuals against long double, of samples with probable, improbable and other labels.
template <class T>
void check_softmax(index_t n, index_t k, double spread) {
  const Matrix<double> source = random_rows(n, k);
  Matrix<double> z(n, k);
  Vector<std::int32_t> labels(n);
  for (index_t i = 0; i < n; ++i) {
    labels[i] = static_cast<std::int32_t>((7 * i) % k);
    for (index_t c = 0; c < k; ++c) z(i, c) = spread * source(i, c);
  }
  FeatureRows<T> rows;
  Matrix<T> unit(n, n);
  for (index_t i = 0; i < n; ++i) {
    for (index_t j = 0; j < n; ++j) unit(i, j) = i == j ? T(1) : T(0);
  }
  rows.dense = unit.read();
  Matrix<double> gradient(n, k);
  for (index_t i = 0; i < n; ++i) {
    for (index_t c = 0; c < k; ++c) z(i, c) = static_cast<double>(static_cast<T>(z(i, c)));
  }
  const LogitTerms terms =
      logit_gradient<T>(rows, read(labels), {}, 0.25, z.read(), gradient.view(), 2);
  const long double eps = std::numeric_limits<T>::epsilon();
  long double loss = 0.0L;
  index_t off = 0;
  for (index_t i = 0; i < n; ++i) {
    long double top = z(i, 0), sum = 0.0L;
    for (index_t c = 0; c < k; ++c) top = std::max(top, static_cast<long double>(z(i, c)));
    for (index_t c = 0; c < k; ++c) sum += std::exp(static_cast<long double>(z(i, c)) - top);
    loss += std::log(sum) + top - static_cast<long double>(z(i, labels[i]));
    for (index_t c = 0; c < k; ++c) {
      const long double share = std::exp(static_cast<long double>(z(i, c)) - top) / sum;
      const long double exact = share - (c == labels[i] ? 1.0L : 0.0L) + 0.25L * z(i, c);
      const long double room = 1.0L + std::fabs(static_cast<long double>(z(i, c)));
      if (!(std::fabs(gradient(i, c) - exact) <= 8.0L * eps * room * (1.0L + spread / 8.0L))) ++off;
    }
  }
  CHECK(off == 0);
  CHECK(static_cast<double>(std::fabs(terms.loss - loss)) <=
        static_cast<double>(8.0L * eps * (1.0L + spread / 8.0L) * (loss + 1.0L)));
}

}  // namespace

TEST_CASE("softmax: probabilities and losses of two classes have relative errors of some ulps") {
  const index_t n = 7000;
  Matrix<double> z(n, 2);
  for (index_t i = 0; i < n; ++i) z(i, 1) = -0.1 * static_cast<double>(i) - 1e-9;
  double worst = 0.0;
  for (index_t i = 0; i < n; ++i) {
    const long double share = std::exp(static_cast<long double>(z(i, 1)));
    Matrix<double> one(1, 2, {0.0, z(i, 1)});
    const LogitTerms terms = one_sample(one, 0);
    const long double loss = std::log1p(share), other = share / (1.0L + share);
    worst = std::max({worst, static_cast<double>(std::fabs(terms.loss - loss) / loss),
                      static_cast<double>(std::fabs(one(0, 1) - other) / other),
                      static_cast<double>(std::fabs(one(0, 0) + other) / other)});
  }
  CHECK(worst < 5.0 * std::numeric_limits<double>::epsilon());
}

TEST_CASE("softmax: non-finite and huge logits") {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  const double infinity = std::numeric_limits<double>::infinity();
  const auto loss_of = [](double first, double second, std::int32_t label) {
    Matrix<double> z(1, 2, {first, second});
    return one_sample(z, label).loss;
  };
  CHECK_FALSE(std::isfinite(loss_of(nan, 0.0, 0)));
  CHECK_FALSE(std::isfinite(loss_of(0.0, nan, 0)));
  CHECK_FALSE(std::isfinite(loss_of(infinity, 0.0, 0)));
  CHECK_FALSE(std::isfinite(loss_of(-infinity, 0.0, 0)));
  CHECK(loss_of(0.0, -infinity, 0) == 0.0);
  CHECK(loss_of(0.0, -800.0, 0) == 0.0);
  CHECK(loss_of(0.0, -800.0, 1) == 800.0);
  CHECK(loss_of(1e300, -1e300, 1) == 2e300);
}

TEST_CASE("softmax: residuals and losses, also tiny losses, of few and of many classes") {
  for (const double spread : {0.1, 5.0, 150.0}) {
    for (const index_t k : {1, 2, 3, 10, 33, 300}) {
      check_softmax<double>(130, k, spread);
      check_softmax<float>(130, k, spread);
    }
    check_softmax<double>(3, 5000, spread);
  }
  // The loss of a probable label is the other classes' probability, not the rounding of 1.
  Matrix<double> z(1, 2, {40.0, 0.0});
  const LogitTerms terms = one_sample(z, 0);
  CHECK(terms.loss == doctest::Approx(std::exp(-40.0)).epsilon(1e-15));
  CHECK(z(0, 0) == doctest::Approx(-std::exp(-40.0)).epsilon(1e-15));
}
