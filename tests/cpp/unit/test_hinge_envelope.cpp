// Envelopes of the multiclass hinge: feasible duals, primal values, optima, threads and errors.
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <stdexcept>

#include "eigenfeat/hinge_envelope.hpp"
#include "eigenfeat/vector.hpp"
#include "unit/support.hpp"

using namespace eigenfeat;
using namespace eigenfeat::support;

namespace {

struct Case {
  Matrix<double> w, x, scores, gram;
  Vector<std::int32_t> labels;
  Vector<double> costs;

  Case(Random& random, index_t n, index_t d, index_t k)
      : w(random.normal_matrix<double>(k, d)),
        x(random.normal_matrix<double>(n, d)),
        scores(n, k),
        gram(k, k),
        labels(random.labels(n, k)),
        costs(n, 0.8) {
    for (index_t y = 0; y < k; ++y) {
      for (index_t j = 0; j < d; ++j) {
        for (index_t i = 0; i < n; ++i) scores(i, y) += w(y, j) * x(i, j);
        for (index_t z = 0; z < k; ++z) gram(y, z) += w(y, j) * w(z, j);
      }
    }
  }
  HingeRows rows(double variance) const {
    return {scores.read(), gram.read(), read(labels), read(costs), 1.0, variance};
  }
};

// The primal value of row i at its mean, moved by `step` in column j.
double primal(const Case& c, const Matrix<double>& a, index_t i, double variance, index_t j,
              double step) {
  const index_t k = c.w.rows(), d = c.w.cols();
  double moved = 0.0;
  Vector<double> s(k, 0.0);
  for (index_t l = 0; l < d; ++l) {
    double move = l == j ? step : 0.0;
    for (index_t y = 0; y < k; ++y) move += variance * a(i, y) * c.w(y, l);
    moved += move * move / (2.0 * variance);
    for (index_t y = 0; y < k; ++y) s[y] += c.w(y, l) * (c.x(i, l) + move);
  }
  double loss = 0.0;
  for (index_t y = 0; y < k; ++y) {
    if (y != c.labels[i]) loss = std::max(loss, 1.0 + s[y] - s[c.labels[i]]);
  }
  return moved + c.costs[i] * loss;
}

}  // namespace

TEST_CASE("duals are feasible, values equal the primal, and no step lowers the primal") {
  Random random(4);
  for (const index_t d : {1, 3, 9}) {
    const Case c(random, 70, d, 6);
    for (const double variance : {0.05, 1.0, 40.0}) {
      Matrix<double> a(70, 6);
      Vector<double> values(70), gaps(70);
      hinge_envelope(c.rows(variance), {}, a.view(), write(values), write(gaps), 1);
      index_t bad = 0;
      for (index_t i = 0; i < 70; ++i) {
        double sum = 0.0;
        for (index_t y = 0; y < 6; ++y) {
          sum += a(i, y);
          if (y == c.labels[i] ? a(i, y) < 0.0 || a(i, y) > 0.8 * (1 + 1e-12) : a(i, y) > 0.0)
            ++bad;
        }
        const double here = primal(c, a, i, variance, 0, 0.0);
        if (std::abs(sum) > 1e-13 || gaps[i] > 1e-8 || std::abs(here - values[i]) > 1e-8) ++bad;
        for (index_t j = 0; j < d; ++j) {
          for (const double step : {-0.1, -1e-3, 1e-3, 0.1}) {
            if (primal(c, a, i, variance, j, step) < here - 1e-8) ++bad;
          }
        }
      }
      CHECK(bad == 0);
    }
  }
}

TEST_CASE("threads give the same bits, and misuse is refused") {
  Random random(5);
  const Case c(random, 500, 3, 5);
  Vector<double> values(500), gaps(500), again(500);
  Matrix<double> a(500, 5), b(500, 5);
  hinge_envelope(c.rows(2.0), {}, a.view(), write(values), write(gaps), 1);
  hinge_envelope(c.rows(2.0), {}, b.view(), write(again), write(gaps), 3);
  CHECK(values == again);
  CHECK_THROWS_AS(hinge_envelope(c.rows(-1.0), {}, a.view(), write(values), write(gaps), 1),
                  std::invalid_argument);
}
