// The largest sets over which a class dominates, for a batch of rows (Parrish 2012, section 5.3).
//
// Class c dominates class h over a set if f_c(x) - f_h(x) >= 0 for all x of the set. The decision
// for a row is the class that dominates all others, if it exists (5.18). Discriminants are
//
//   f_c(x) = offset_c + slope_c . x - sum_i precision_ci (x_i - centre_ci)^2
//
// and the set of row i is {point_i + width_i * u}, with u in the ball |u| <= radius_i, or in the box
// |u_j| <= radius_i. As the point is in the set, only c = argmax f_c(point) can dominate. This class
// is checked against at most G - 1 other classes, the runner-up first, until a check fails.
//
// The difference of two discriminants is a quadratic in u with diagonal curvature,
// sum_j a_j u_j^2 + 2 g_j u_j + constant. Over the ball its sign is certified (trust_region.hpp).
// Over the box each coordinate has its own minimum (Parrish 2012, (5.13), (5.15), (5.16)): -g_j /
// a_j, clamped to the box, if a_j > 0, otherwise the edge opposite to the sign of g_j. With t_j =
// |u_j| at the minimum,
//
//   minimum = constant - P,  P = sum_j t_j (2 |g_j| - a_j t_j),
//
// where P is a sum of nonnegative terms: rounding changes P by a factor of 1 +- (d + 8) eps.
// Rounding of the differences is included in the bounds. A check that rounding leaves open counts
// as failed; the row is then not decided.
//
// Threads: over rows; results are bit-for-bit identical for any number of threads. Cost: O(d) for a
// check, O(G d) for the scores of a row at its point. Scratch: 6 d numbers for each thread. Misuse
// throws std::invalid_argument. The caller checks that entries are finite, and precisions, widths
// and radii nonnegative.
#pragma once

#include "eigenfeat/view.hpp"

namespace eigenfeat {

enum class SetShape { ball, box };

struct DominanceProblem {
  MatrixView<const double> points;      // (n, d)
  MatrixView<const double> widths;      // (n, d), or one row for all with a row stride of 0
  VectorView<const double> radii;       // (n,)
  MatrixView<const double> offsets;     // (n, G), or one row for all
  MatrixView<const double> slopes;      // (G, d) or empty
  MatrixView<const double> precisions;  // (n, G d), or one row for all, or empty
  MatrixView<const double> centres;     // (n, G d), or one row for all, or empty
  SetShape shape = SetShape::ball;
};

// largest: (n,), the largest radius, at most radii[i], at which argmax f_c(point) dominates all other
// classes; 0 if it dominates at no radius. Bisection finds a lower bound with a relative error of
// 1e-6.
void dominance_radii(const DominanceProblem& problem, VectorView<double> largest, int n_threads);

}  // namespace eigenfeat
