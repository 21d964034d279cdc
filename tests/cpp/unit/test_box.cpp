// Minima over boxes against the edges and the vertex of every coordinate.
#include <doctest/doctest.h>

#include <cmath>
#include <stdexcept>

#include "eigenfeat/box.hpp"
#include "eigenfeat/vector.hpp"
#include "reference/decision_reference.hpp"
#include "unit/support.hpp"

using namespace eigenfeat;
using namespace eigenfeat::support;

namespace {

struct Found {
  Vector<double> values;
  Matrix<double> points;
};

Found minimise(const Matrix<double>& a, const Matrix<double>& g, const Matrix<double>& w,
               int n_threads = 2) {
  Found out{Vector<double>(g.rows()), Matrix<double>(g.rows(), g.cols())};
  minimise_over_box(a.read(), g.read(), w.read(), write(out.values), out.points.view(), n_threads);
  return out;
}

reference::Numbers line(const Matrix<double>& m, index_t i) {
  return {&m(i, 0), &m(i, 0) + m.cols()};
}

}  // namespace

TEST_CASE("signed curvatures, clamped and unclamped, over the edges of lanes") {
  Random random(601);
  for (const index_t d : {1, 2, 7, 8, 9, 16, 31}) {
    Matrix<double> a = random.normal_matrix<double>(40, d), g = random.normal_matrix<double>(40, d);
    Matrix<double> w(40, d);
    for (index_t i = 0; i < 40; ++i) {
      for (index_t j = 0; j < d; ++j) {
        w(i, j) = i % 5 == 0 ? 0.0 : 2 * random.uniform();
        if (i % 4 == 1) a(i, j) = 0.0;
        if (i % 7 == 2) g(i, j) = 0.0;
      }
    }
    const Found got = minimise(a, g, w);
    for (index_t i = 0; i < 40; ++i) {
      const double right =
          static_cast<double>(reference::minimum_over_box(line(a, i), line(g, i), line(w, i)));
      CHECK(std::fabs(got.values[i] - right) <= 1e-14 * std::fabs(right));
      long double at = 0;
      for (index_t j = 0; j < d; ++j) {
        const long double x = static_cast<long double>(got.points(i, j));
        CHECK(std::fabs(got.points(i, j)) <= w(i, j));
        at += x * (static_cast<long double>(a(i, j)) * x + 2 * static_cast<long double>(g(i, j)));
      }
      CHECK(std::fabs(static_cast<double>(at) - right) <= 1e-14 * (std::fabs(right) + 1));
    }
  }
}

TEST_CASE("linear: the closed form of Parrish's (5.13)") {
  const Matrix<double> a(1, 3), g(1, 3, {1.0, -0.5, 0.25}), w(1, 3, {1.0, 2.0, 4.0});
  const Found got = minimise(a, g, w);
  CHECK(got.values[0] == -2 * (1.0 + 1.0 + 1.0));
  CHECK(got.points(0, 0) == -1.0);
  CHECK(got.points(0, 1) == 2.0);
}

TEST_CASE("a stretched box, threads and misuse") {
  Random random(602);
  const Matrix<double> a = random.normal_matrix<double>(2000, 30);
  const Matrix<double> g = random.normal_matrix<double>(2000, 30);
  Matrix<double> w(2000, 30), wide(2000, 30);
  for (index_t i = 0; i < 2000; ++i) {
    for (index_t j = 0; j < 30; ++j) {
      w(i, j) = random.uniform();
      wide(i, j) = 2 * w(i, j);
    }
  }
  const Found expected = minimise(a, g, wide, 1);
  CHECK(0.0 - box_fall(&a(3, 0), &g(3, 0), &w(3, 0), 2.0, 30) == expected.values[3]);
  for (const int threads : {2, 7})
    CHECK(same_bits(minimise(a, g, wide, threads).values, expected.values));
  CHECK(
      starts_with(message_of<std::invalid_argument>([&] { minimise(a, g, Matrix<double>(2, 30)); }),
                  "half_widths: expected"));
}
