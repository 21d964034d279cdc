// The metric's solves against a dense Cholesky factor in long double.
#include <doctest/doctest.h>

#include <cmath>
#include <limits>
#include <memory>
#include <numeric>
#include <stdexcept>

#include "eigenfeat/logit.hpp"
#include "eigenfeat/tier.hpp"
#include "eigenfeat/vector.hpp"
#include "unit/features_support.hpp"

using namespace eigenfeat;
using namespace eigenfeat::support;

namespace {

template <class T>
std::unique_ptr<Metric> make(const FeatureRows<T>& rows, const Vector<double>& weights,
                             const Vector<double>& scale, const Vector<double>& diagonal,
                             double factor = 0.5, bool dual = false,
                             Metric::Products products = Metric::Products::single) {
  if (dual) {
    return Metric::make_dual<T>(rows, read(weights), read(scale), read(diagonal), factor, products,
                                2);
  }
  return Metric::make<T>(rows, read(weights), read(scale), read(diagonal), factor,
                         Metric::Products::single, 2);
}

// H^-1 b of dense rows, with unit scale and a diagonal of n.
template <class T>
Vector<double> solved(const FeatureRows<T>& rows, const Matrix<double>& b,
                      Metric::Products products, int n_threads) {
  const index_t p = rows.cols();
  const Vector<double> scale(p, 1.0), diagonal(p, static_cast<double>(rows.rows()));
  const auto metric = Metric::make<T>(rows, {}, read(scale), read(diagonal), 0.5, products, 1);
  Vector<double> out(p * b.cols());
  metric->solve(b.read(), row_major(out.data(), p, b.cols()), n_threads);
  return out;
}

// 1 / root mean square of every feature, the scale that callers of the metric use.
Vector<double> inverse_rms(const linear::Table& phi) {
  Vector<double> scale(phi.cols, 1.0);
  for (index_t j = 0; j < phi.cols; ++j) {
    long double square = 0;
    for (index_t i = 0; i < phi.rows; ++i) square += phi(i, j) * phi(i, j);
    if (square > 0)
      scale[j] = static_cast<double>(std::sqrt(static_cast<long double>(phi.rows) / square));
  }
  return scale;
}

// The norm of D^-1 (x - H^-1 b) relative to that of D^-1 H^-1 b. A solve in float may have an error
// of eps cond(D H D). The condition number is at most the trace over the least diagonal entry.
template <class T>
void check_solve(Random& random, const Features<T>& features, const Vector<double>& weights,
                 double damping, index_t k, bool dual = false) {
  const index_t n = features.rows.rows(), p = features.rows.cols();
  const Vector<double> scale = inverse_rms(features.phi),
                       diagonal(p, damping * static_cast<double>(n));
  const auto metric = make<T>(features.rows, weights, scale, diagonal, 0.5, dual);
  REQUIRE(metric->positive());
  CHECK(metric->order() == p);
  const Matrix<double> b = random.normal_matrix<double>(p, k, Order::rows, 2);
  Matrix<double> x(p, k, Order::rows, 1);
  metric->solve(b.read(), x.view(), 2);
  CHECK(x.padding_untouched());
  linear::Table factor = linear::metric(features.phi, weights, scale, diagonal, 0.5L);
  REQUIRE(linear::factorise(factor));
  linear::Table right = linear::table_of(b.read());
  linear::solve(factor, right);
  long double error = 0, size = 0;
  for (index_t j = 0; j < p; ++j) {
    for (index_t c = 0; c < k; ++c) {
      const long double unit = static_cast<long double>(scale[j]);
      error = std::max(error, std::fabs(static_cast<long double>(x(j, c)) - right(j, c)) / unit);
      size = std::max(size, std::fabs(right(j, c)) / unit);
    }
  }
  const long double trace = static_cast<long double>(p) * (1.5L + damping);
  CHECK(error <= 4 * epsilon<float>() * trace / damping * size);
}

}  // namespace

TEST_CASE_TEMPLATE("solves for every kind of rows", T, float, double) {
  Random random(321);
  for (const Kind kind : kKinds) {
    for (const bool constant : {false, true}) {
      const Features<T> features(random, kind, 60, 5, constant, {Wave::half_wave, {1, 2, 3}, true});
      for (const index_t k : {1, 2, 10, 16, 17, 64, 65, 100}) {
        check_solve<T>(random, features, {}, 0.1, k);
        check_solve<T>(random, features, random_weights(random, 60), 0.1, k);
      }
    }
  }
}

