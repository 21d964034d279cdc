// The two-loop recursion of L-BFGS, against the BFGS updates of the matrix gamma H^-1.
#include <doctest/doctest.h>

#include <cmath>
#include <cstdint>
#include <stdexcept>

#include "eigenfeat/lbfgs.hpp"
#include "eigenfeat/vector.hpp"

using namespace eigenfeat;

namespace {

constexpr index_t n = 11;
using Dense = Vector<Vector<long double>>;
using Numbers = Vector<double>;

double number(std::uint64_t& state) {
  state = state * 6364136223846793005ULL + 1442695040888963407ULL;
  return static_cast<double>(state >> 40) / static_cast<double>(1 << 24) - 0.5;
}

Numbers random_vector(std::uint64_t& state) {
  Numbers out(n);
  for (double& value : out) value = number(state);
  return out;
}

VectorView<const double> read(const Numbers& values) {
  return {values.data(), values.size()};
}

// A step, the change of a quadratic's gradient, and that change times the inverse diagonal metric.
struct Step {
  Numbers step = Numbers(n), change = Numbers(n), solved = Numbers(n);
};

Step random_step(std::uint64_t& state) {
  Step out;
  out.step = random_vector(state);
  for (index_t i = 0; i < n; ++i) {
    out.change[i] = (1.0 + static_cast<double>(i)) * out.step[i];
    if (i > 0) out.change[i] += 0.25 * out.step[i - 1];
    if (i + 1 < n) out.change[i] += 0.25 * out.step[i + 1];
    out.solved[i] = out.change[i] / (1.0 + static_cast<double>(i % 3));
  }
  return out;
}

void remember(Lbfgs& search, const Step& one) {
  const Numbers zero(n, 0.0);
  search.remember(read(zero), read(one.step), read(zero), read(one.change), read(zero),
                  read(one.solved));
}

long double product(const Numbers& a, const Numbers& b) {
  long double sum = 0.0L;
  for (index_t i = 0; i < n; ++i) sum += static_cast<long double>(a[i]) * b[i];
  return sum;
}

// -B^-1 g with B^-1 <- (I - r s y^T) B^-1 (I - r y s^T) + r s s^T, r = 1 / s^T y, pair after pair.
Vector<long double> by_updates(const Vector<Step>& pairs, const Numbers& gradient) {
  Dense inverse(n, Vector<long double>(n, 0.0L));
  const long double gamma = pairs.empty() ? 1.0L
                                          : product(pairs.back().step, pairs.back().change) /
                                                product(pairs.back().change, pairs.back().solved);
  for (index_t i = 0; i < n; ++i) inverse[i][i] = gamma / (1.0L + static_cast<long double>(i % 3));
  for (const Step& one : pairs) {
    const long double r = 1.0L / product(one.step, one.change);
    Dense left(n, Vector<long double>(n, 0.0L)), next = left;
    for (index_t i = 0; i < n; ++i) {
      for (index_t j = 0; j < n; ++j) {
        for (index_t m = 0; m < n; ++m) {
          const long double factor = (i == m ? 1.0L : 0.0L) - r * one.step[i] * one.change[m];
          left[i][j] += factor * inverse[m][j];
        }
      }
    }
    for (index_t i = 0; i < n; ++i) {
      for (index_t j = 0; j < n; ++j) {
        next[i][j] = r * one.step[i] * one.step[j];
        for (index_t m = 0; m < n; ++m) {
          const long double factor = (m == j ? 1.0L : 0.0L) - r * one.change[m] * one.step[j];
          next[i][j] += left[i][m] * factor;
        }
      }
    }
    inverse = next;
  }
  Vector<long double> out(n, 0.0L);
  for (index_t i = 0; i < n; ++i) {
    for (index_t j = 0; j < n; ++j) out[i] -= inverse[i][j] * gradient[j];
  }
  return out;
}

}  // namespace

TEST_CASE("a direction is that of the matrix updated by the last pairs") {
  std::uint64_t state = 3;
  for (const index_t memory : {1, 3, 8}) {
    Lbfgs search(n, memory);
    Vector<Step> pairs;
    for (int round = 0; round < 6; ++round) {
      const Numbers gradient = random_vector(state);
      Numbers solved(n), out(n);
      for (index_t i = 0; i < n; ++i) solved[i] = gradient[i] / (1.0 + static_cast<double>(i % 3));
      const Lbfgs::Slopes slopes = search.direction(read(gradient), read(solved), {out.data(), n});
      const auto expected = by_updates(pairs, gradient);
      for (index_t i = 0; i < n; ++i)
        CHECK(std::fabs(static_cast<double>(expected[i]) - out[i]) < 1e-12);
      CHECK(std::fabs(slopes.slope - static_cast<double>(product(gradient, out))) < 1e-13);
      CHECK(std::fabs(slopes.squared_norm - static_cast<double>(product(gradient, solved))) <
            1e-13);
      CHECK(slopes.slope < 0);
      pairs.push_back(random_step(state));
      remember(search, pairs.back());
      if (pairs.size() > memory) pairs.erase(pairs.begin(), pairs.begin() + 1);
      CHECK(search.pairs() == pairs.size());
    }
    search.forget();
    CHECK(search.pairs() == 0);
    CHECK(search.gamma() == 1.0);
  }
}

TEST_CASE("pairs whose curvature is lost in rounding are not stored") {
  std::uint64_t state = 5;
  Lbfgs search(n, 2);
  remember(search, random_step(state));
  const double gamma = search.gamma();
  Step turned = random_step(state);
  for (double& value : turned.change) value = -value;
  remember(search, turned);
  Step still;
  remember(search, still);
  CHECK(search.pairs() == 1);
  CHECK(search.gamma() == gamma);
}

TEST_CASE("sizes that are not positive are refused") {
  CHECK_THROWS_AS(Lbfgs(0, 3), std::invalid_argument);
  CHECK_THROWS_AS(Lbfgs(3, 0), std::invalid_argument);
}
