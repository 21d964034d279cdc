// Minima over balls against Jacobi rotations and bisection, and signs against the minimum.
#include <doctest/doctest.h>

#include <cmath>
#include <limits>
#include <stdexcept>

#include "eigenfeat/trust_region.hpp"
#include "eigenfeat/vector.hpp"
#include "reference/decision_reference.hpp"
#include "unit/support.hpp"

using namespace eigenfeat;
using namespace eigenfeat::support;

namespace {

struct Minima {
  explicit Minima(index_t n, index_t d)
      : values(n),
        multipliers(n),
        gaps(n),
        residuals(n),
        hard(n),
        iterations(n),
        status(n),
        points(n, d) {}
  BallMinima views() {
    return {write(values),    points.view(), write(multipliers), write(gaps),
            write(residuals), write(hard),   write(iterations),  write(status)};
  }
  Vector<double> values, multipliers, gaps, residuals;
  Vector<int> hard, iterations, status;
  Matrix<double> points;
};

Minima minimise(const Matrix<double>& a, const Matrix<double>& g, const Vector<double>& radii,
                bool dense, int n_threads = 2) {
  Minima out(g.rows(), g.cols());
  minimise_over_ball({a.read(), g.read(), read(radii), dense}, out.views(), n_threads);
  return out;
}

struct Signs {
  explicit Signs(index_t n) : verdicts(n), lower(n), upper(n), passes(n) {}
  Vector<int> verdicts;
  Vector<double> lower, upper;
  Vector<int> passes;
};

Signs certified(const Matrix<double>& a, const Matrix<double>& g, const Vector<double>& constants,
                const Vector<double>& radii, bool dense, int n_threads = 2) {
  Signs out(g.rows());
  certify_over_ball({a.read(), g.read(), read(radii), dense}, read(constants),
                    {write(out.verdicts), write(out.lower), write(out.upper), write(out.passes)},
                    n_threads);
  return out;
}

reference::Numbers numbers(const double* x, index_t n) {
  return {x, x + n};
}

enum class Kind { indefinite, positive, singular, zero, hard, equal, graded };
constexpr Kind kKinds[] = {Kind::indefinite, Kind::positive, Kind::singular, Kind::zero,
                           Kind::hard,       Kind::equal,    Kind::graded};

// A diagonal quadratic of the given kind, in units of 2^power.
void fill(Random& random, Kind kind, double scale, double* a, double* g, index_t d) {
  for (index_t i = 0; i < d; ++i) {
    a[i] = scale * random.normal();
    g[i] = scale * random.normal() * std::pow(10.0, 3 * random.normal());
    if (kind == Kind::positive || kind == Kind::singular) a[i] = std::fabs(a[i]);
    if (kind == Kind::zero) a[i] = 0.0;
    if (kind == Kind::equal) a[i] = -scale;
    if (kind == Kind::graded) a[i] *= std::pow(10.0, -static_cast<double>(i));
  }
  const index_t lowest = std::min_element(a, a + d) - a;
  if (kind == Kind::singular) a[lowest] = 0.0;
  if (kind == Kind::hard || kind == Kind::singular) g[lowest] = 0.0;
}

double norm(const double* x, index_t n) {
  double sum = 0.0;
  for (index_t i = 0; i < n; ++i) sum += x[i] * x[i];
  return std::sqrt(sum);
}

}  // namespace

TEST_CASE("minima of diagonal quadratics of every kind, dimension and unit") {
  Random random(501);
  for (const Kind kind : kKinds) {
    for (const index_t d : {1, 2, 3, 7, 8, 9, 26}) {
      for (const double scale : {1.0, 1e-130, 1e130}) {
        constexpr index_t kItems = 5;
        Matrix<double> a(kItems, d), g(kItems, d);
        Vector<double> radii;
        for (index_t i = 0; i < kItems; ++i) {
          fill(random, kind, scale, &a(i, 0), &g(i, 0), d);
          radii.push_back(std::pow(10.0, 2 * random.normal()));
        }
        const Minima got = minimise(a, g, radii, false);
        for (index_t i = 0; i < kItems; ++i) {
          const auto right = reference::minimum_over_ball(
              numbers(&a(i, 0), d), numbers(&g(i, 0), d), static_cast<long double>(radii[i]));
          const double value = static_cast<double>(right.value);
          CHECK(std::fabs(got.values[i] - value) <= 1e-13 * std::fabs(value));
          CHECK(std::fabs(got.gaps[i]) <= 1e-12 * std::fabs(value));
          CHECK(got.residuals[i] <= 1e-13);
          CHECK(got.status[i] == 0);
          CHECK(norm(&got.points(i, 0), d) <= radii[i] * (1 + 1e-14));
          CHECK(got.multipliers[i] >= 0.0);
        }
      }
    }
  }
}