TEST_CASE_TEMPLATE("solves of rows and features beyond one tile or panel", T, float, double) {
  Random random(322);
  for (const index_t p : {1, 254, 255, 256, 257}) {
    const Features<T> features(random, Kind::dense, 40, p, true);
    check_solve<T>(random, features, {}, 0.3, 3);
  }
  const Features<T> wide(random, Kind::expanded, 50, 90, false);
  check_solve<T>(random, wide, {}, 0.3, 10);
  for (const index_t n : {1, 2047, 2048, 2049, 4097}) {
    const Features<T> features(random, Kind::dense, n, 4, true, {}, 0);
    check_solve<T>(random, features, random_weights(random, n), 0.3, 2);
  }
}

// The Gram matrix by 8-bit products: the rows of its lower triangle, one after the other.
template <class T>
Vector<double> coarse_gram(const Features<T>& features, int n_threads) {
  const index_t p = features.rows.cols();
  const Vector<double> scale(p, 1.0);
  Vector<double> gram(p * (p + 1) / 2);
  scaled_gram<T>(features.rows, {}, read(scale), Metric::Products::coarse,
                 {gram.data(), gram.size()}, n_threads);
  return gram;
}

// Multiples of 51 from -102 to 153 are among 255 steps of 1, hence exact in 8 bits. Float sums are
// exact up to 2^24.
TEST_CASE_TEMPLATE("8-bit products of numbers that 8 bits can hold are exact", T, float, double) {
  Random random(328);
  for (const index_t n : {2, 37, 2050}) {
    for (const index_t p : {513, 544, 767}) {
      Features<T> features(random, Kind::dense, n, p, true);
      for (index_t i = 0; i < n; ++i) {
        for (index_t j = 0; j < p; ++j) {
          const index_t any = static_cast<index_t>(6.0 * random.uniform()) - 2;
          const index_t at = i == 0 || i == 2048 ? -2 : i == 1 || i == 2049 ? 3 : any;
          features.x(i, j) = static_cast<T>(51 * at);
          features.phi(i, j) = static_cast<long double>(51 * at);
        }
      }
      const Vector<double> gram = coarse_gram(features, 1);
      CHECK(coarse_gram(features, 2) == gram);
      CHECK(coarse_gram(features, 7) == gram);
      const bool few = n <= 37;
      for (index_t i = 0; i <= p; i += few ? 1 : 19) {
        double worst = 0.0;  // relative to the sum
        for (index_t j = 0; j <= i; ++j) {
          double sum = 0.0;
          for (index_t r = 0; r < n; ++r)
            sum += static_cast<double>(features.phi(r, i) * features.phi(r, j));
          const double error = std::abs(gram[i * (i + 1) / 2 + j] - sum);
          if (error > 0.0) worst = std::max(worst, error / std::abs(sum));
        }
        // The constant's step 1 / 255 is rounded, and a BLAS may add samples one after the other.
        const double roundings = few ? 4.0 : static_cast<double>(n);
        CHECK(worst <= (few && i < p ? 0.0 : roundings * static_cast<double>(epsilon<float>())));
      }
    }
  }
}

