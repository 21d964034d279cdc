// Minimum of a separable quadratic over a box:
//
//   q(x) = sum_i a_i x_i^2 + 2 g_i x_i,   |x_i| <= w_i.
//
// Coordinate by coordinate (Parrish 2012, (5.13), (5.15), (5.16)): where a_i > 0 the vertex -g_i / a_i,
// clamped to the box; elsewhere the edge against g_i. With t_i = |x_i| the minimum is
//
//   -P,  P = sum_i t_i (2 |g_i| - a_i t_i),
//
// a sum of nonnegative terms: rounding changes it by a factor of 1 +- (d + 8) eps. Linear where
// a = 0: P = 2 |g|^T w. A quadratic that is not separable is rotated into its eigenvectors first.
//
// Cost: O(d) an item. Threads: over items; every count gives the same bits. No scratch. Misuse
// throws std::invalid_argument; entries are finite, and w >= 0, which the caller checks.
#pragma once

#include "eigenfeat/view.hpp"

namespace eigenfeat {

// P; half_widths are multiplied by `stretch`.
double box_fall(const double* curvatures, const double* slopes, const double* half_widths,
                double stretch, index_t n);

// curvatures, half_widths: (n, d), or one line for all with a row stride of 0; slopes (n, d).
// values (n,): the minima; minimisers (n, d).
void minimise_over_box(MatrixView<const double> curvatures, MatrixView<const double> slopes,
                       MatrixView<const double> half_widths, VectorView<double> values,
                       MatrixView<double> minimisers, int n_threads);

}  // namespace eigenfeat