TEST_CASE("the hard case and cases near it, by hand") {
  const Matrix<double> a(4, 2, {-1, 3, -1, 3, -1, 3, 0, 0});
  const Matrix<double> g(4, 2, {0, 4, 1e-18, 4, 0, 9, 0, 0});
  const Minima got = minimise(a, g, {2.0, 2.0, 2.0, 2.0}, false);
  // mu = 1, x_2 = -1, x_1 fills the ball: -3 + 3 - 8
  CHECK(got.values[0] == doctest::Approx(-8).epsilon(1e-15));
  CHECK(got.multipliers[0] == 1.0);
  CHECK(got.hard[0] == 1);
  CHECK(std::fabs(got.points(0, 0)) == doctest::Approx(std::sqrt(3.0)).epsilon(1e-15));
  CHECK(got.points(0, 1) == doctest::Approx(-1).epsilon(1e-15));
  CHECK(got.values[1] == doctest::Approx(-8).epsilon(1e-15));
  CHECK(got.points(1, 0) < 0.0);
  CHECK(got.hard[1] == 1);
  CHECK(got.hard[2] == 0);  // |x| = 9 / 4 > 2 at mu = 1: not hard
  CHECK(got.multipliers[2] > 1.0);
  CHECK(got.values[3] == 0.0);
  CHECK(got.multipliers[3] == 0.0);
}

TEST_CASE("a ball of radius zero") {
  const Matrix<double> a(2, 2, {-1, 3, -2, 3}), g(2, 2, {1, 4, 0, 0});
  const Minima got = minimise(a, g, {0.0, 0.0}, false);
  CHECK(got.values == Vector<double>{0.0, 0.0});
  CHECK(std::isinf(got.multipliers[0]));
  CHECK(got.multipliers[1] == 2.0);
}

TEST_CASE("minima of dense quadratics, with one matrix for each row or for all") {
  Random random(502);
  for (const index_t d : {1, 2, 3, 8, 20}) {
    for (int kind = 0; kind < 6; ++kind) {
      constexpr index_t kItems = 7;  // enough for eigenvectors
      Matrix<double> stack(kItems * d, d), g(kItems, d);
      Vector<double> radii;
      for (index_t i = 0; i < kItems; ++i) {
        Matrix<double> one = kind == 1 ? random.positive_definite<double>(d, 0.1)
                                       : random.symmetric<double>(d, Order::rows);
        const double factor = kind == 2 ? 0.0 : kind == 3 ? 1e120 : 1.0;
        for (index_t j = 0; j < d; ++j) {
          for (index_t k = 0; k < d; ++k) {
            double entry = one(j, k) * factor;
            if (kind == 4) entry = one(0, j) * one(0, k);  // of rank one
            if (kind == 5) entry = j == k ? -1.0 : 0.0;
            stack(i * d + j, k) = entry;
          }
          g(i, j) = kind == 5 && i % 2 == 0 ? 0.0 : random.normal() * (kind == 3 ? 1e110 : 1.0);
        }
        radii.push_back(std::pow(10.0, random.normal()));
      }
      Matrix<double> first(d, d);
      for (index_t j = 0; j < d; ++j) {
        for (index_t k = 0; k < d; ++k) first(j, k) = stack(j, k);
      }
      for (const bool shared : {false, true}) {
        const Minima got = minimise(shared ? first : stack, g, radii, true);
        for (index_t i = 0; i < kItems; ++i) {
          Matrix<double> one(d, d);
          double size = 0.0;
          for (index_t j = 0; j < d; ++j) {
            for (index_t k = 0; k < d; ++k) {
              one(j, k) = shared ? first(j, k) : stack(i * d + j, k);
              size = std::hypot(size, one(j, k));
            }
          }
          const double radius = radii[i];
          const auto right = reference::minimum_over_ball(
              reference::Table(one.read()), numbers(&g(i, 0), d), static_cast<long double>(radius));
          const double scale = size * radius * radius + norm(&g(i, 0), d) * radius;
          CHECK(std::fabs(got.values[i] - static_cast<double>(right.value)) <=
                1e-14 * static_cast<double>(d) * scale);
          CHECK(std::fabs(got.gaps[i]) <= 1e-14 * static_cast<double>(d) * scale);
          CHECK(got.residuals[i] <= 1e-13);
          CHECK(got.status[i] == 0);
          CHECK(norm(&got.points(i, 0), d) <= radius * (1 + 1e-13));
        }
      }
    }
  }
}