// Heavy tails, columns of one sign, rare indicators, a column of zeros and some outliers. The error
// of each number is at most half of one of 255 steps over the range, which ends at 16 root mean
// squares, or at 32 for indicators of two samples in a panel. Outliers are multiplied in float.
TEST_CASE_TEMPLATE("8-bit products are within their bounds", T, float, double) {
  Random random(329);
  const index_t n = 2300, p = 520;
  Features<T> features(random, Kind::dense, n, p, false);
  for (index_t j = 0; j < p; ++j) {
    for (index_t i = 0; i < n; ++i) {
      const double x = random.normal();
      double at = x * std::abs(x);
      if (j % 4 == 1) at = std::max(at, 0.0);
      if (j % 4 == 2) at = i % 1000 == j % 1000 ? 3.0 : 0.0;
      if (j % 4 == 3) at *= 1e-3;
      if (j == 7) at = 0.0;
      if (i % 500 == 13) at *= 1e4;
      features.x(i, j) = static_cast<T>(at);
      features.phi(i, j) = static_cast<long double>(features.x(i, j));
    }
  }
  const Vector<double> gram = coarse_gram(features, 2);
  CHECK(coarse_gram(features, 1) == gram);
  Vector<long double> root(p, 0.0L);
  for (index_t j = 0; j < p; ++j) {
    for (index_t i = 0; i < n; ++i) root[j] += features.phi(i, j) * features.phi(i, j);
    root[j] = std::sqrt(root[j]);  // not of the mean, as the bounds below are sums
  }
  long double largest = 0;
  index_t k = 0;
  for (index_t i = 0; i < p; ++i) {
    for (index_t j = 0; j <= i; ++j, ++k) {
      long double sum = 0;
      for (index_t r = 0; r < n; ++r) sum += features.phi(r, i) * features.phi(r, j);
      if (root[i] * root[j] > 0)
        largest = std::max(largest, std::fabs(gram[k] - sum) / (root[i] * root[j]));
      else
        REQUIRE(gram[k] == 0.0);
    }
  }
  // By Cauchy's inequality factors have errors of at most half a step, 32 / 255 of their root.
  const long double half_step = 32.0L / 255;
  CHECK(largest <= 2 * half_step + half_step * half_step);
}

// Bounds |dH| by half a step of each feature, whose range is about seven deviations; H >= n.
TEST_CASE_TEMPLATE("solves by 8-bit products are within their bounds", T, float, double) {
  Random random(329);
  const index_t n = 301, p = 600;
  const Features<T> features(random, Kind::dense, n, p, false);
  const Matrix<double> b = random.normal_matrix<double>(p, 3);
  const auto exact = solved<T>(features.rows, b, Metric::Products::single, 1);
  const auto near = solved<T>(features.rows, b, Metric::Products::coarse, 1);
  CHECK(solved<T>(features.rows, b, Metric::Products::coarse, 2) == near);
  double error = 0.0, size = 0.0;
  for (index_t i = 0; i < exact.size(); ++i) {
    error += (near[i] - exact[i]) * (near[i] - exact[i]);
    size += exact[i] * exact[i];
  }
  // The Gram matrix's norm is about (sqrt n + sqrt p)^2, the diagonal n.
  const double norm = 0.5 * std::pow(std::sqrt(n) + std::sqrt(p), 2.0);
  CHECK(std::sqrt(error / size) <= 0x1p-8 * (norm + n) / n);
}

TEST_CASE_TEMPLATE("a non-finite feature gives no metric", T, float, double) {
  Random random(333);
  Features<T> features(random, Kind::dense, 40, 600, false);
  features.x(3, 17) = std::numeric_limits<T>::infinity();
  const Vector<double> ones(600, 1.0);
  for (const auto products : {Metric::Products::single, Metric::Products::coarse}) {
    const auto metric =
        Metric::make<T>(features.rows, {}, read(ones), read(ones), 0.5, products, 2);
    CHECK_FALSE(metric->positive());
  }
}

// If EIGENFEAT_CPU names a tier below AVX-512, no kernel uses AVX-512.
TEST_CASE("tiers below AVX-512 have no 8-bit products") {
  Random random(332);
  const Features<float> features(random, Kind::dense, 60, 600, false);
  const Matrix<double> b = random.normal_matrix<double>(600, 2);
  const auto exact = solved<float>(features.rows, b, Metric::Products::single, 1);
  const auto coarse = solved<float>(features.rows, b, Metric::Products::coarse, 1);
  if (tier_in_use() != Tier::v4) CHECK(coarse == exact);
}

TEST_CASE_TEMPLATE("features and right-hand sides of any magnitude", T, float, double) {
  Random random(323);
  Features<T> features(random, Kind::dense, 50, 6, true, {}, 0);
  for (index_t j = 0; j < 6; ++j) {
    const T size = static_cast<T>(std::pow(10.0, 5.0 * static_cast<double>(j) - 12.0));
    for (index_t i = 0; i < 50; ++i) {
      features.x(i, j) *= size;
      features.phi(i, j) = static_cast<long double>(features.x(i, j));
    }
  }
  check_solve<T>(random, features, {}, 0.1, 3);

  const Vector<double> scale = inverse_rms(features.phi), diagonal(7, 5.0);
  const auto metric = make<T>(features.rows, {}, scale, diagonal);
  Matrix<double> b = random.normal_matrix<double>(7, 2), x(7, 2), far(7, 2);
  metric->solve(b.read(), x.view(), 1);
  for (index_t j = 0; j < 7; ++j) {
    for (index_t c = 0; c < 2; ++c) b(j, c) *= 0x1p200;
  }
  metric->solve(b.read(), far.view(), 1);
  for (index_t j = 0; j < 7; ++j) {
    for (index_t c = 0; c < 2; ++c) CHECK(far(j, c) == x(j, c) * 0x1p200);
  }
  const Matrix<double> zero(7, 2);
  metric->solve(zero.read(), x.view(), 1);
  CHECK(x(3, 1) == 0.0);
}

