// Which class dominates: both processes against all pairs, and the numbers of checks of
// Propositions 3 and 4.
#include <doctest/doctest.h>

#include <algorithm>
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
  DominanceProblem problem(SetShape shape, Process process) const {
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
    out.process = process;
    return out;
  }
  Matrix<double> points, widths, offsets, slopes, precisions, centres;
  Vector<double> radii;
  bool has_slopes, has_precisions;
};

struct Found {
  explicit Found(index_t n) : winners(n), guesses(n), checks(n), open(n) {}
  Dominance views() { return {write(winners), write(guesses), write(checks), write(open)}; }
  Vector<int> winners, guesses, checks, open;
};

Found dominating(const DominanceProblem& problem, int n_threads = 2) {
  Found out(problem.points.rows);
  find_dominating(problem, out.views(), n_threads);
  return out;
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

TEST_CASE("both processes find the dominating class over balls and boxes (Proposition 3)") {
  Random random(801);
  int decided = 0, waiting = 0;
  for (const index_t k : {1, 2, 3, 6}) {
    for (const index_t d : {1, 3, 8, 13}) {
      for (int kind = 1; kind < 4; ++kind) {
        const index_t n = 40;
        const Scene scene(random, n, k, d, (kind & 1) != 0, (kind & 2) != 0);
        for (const SetShape shape : {SetShape::ball, SetShape::box}) {
          const auto problem = scene.problem(shape, Process::guess);
          const Found guess = dominating(problem);
          const Found general = dominating(scene.problem(shape, Process::general));
          for (index_t i = 0; i < n; ++i) {
            const int right =
                dominating_class(problem, i, static_cast<long double>(scene.radii[i]));
            CHECK(guess.winners[i] == right);
            CHECK(general.winners[i] == right);
            CHECK(guess.checks[i] <= k - 1);
            CHECK(general.checks[i] >= k - 1);
            CHECK(general.checks[i] <= 2 * (k - 1));
            CHECK(guess.open[i] == 0);
            (right < 0 ? waiting : decided) += 1;
          }
        }
      }
    }
  }
  CHECK(decided > 500);
  CHECK(waiting > 500);
}

TEST_CASE("the numbers of checks reach both ends of Proposition 4, and no further") {
  // Every order of outcomes of three and four classes: tables of who dominates whom.
  for (const index_t k : {2, 3, 4}) {
    index_t least = 100, most = 0;
    // Each class is an interval; c dominates h where it lies above: a partial order.
    const index_t per = 6, cases = static_cast<index_t>(std::pow(per, k));
    for (index_t code = 0; code < cases; ++code) {
      Vector<index_t> low, high;
      index_t rest = code;
      for (index_t c = 0; c < k; ++c, rest /= per) {
        low.push_back(2 * (rest % 3));
        high.push_back(low.back() + (rest % per < 3 ? 1 : 3));
      }
      const auto above = [&](index_t c, index_t h) { return low[c] >= high[h]; };
      index_t right = -1;
      for (index_t c = 0; c < k; ++c) {
        bool all = true;
        for (index_t h = 0; h < k; ++h) all = all && (h == c || above(c, h));
        if (all) right = c;
      }
      const Decision got = general_process(k, above);
      CHECK(got.winner == right);
      least = std::min(least, got.checks);
      most = std::max(most, got.checks);
      for (index_t c = 0; c < k; ++c) {
        const Decision guessed = guess_and_check(k, c, c == 0 ? 1 : 0, above);
        CHECK(guessed.winner == (right == c ? c : -1));
        CHECK(guessed.checks <= k - 1);
      }
    }
    CHECK(least == k - 1);
    CHECK(most == 2 * (k - 1));
  }
}

TEST_CASE("the largest radius is where the sign turns") {
  Random random(803);
  for (const SetShape shape : {SetShape::ball, SetShape::box}) {
    const index_t n = 60, k = 4;
    Scene scene(random, n, k, 5, true, true);
    scene.radii.assign(n, 50.0);
    const auto problem = scene.problem(shape, Process::guess);
    Vector<std::int32_t> classes(n, -1);
    classes[0] = 2;
    Vector<double> largest(n);
    Vector<int> guesses(n);
    dominance_radii(problem, read(classes), write(largest), write(guesses), 2);
    for (index_t i = 0; i < n; ++i) {
      const double radius = largest[i];
      const index_t c = i == 0 ? 2 : guesses[i];
      const auto holds = [&](double r) {
        bool all = true;
        for (index_t h = 0; h < k; ++h)
          all = all && (h == c || margin(problem, i, c, h, static_cast<long double>(r)) >= 0);
        return all;
      };
      if (radius > 0.0) CHECK(holds(radius));
      if (radius < 50.0) CHECK_FALSE(holds(radius * (1 + 2e-6) + 1e-13));
    }
  }
}

TEST_CASE("the same bits for every number of threads, one line for all, and misuse") {
  Random random(804);
  Scene scene(random, 2000, 5, 26, false, true);
  const auto problem = scene.problem(SetShape::ball, Process::guess);
  const Found expected = dominating(problem, 1);
  for (const int threads : {2, 7}) {
    const Found got = dominating(problem, threads);
    CHECK(got.winners == expected.winners);
    CHECK(got.checks == expected.checks);
  }
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
  CHECK(dominating(shared).winners ==
        dominating(repeated.problem(SetShape::ball, Process::guess)).winners);
  auto wrong = problem;
  wrong.centres = {};
  CHECK(starts_with(message_of<std::invalid_argument>([&] { dominating(wrong); }),
                    "centres: expected"));
}