TEST_CASE("in the dense hard case the minimum is on the sphere") {
  Random random(503);
  for (const index_t d : {2, 5, 16}) {
    const reference::Eigenpairs pairs = reference::symmetric_eigenpairs(
        reference::Table(random.symmetric<double>(d, Order::rows).read()));
    Matrix<double> a(d, d), g(1, d);
    for (index_t i = 0; i < d; ++i) {
      for (index_t j = 0; j < d; ++j) {
        long double sum = 0;
        for (index_t k = 0; k < d; ++k)
          sum +=
              (pairs.value(k) - pairs.value(d - 1) - 1) * pairs.vectors(i, k) * pairs.vectors(j, k);
        a(i, j) = a(j, i) = static_cast<double>(sum);
      }
      for (index_t k = 0; k + 1 < d; ++k)
        g(0, i) +=
            0.1 * static_cast<double>(pairs.vectors(i, k) * (pairs.value(k) - pairs.value(d - 1)));
    }
    const Minima got = minimise(a, g, {3.0}, true);
    CHECK(got.hard[0] == 1);
    CHECK(got.multipliers[0] == doctest::Approx(1.0).epsilon(1e-13));
    CHECK(norm(&got.points(0, 0), d) == doctest::Approx(3.0).epsilon(1e-13));
    CHECK(got.residuals[0] <= 1e-13);
    CHECK(std::fabs(got.gaps[0]) <= 1e-12 * std::fabs(got.values[0]));
  }
}

TEST_CASE("a certified sign is right for minima near zero") {
  Random random(504);
  index_t decided = 0, total = 0;
  for (const Kind kind : kKinds) {
    for (const index_t d : {1, 2, 5, 8, 26, 100}) {
      for (const double margin : {1.0, 1e-3, 1e-9, 1e-12, 1e-15, 0.0}) {
        Matrix<double> a(2, d), g(2, d);
        Vector<double> constants;
        const double radius = std::pow(10.0, random.normal());
        fill(random, kind, 1.0, &a(0, 0), &g(0, 0), d);
        for (index_t j = 0; j < d; ++j) {
          a(1, j) = a(0, j);
          g(1, j) = g(0, j);
        }
        const long double least =
            -reference::minimum_over_ball(numbers(&a(0, 0), d), numbers(&g(0, 0), d),
                                          static_cast<long double>(radius))
                 .value;
        constants.push_back(static_cast<double>(least * (1 + static_cast<long double>(margin))));
        constants.push_back(static_cast<double>(least * (1 - static_cast<long double>(margin))));
        const Signs got = certified(a, g, constants, {radius, radius}, false);
        for (index_t i = 0; i < 2; ++i) {
          const long double minimum = static_cast<long double>(constants[i]) - least;
          const long double slack = 1e-17L * least;  // the reference's own rounding
          if (got.verdicts[i] == 1) CHECK(minimum >= -slack);
          if (got.verdicts[i] == -1) CHECK(minimum < slack);
          CHECK(static_cast<long double>(got.lower[i]) <= minimum + slack);
          CHECK(static_cast<long double>(got.upper[i]) >= minimum - slack);
          if (margin >= 1e-12 && least > 0) {
            ++total;
            decided += got.verdicts[i] != 0 ? 1 : 0;
          }
        }
      }
    }
  }
  CHECK(decided == total);
}