TEST_CASE_TEMPLATE("a matrix that is not positive definite is refused", T, float, double) {
  Random random(324);
  const Features<T> features(random, Kind::dense, 20, 300, false);
  const Vector<double> scale(300, 1.0), none(300, 0.0);
  Vector<double> diagonal(300, 1.0);
  CHECK(make<T>(features.rows, {}, scale, diagonal)->positive());
  diagonal[7] = -100.0;
  CHECK_FALSE(make<T>(features.rows, {}, scale, diagonal)->positive());
  diagonal[7] = 1.0;
  diagonal[290] = -100.0;  // in the second tile
  const auto metric = make<T>(features.rows, {}, scale, diagonal);
  CHECK_FALSE(metric->positive());
  const Matrix<double> b(300, 1);
  Matrix<double> x(300, 1);
  CHECK(
      starts_with(message_of<std::invalid_argument>([&] { metric->solve(b.read(), x.view(), 1); }),
                  "metric: "));
  diagonal[290] = std::numeric_limits<double>::quiet_NaN();
  CHECK_FALSE(make<T>(features.rows, {}, scale, diagonal)->positive());
  diagonal[290] = std::numeric_limits<double>::infinity();
  CHECK_FALSE(make<T>(features.rows, {}, scale, diagonal)->positive());
  CHECK_FALSE(make<T>(features.rows, {}, scale, none, 0.0)->positive());
}

TEST_CASE_TEMPLATE("errors of the metric name the argument", T, float, double) {
  Random random(325);
  const Features<T> features(random, Kind::dense, 6, 3, true);
  const Vector<double> four(4, 1.0), five(5, 1.0), all;
  const auto error = [&](const Vector<double>& weights, const Vector<double>& scale,
                         const Vector<double>& diagonal) {
    return message_of<std::invalid_argument>(
        [&] { make<T>(features.rows, weights, scale, diagonal); });
  };
  CHECK(error(all, four, four).empty());
  CHECK(starts_with(error(all, five, four), "scale: expected 4 entries, got 5"));
  CHECK(starts_with(error(all, four, five), "diagonal: expected 4 entries, got 5"));
  CHECK(starts_with(error(four, four, four), "weights: expected 6 entries, got 4"));
  const auto metric = make<T>(features.rows, {}, four, four);
  const Matrix<double> b(4, 2), few(3, 2), across(4, 2, Order::columns);
  Matrix<double> x(4, 2), narrow(4, 1);
  const auto solve = [&](const Matrix<double>& right, Matrix<double>& out) {
    return message_of<std::invalid_argument>([&] { metric->solve(right.read(), out.view(), 1); });
  };
  CHECK(starts_with(solve(few, x), "b: expected 4 rows, got 3"));
  CHECK(starts_with(solve(across, x), "b: "));
  CHECK(starts_with(solve(b, narrow), "out: "));
}

TEST_CASE_TEMPLATE("solves by the kernel matrix of the rows", T, float, double) {
  Random random(326);
  for (const Kind kind : kKinds) {
    const Features<T> features(random, kind, 30, 11, true, {Wave::half_wave, {1, 2, 3}, true});
    for (const index_t k : {1, 10, 17, 33, 65}) {
      check_solve<T>(random, features, {}, 0.1, k, true);
      check_solve<T>(random, features, random_weights(random, 30), 0.1, k, true);
    }
  }
  for (const index_t n : {1, 255, 256, 257}) {
    const Features<T> features(random, Kind::dense, n, 300, true);
    check_solve<T>(random, features, random_weights(random, n), 0.3, 3, true);
  }
}

