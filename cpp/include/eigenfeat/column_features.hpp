// Features of single columns: ranks, bins and cubic B-splines.
//
// The rank of x among ascending quantiles q_0, ..., q_m is sqrt(12) (F(x) - 1/2), where F is continuous:
// F(q_i) = s_i, linear between quantiles that differ, s_0 below q_0 and s_m from q_m on. Shares s_i are
// the caller's, equal where quantiles are; with ties, the middle of their step.
//
// The bin of x is the number of edges that are at most x.
//
// Splines are all B-splines of degree 3 on a column's knots t, but for the last one, by de Boor's
// recurrence, at x no further out than t_3 and the knot before the last three (de Boor 1972; SciPy's
// BSpline).
//
// T is float or double, the type of the samples. Differences are of that type, all else is double, and
// features are rounded to float. Samples are independent of each other: bits depend neither on
// threads nor on the other samples.
//
// Cost: for each number log2(m) comparisons, and some 40 operations for a spline. Threads: over
// samples. Misuse throws std::invalid_argument.
#pragma once

#include "eigenfeat/view.hpp"

namespace eigenfeat {

inline constexpr index_t kSplineDegree = 3;

// x (n, d), row-major; columns (c,), of x; quantiles and shares (c, m + 1), row-major, of these columns.
// ranks (n, c) <- the ranks.
template <class T>
void column_ranks(MatrixView<const T> x, VectorView<const index_t> columns,
                  MatrixView<const T> quantiles, MatrixView<const double> shares,
                  MatrixView<float> ranks, int n_threads);

// edges: the ascending edges of one column after the other, column c's in [starts[c], starts[c + 1]).
// bins (n, c) <- the bins.
template <class T>
void column_bins(MatrixView<const T> x, VectorView<const index_t> columns,
                 VectorView<const double> edges, VectorView<const index_t> starts,
                 MatrixView<index_t> bins, int n_threads);

// knots: those of one column after the other, column c's in [starts[c], starts[c + 1]), at least eight,
// ascending, and strictly from the fourth to the fourth from the end. out (n, F), row-major, has
// starts[c + 1] - starts[c] - 5 splines of each column.
template <class T>
void column_splines(MatrixView<const T> x, VectorView<const index_t> columns,
                    VectorView<const double> knots, VectorView<const index_t> starts,
                    MatrixView<float> out, int n_threads);

}  // namespace eigenfeat
