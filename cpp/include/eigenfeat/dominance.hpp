// Which class dominates over a set, for a batch of rows (Parrish 2012, section 5.3).
//
// Class c dominates class h over A where f_c(x) - f_h(x) >= 0 for all x of A; the row is decided as
// the class that dominates all others, if there is one (5.18). Discriminants are
//
//   f_c(x) = offset_c + slope_c . x - sum_i precision_ci (x_i - centre_ci)^2
//
// and row i's set is {point_i + width_i * u}, u in the ball |u| <= radius_i, or in the box
// |u_j| <= radius_i. Differences are quadratics in u with diagonal curvature: one certified sign
// (trust_region.hpp) or closed form (box.hpp) a check, O(d). Rounding of the differences is allowed
// for; a check that rounding leaves open counts as failed, so that the row waits.
//
// guess    c = argmax f_c(point), which must be in the set; then at most G - 1 checks, the runner-up
//          first, and the first that fails ends it.
// general  any set: candidates are compared in pairs until fewer than two are left, then the last
//          with those that tied; between G - 1 and 2 (G - 1) checks (Propositions 3 and 4).
//
// Threads: over rows; every count gives the same bits. Cost: O(d) a check, O(G d) a row for the
// guess. Scratch: 6 d numbers a thread. Misuse throws std::invalid_argument; entries are finite,
// precisions, widths and radii >= 0, which the caller checks.
#pragma once

#include <cstdint>

#include "eigenfeat/vector.hpp"
#include "eigenfeat/view.hpp"

namespace eigenfeat {

struct Decision {
  index_t winner = -1;  // -1: none
  index_t checks = 0;
};

// dominates(c, h): whether it is certain that f_c >= f_h over the set.
template <class Dominates>
Decision guess_and_check(index_t n_classes, index_t guess, index_t runner_up,
                         Dominates&& dominates) {
  Decision out;
  const auto holds = [&](index_t h) {
    ++out.checks;
    return dominates(guess, h);
  };
  if (runner_up >= 0 && !holds(runner_up)) return out;
  for (index_t h = 0; h < n_classes; ++h) {
    if (h != guess && h != runner_up && !holds(h)) return out;
  }
  out.winner = guess;
  return out;
}

template <class Dominates>
Decision general_process(index_t n_classes, Dominates&& dominates) {
  Decision out;
  const auto check = [&](index_t c, index_t h) {
    ++out.checks;
    return dominates(c, h);
  };
  Vector<index_t> tied;
  index_t candidate = -1;
  for (index_t h = 0; h < n_classes; ++h) {
    if (candidate < 0) {
      candidate = h;
    } else if (check(candidate, h)) {
      continue;  // h is dominated
    } else if (check(h, candidate)) {
      candidate = h;
    } else {
      tied.push_back(candidate);
      tied.push_back(h);
      candidate = -1;
    }
  }
  if (candidate < 0) return out;
  for (const index_t h : tied) {
    if (!check(candidate, h)) return out;
  }
  out.winner = candidate;
  return out;
}

enum class SetShape { ball, box };
enum class Process { guess, general };

struct DominanceProblem {
  MatrixView<const double> points;      // (n, d)
  MatrixView<const double> widths;      // (n, d), or one line for all with a row stride of 0
  VectorView<const double> radii;       // (n,)
  MatrixView<const double> offsets;     // (n, G), or one line for all
  MatrixView<const double> slopes;      // (G, d) or empty
  MatrixView<const double> precisions;  // (n, G d), or one line for all, or empty
  MatrixView<const double> centres;     // the same
  SetShape shape = SetShape::ball;
  Process process = Process::guess;
};

struct Dominance {
  VectorView<int> winners;  // (n,): -1 where the row waits
  VectorView<int> guesses;  // (n,): argmax f_c(point), the first on ties
  VectorView<int> checks;   // (n,)
  VectorView<int> open;     // (n,): checks that rounding left open
};

void find_dominating(const DominanceProblem& problem, const Dominance& dominance, int n_threads);

// The largest radius, at most radii[i], at which class `classes[i]` (the guess where it is -1)
// dominates the others: 0 where it never does. By bisection to 1e-6 of itself, from below.
void dominance_radii(const DominanceProblem& problem, VectorView<const std::int32_t> classes,
                     VectorView<double> largest, VectorView<int> guesses, int n_threads);

}  // namespace eigenfeat