// A preconditioner must have b^T H^-1 b > 0, also in H's largest eigenvectors, where the solve by
// the kernel matrix subtracts two almost equal numbers.
TEST_CASE_TEMPLATE("solves are positive for every damping", T, float, double) {
  Random random(327);
  const index_t n = 40, p = 301;
  Features<T> features(random, Kind::dense, n, p - 1, true, {}, 0);
  for (index_t i = 0; i < n; ++i) {
    for (index_t j = 0; j < p - 1; ++j) {  // a strong common direction
      features.x(i, j) += T(3);
      features.phi(i, j) = static_cast<long double>(features.x(i, j));
    }
  }
  const Vector<double> scale = inverse_rms(features.phi);
  for (const bool dual : {false, true}) {
    // The solve by the kernel matrix needs a damping of eps times the trace, which is n p here.
    const double eps = static_cast<double>(epsilon<float>());
    const double least = dual ? eps * static_cast<double>(p) : 4 * eps;
    for (const double damping : {1e-1, 1e-3, least}) {
      CAPTURE(dual);
      CAPTURE(damping);
      const Vector<double> diagonal(p, damping * static_cast<double>(n));
      const auto metric = make<T>(features.rows, {}, scale, diagonal, 0.5, dual);
      if (!metric->positive()) continue;
      Matrix<double> r(n, 1), b(p, 1), x(p, 1);
      for (index_t turn = 0; turn < 5; ++turn) {
        for (index_t i = 0; i < n; ++i) r(i, 0) = turn == 0 ? 1.0 : random.normal();
        const linear::Sum back = linear::products(features.phi, linear::table_of(r.read()));
        for (index_t j = 0; j < p; ++j) b(j, 0) = static_cast<double>(back.value(j, 0));
        metric->solve(b.read(), x.view(), 1);
        double product = 0.0;
        for (index_t j = 0; j < p; ++j) product += b(j, 0) * x(j, 0);
        CHECK(product > 0.0);
      }
    }
  }
}

// The rounding error of a factor in the features' type is a few times that of the products.
TEST_CASE_TEMPLATE("a dual factor in the features' type solves as one in double does", T, float,
                   double) {
  Random random(331);
  const index_t n = 300, p = 700;
  const Features<T> features(random, Kind::dense, n, p, false, {}, 0);
  const Vector<double> weights = random_weights(random, n), scale = inverse_rms(features.phi),
                       diagonal(p, 0.05 * static_cast<double>(n));
  Matrix<double> b(p, 3), exact(p, 3), found(p, 3);
  for (index_t j = 0; j < p; ++j) {
    for (index_t c = 0; c < 3; ++c) b(j, c) = random.normal();
  }
  make<T>(features.rows, weights, scale, diagonal, 0.5, true)->solve(b.read(), exact.view(), 2);
  make<T>(features.rows, weights, scale, diagonal, 0.5, true, Metric::Products::coarse)
      ->solve(b.read(), found.view(), 2);
  double largest = 0.0, gap = 0.0;
  for (index_t j = 0; j < p; ++j) {
    for (index_t c = 0; c < 3; ++c) {
      largest = std::max(largest, std::abs(exact(j, c)));
      gap = std::max(gap, std::abs(exact(j, c) - found(j, c)));
    }
  }
  // |c B^T B| / min A is at most the trace, n p / 2, over 0.05 n.
  CHECK(gap <= 10.0 * static_cast<double>(p) * static_cast<double>(epsilon<float>()) * largest);
}