TEST_CASE("signs of minima at zero, in extreme units, and with radius zero") {
  const Matrix<double> a(1, 2, {1, 2}), zero(1, 2), g(1, 2, {0.5, 0.0});
  CHECK(certified(zero, zero, {0.0}, {1.0}, false).verdicts[0] == 1);
  CHECK(certified(a, zero, {0.0}, {1.0}, false).verdicts[0] == 1);
  CHECK(certified(a, g, {0.0}, {0.0}, false).verdicts[0] == 1);
  CHECK(certified(a, g, {-1e-300}, {0.0}, false).verdicts[0] == -1);
  CHECK(certified(a, g, {0.0}, {1.0}, false).verdicts[0] == -1);
  for (const double unit : {1e-200, 1e-120, 1e120, 1e200}) {
    const Matrix<double> scaled(1, 2, {unit, -unit}), slope(1, 2, {0.0, 0.5 * unit});
    CHECK(certified(scaled, slope, {2.01 * unit}, {1.0}, false).verdicts[0] == 1);
    CHECK(certified(scaled, slope, {1.99 * unit}, {1.0}, false).verdicts[0] == -1);
  }
}

TEST_CASE("signs of dense quadratics, by minima and by eigenvectors") {
  Random random(505);
  for (const index_t n : {2, 12}) {
    const index_t d = 9;
    const Matrix<double> a = random.symmetric<double>(d, Order::rows);
    const Matrix<double> g = random.normal_matrix<double>(n, d);
    Vector<double> constants, radii(n, 1.5);
    Vector<int> expected;
    for (index_t i = 0; i < n; ++i) {
      const double least = -static_cast<double>(
          reference::minimum_over_ball(reference::Table(a.read()), numbers(&g(i, 0), d), 1.5L)
              .value);
      constants.push_back(least * (i % 2 == 0 ? 1 + 1e-10 : 1 - 1e-10));
      expected.push_back(i % 2 == 0 ? 1 : -1);
    }
    CHECK(certified(a, g, constants, radii, true).verdicts == expected);
  }
}

TEST_CASE("the same bits for every number of threads") {
  Random random(506);
  const Matrix<double> diagonals = random.normal_matrix<double>(3000, 40);
  const Matrix<double> slopes = random.normal_matrix<double>(3000, 40);
  const Vector<double> radii(3000, 1.0);
  Vector<double> constants(3000);
  for (double& constant : constants) constant = 10 + random.normal();
  Matrix<double> stack(20 * 40, 40), few(20, 40);
  for (index_t i = 0; i < 20; ++i) {
    const Matrix<double> one = random.symmetric<double>(40, Order::rows);
    for (index_t j = 0; j < 40; ++j) {
      few(i, j) = random.normal();
      for (index_t k = 0; k < 40; ++k) stack(i * 40 + j, k) = one(j, k);
    }
  }
  const Vector<double> twenty(20, 1.0);
  const Minima expected = minimise(diagonals, slopes, radii, false, 1);
  const Minima dense = minimise(stack, few, twenty, true, 1);
  const Signs signs = certified(diagonals, slopes, constants, radii, false, 1);
  for (const int threads : {2, 7}) {
    const Minima got = minimise(diagonals, slopes, radii, false, threads);
    CHECK(same_bits(got.values, expected.values));
    CHECK(same_bits(got.multipliers, expected.multipliers));
    CHECK(same_bits(minimise(stack, few, twenty, true, threads).values, dense.values));
    const Signs other = certified(diagonals, slopes, constants, radii, false, threads);
    CHECK(other.verdicts == signs.verdicts);
    CHECK(same_bits(other.lower, signs.lower));
    CHECK(same_bits(other.upper, signs.upper));
  }
}

TEST_CASE("wrong shapes are refused") {
  const Matrix<double> a(2, 3), g(3, 3);
  CHECK(starts_with(
      message_of<std::invalid_argument>([&] { minimise(a, g, {1.0, 1.0, 1.0}, false); }),
      "A: expected"));
  CHECK(starts_with(message_of<std::invalid_argument>([&] { minimise(g, g, {1.0}, false); }),
                    "radius: expected 3 entries"));
  CHECK(starts_with(
      message_of<std::invalid_argument>([&] { certified(g, g, {1.0}, {1.0, 1.0, 1.0}, false); }),
      "constant: expected 3 entries"));
}
