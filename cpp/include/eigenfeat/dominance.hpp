// The largest sets over which a class dominates, for a batch of rows (Parrish 2012, section 5.3).
//
// Class c dominates class h over A where f_c(x) - f_h(x) >= 0 for all x of A; the row is decided as
// the class that dominates all others, if there is one (5.18). Discriminants are
//
//   f_c(x) = offset_c + slope_c . x - sum_i precision_ci (x_i - centre_ci)^2
//
// and row i's set is {point_i + width_i * u}, u in the ball |u| <= radius_i, or in the box
// |u_j| <= radius_i. The point is in the set, so that only c = argmax f_c(point) can dominate: at
// most G - 1 checks, the runner-up first, and the first that fails ends it.
//
// A difference of two classes is a quadratic in u with diagonal curvature, sum a_j u_j^2 + 2 g_j u_j
// + constant. Over the ball its sign is certified (trust_region.hpp). Over the box it is least
// coordinate by coordinate (Parrish 2012, (5.13), (5.15), (5.16)): at the vertex -g_j / a_j, clamped
// to the box, where a_j > 0, elsewhere at the edge against g_j. With t_j = |u_j| there
//
//   minimum = constant - P,  P = sum_j t_j (2 |g_j| - a_j t_j),
//
// a sum of nonnegative terms: rounding changes it by a factor of 1 +- (d + 8) eps. Rounding of the
// differences is allowed for; a check that rounding leaves open counts as failed, so that the row
// waits.
//
// Threads: over rows; every count gives the same bits. Cost: O(d) a check, O(G d) a row for the
// scores at the point. Scratch: 6 d numbers a thread. Misuse throws std::invalid_argument; entries
// are finite, precisions, widths and radii >= 0, which the caller checks.
#pragma once

#include "eigenfeat/view.hpp"

namespace eigenfeat {

enum class SetShape { ball, box };

struct DominanceProblem {
  MatrixView<const double> points;      // (n, d)
  MatrixView<const double> widths;      // (n, d), or one line for all with a row stride of 0
  VectorView<const double> radii;       // (n,)
  MatrixView<const double> offsets;     // (n, G), or one line for all
  MatrixView<const double> slopes;      // (G, d) or empty
  MatrixView<const double> precisions;  // (n, G d), or one line for all, or empty
  MatrixView<const double> centres;     // the same
  SetShape shape = SetShape::ball;
};

// largest (n,): the largest radius, at most radii[i], at which argmax f_c(point) dominates all
// others: 0 where it never does. By bisection to 1e-6 of itself, from below.
void dominance_radii(const DominanceProblem& problem, VectorView<double> largest, int n_threads);

}  // namespace eigenfeat