// Sums over parts of the rows and a factor of the sum agree with Metric::make of all rows.
TEST_CASE_TEMPLATE("a Gram matrix summed over parts solves as that of all rows does", T, float,
                   double) {
  Random random(330);
  for (const index_t p : {1, 7, 255, 256, 300}) {
    for (const bool constant : {false, true}) {
      if (constant && p == 300) continue;  // covered by 257 columns
      const Features<T> first(random, Kind::dense, 70, p, constant, {}, 0),
          second(random, Kind::dense, 2100, p, constant, {}, 0);
      const index_t q = first.rows.cols();
      const Vector<double> weights = random_weights(random, 70), none, scale(q, 0.5),
                           diagonal(q, 300.0);
      const auto parts = [&](int n_threads) {
        Vector<double> gram(q * (q + 1) / 2), rest(gram);
        scaled_gram<T>(first.rows, read(weights), read(scale), Metric::Products::single,
                       {gram.data(), gram.size()}, n_threads);
        scaled_gram<T>(second.rows, read(none), read(scale), Metric::Products::single,
                       {rest.data(), rest.size()}, n_threads);
        for (index_t i = 0; i < gram.size(); ++i) gram[i] += rest[i];
        return gram;
      };
      const Vector<double> gram = parts(1);
      CHECK(parts(2) == gram);
      CHECK(parts(7) == gram);
      double largest = 0.0;
      for (const double entry : gram) largest = std::max(largest, std::abs(entry));
      // Column by column, with the weights in one factor; double suffices for single products.
      Vector<double> columns, weighted;
      for (index_t i = 0; i < q; ++i) {
        for (index_t r = 0; r < 2170; ++r) {
          const long double entry = r < 70 ? first.phi(r, i) : second.phi(r - 70, i);
          columns.push_back(static_cast<double>(entry));
          weighted.push_back(columns.back() * (r < 70 ? weights[r] : 1.0) / 4);
        }
      }
      for (index_t i = 0; i < q; ++i) {
        for (index_t j = 0; j <= i; ++j) {
          const double* const left = weighted.data() + 2170 * i;
          const double sum = std::inner_product(left, left + 2170, columns.data() + 2170 * j, 0.0);
          const double error = gram[i * (i + 1) / 2 + j] - sum;
          REQUIRE(std::abs(error) <= 2000 * epsilon<float>() * largest);
        }
      }
      const auto metric = Metric::from_gram(read(gram), read(scale), read(diagonal), 0.25, 2);
      REQUIRE(metric->positive());
      linear::Table factor(q, q);
      for (index_t i = 0; i < q; ++i) {
        for (index_t j = 0; j < q; ++j) {
          const index_t high = std::max(i, j), low = std::min(i, j);
          const long double entry = gram[high * (high + 1) / 2 + low];
          factor(i, j) = (0.25L * entry + (i == j ? 300.0L : 0.0L)) * 4;
        }
      }
      REQUIRE(linear::factorise(factor));
      const Matrix<double> b = random.normal_matrix<double>(q, 3);
      Matrix<double> x(q, 3);
      metric->solve(b.read(), x.view(), 2);
      linear::Table right = linear::table_of(b.read());
      linear::solve(factor, right);
      long double error = 0, size = 0;
      for (index_t j = 0; j < q; ++j) {
        for (index_t c = 0; c < 3; ++c) {
          error = std::max(error, std::fabs(static_cast<long double>(x(j, c)) - right(j, c)));
          size = std::max(size, std::fabs(right(j, c)));
        }
      }
      CHECK(error <=
            4 * epsilon<float>() * static_cast<long double>(q) * (1 + largest / 300) * size);
    }
  }
}

TEST_CASE_TEMPLATE("indefinite Gram matrices and Gram matrices of a wrong size are refused", T,
                   float, double) {
  Random random(331);
  const Features<T> features(random, Kind::dense, 6, 3, true);
  const Vector<double> four(4, 1.0), five(5, 1.0);
  Vector<double> gram(10), short_gram(9);
  const auto sum = [&](const Vector<double>& scale, Vector<double>& out) {
    return message_of<std::invalid_argument>([&] {
      scaled_gram<T>(features.rows, {}, read(scale), Metric::Products::coarse,
                     {out.data(), out.size()}, 1);
    });
  };
  CHECK(sum(four, gram).empty());
  CHECK(starts_with(sum(four, short_gram), "gram: expected 10 entries, got 9"));
  CHECK(starts_with(sum(five, gram), "scale: expected 4 entries, got 5"));
  const auto make = [&](const Vector<double>& sums, const Vector<double>& diagonal) {
    return message_of<std::invalid_argument>(
        [&] { Metric::from_gram(read(sums), read(four), read(diagonal), 1.0, 1); });
  };
  CHECK(make(gram, four).empty());
  CHECK(starts_with(make(short_gram, four), "gram: expected 10 entries, got 9"));
  CHECK(starts_with(make(gram, five), "diagonal: expected 4 entries, got 5"));
  gram.assign(10, 0.0);
  gram[9] = -2.0;
  CHECK_FALSE(Metric::from_gram(read(gram), read(four), read(four), 1.0, 1)->positive());
}
