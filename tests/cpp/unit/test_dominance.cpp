// The class that dominates over balls and boxes, against all pairs of classes in long double.
#include <doctest/doctest.h>

#include <cmath>
#include <stdexcept>

#include "eigenfeat/dominance.hpp"
#include "eigenfeat/vector.hpp"
#include "reference/decision_reference.hpp"
#include "unit/support.hpp"

using namespace eigenfeat;
using namespace eigenfeat::support;

namespace {

struct Scene {
  Scene(Random& random, index_t n, index_t k, index_t d, bool linear, bool quadratic)
      : points(random.normal_matrix<double>(n, d)),
        widths(n, d),
        offsets(random.normal_matrix<double>(n, k)),
        slopes(random.normal_matrix<double>(k, d)),
        precisions(n, k * d),
        centres(random.normal_matrix<double>(n, k * d)),
        has_slopes(linear),
        has_precisions(quadratic) {
    for (index_t i = 0; i < n; ++i) {
      radii.push_back(std::pow(10.0, 0.5 * random.normal() - 0.7));
      for (index_t j = 0; j < d; ++j) widths(i, j) = random.uniform();
      for (index_t j = 0; j < k * d; ++j) precisions(i, j) = 2 * random.uniform();
    }
  }
  DominanceProblem problem(SetShape shape) const {
    DominanceProblem out;
    out.points = points.read();
    out.widths = widths.read();
    out.radii = read(radii);
    out.offsets = offsets.read();
    if (has_slopes) out.slopes = slopes.read();
    if (has_precisions) {
      out.precisions = precisions.read();
      out.centres = centres.read();
    }
    out.shape = shape;
    return out;
  }
  Matrix<double> points, widths, offsets, slopes, precisions, centres;
  Vector<double> radii;
  bool has_slopes, has_precisions;
};

Vector<double> radii_of(const DominanceProblem& problem, int n_threads = 2) {
  Vector<double> largest(problem.points.rows);
  dominance_radii(problem, write(largest), n_threads);
  return largest;
}

// min of f_c - f_h over row i's set.
long double margin(const DominanceProblem& p, index_t i, index_t c, index_t h, long double radius) {
  const index_t d = p.points.cols;
  reference::Numbers a(d, 0.0L), g(d, 0.0L), w(d, radius);
  long double constant =
      static_cast<long double>(p.offsets(i, c)) - static_cast<long double>(p.offsets(i, h));
  for (index_t j = 0; j < d; ++j) {
    const long double x = static_cast<long double>(p.points(i, j));
    const long double width = static_cast<long double>(p.widths(i, j));
    for (const index_t which : {c, h}) {
      const long double sign = which == c ? 1 : -1;
      if (p.slopes.data != nullptr) {
        constant += sign * static_cast<long double>(p.slopes(which, j)) * x;
        g[j] += sign * static_cast<long double>(p.slopes(which, j)) * width / 2;
      }
      if (p.precisions.data != nullptr) {
        const long double q = static_cast<long double>(p.precisions(i, which * d + j));
        const long double from = x - static_cast<long double>(p.centres(i, which * d + j));
        constant -= sign * q * from * from;
        g[j] -= sign * q * from * width;
        a[j] -= sign * q * width * width;
      }
    }
  }
  return constant + (p.shape == SetShape::box ? reference::minimum_over_box(a, g, w)
                                              : reference::minimum_over_ball(a, g, radius).value);
}

int dominating_class(const DominanceProblem& p, index_t i, long double radius) {
  for (index_t c = 0; c < p.offsets.cols; ++c) {
    bool all = true;
    for (index_t h = 0; h < p.offsets.cols; ++h)
      all = all && (h == c || margin(p, i, c, h, radius) >= 0);
    if (all) return static_cast<int>(c);
  }
  return -1;
}

}  // namespace

TEST_CASE("the class that dominates over balls and boxes") {
  Random random(801);
  int decided = 0, waiting = 0;
  for (const index_t k : {1, 2, 3, 6}) {
    for (const index_t d : {1, 3, 8, 13}) {
      for (int kind = 1; kind < 4; ++kind) {
        const index_t n = 40;
        const Scene scene(random, n, k, d, (kind & 1) != 0, (kind & 2) != 0);
        for (const SetShape shape : {SetShape::ball, SetShape::box}) {
          const auto problem = scene.problem(shape);
          const Vector<double> largest = radii_of(problem);
          for (index_t i = 0; i < n; ++i) {
            const int right =
                dominating_class(problem, i, static_cast<long double>(scene.radii[i]));
            CHECK((largest[i] == scene.radii[i]) == (right >= 0));
            (right < 0 ? waiting : decided) += 1;
          }
        }
      }
    }
  }
  CHECK(decided > 500);
  CHECK(waiting > 500);
}

TEST_CASE("at the largest radius the minimum changes its sign") {
  Random random(803);
  for (const SetShape shape : {SetShape::ball, SetShape::box}) {
    const index_t n = 60, k = 4;
    Scene scene(random, n, k, 5, true, true);
    scene.radii.assign(n, 50.0);
    const auto problem = scene.problem(shape);
    const Vector<double> largest = radii_of(problem);
    for (index_t i = 0; i < n; ++i) {
      const double radius = largest[i];
      const int best = dominating_class(problem, i, 1e-15L);
      const auto holds = [&](double r) {
        return dominating_class(problem, i, static_cast<long double>(r)) == best;
      };
      if (radius > 0.0) CHECK(holds(radius));
      if (radius < 50.0) CHECK_FALSE(holds(radius * (1 + 2e-6) + 1e-13));
    }
  }
}

TEST_CASE("threads do not change bits, one set serves for all rows, and misuse is refused") {
  Random random(804);
  Scene scene(random, 2000, 5, 26, false, true);
  const auto problem = scene.problem(SetShape::ball);
  const Vector<double> expected = radii_of(problem, 1);
  for (const int threads : {2, 7}) CHECK(radii_of(problem, threads) == expected);
  auto shared = problem;
  shared.precisions.row_stride = shared.centres.row_stride = shared.widths.row_stride = 0;
  Scene repeated = scene;
  for (index_t i = 0; i < 2000; ++i) {
    for (index_t j = 0; j < 5 * 26; ++j) {
      repeated.precisions(i, j) = scene.precisions(0, j);
      repeated.centres(i, j) = scene.centres(0, j);
    }
    for (index_t j = 0; j < 26; ++j) repeated.widths(i, j) = scene.widths(0, j);
  }
  CHECK(radii_of(shared) == radii_of(repeated.problem(SetShape::ball)));
  auto wrong = problem;
  wrong.centres = {};
  CHECK(starts_with(message_of<std::invalid_argument>([&] { radii_of(wrong); }),
                    "centres: expected"));
}
