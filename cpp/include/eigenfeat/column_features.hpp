// Features of single columns: ranks, bins and cubic B-splines.
//
// The rank of x among ascending quantiles q_0, ..., q_m is sqrt(12) (F(x) - 1/2), where F is
// continuous: F(q_i) = s_i, linear between quantiles that differ, s_0 below q_0 and s_m from q_m on.
// The caller gives the shares s_i; equal quantiles have equal shares, the middle of the step of F.
//
// The bin of x is the number of edges that are at most x.
//
// Splines are the B-splines of degree 3 on a column's knots t, except the last spline, by de Boor's
// recurrence (de Boor 1972; SciPy's BSpline). x is first clipped to the interval from the fourth knot
// to the fourth knot from the end.
//
// T is float or double, the type of the samples. Differences are computed in T, everything else in
// double, and features are rounded to float. The bits of a sample's features depend neither on the
// number of threads nor on the other samples.
//
// Cost: log2(m) comparisons for each entry, and about 40 operations for a spline. Threads: over
// samples. Misuse throws std::invalid_argument.
#pragma once

#include "eigenfeat/view.hpp"

namespace eigenfeat {

inline constexpr index_t kSplineDegree = 3;

// x: (n, d), row-major. columns: (c,), indices of columns of x. quantiles, shares: (c, m + 1),
// row-major, a row for each of these columns. ranks: (n, c), the result.
template <class T>
void column_ranks(MatrixView<const T> x, VectorView<const index_t> columns,
                  MatrixView<const T> quantiles, MatrixView<const double> shares,
                  MatrixView<float> ranks, int n_threads);

// edges: the ascending edges of all columns; edges of column c are at [starts[c], starts[c + 1]).
// bins: (n, c), the result.
template <class T>
void column_bins(MatrixView<const T> x, VectorView<const index_t> columns,
                 VectorView<const double> edges, VectorView<const index_t> starts,
                 MatrixView<index_t> bins, int n_threads);

// knots: the knots of all columns; knots of column c are at [starts[c], starts[c + 1]). A column
// has at least eight knots, which ascend, strictly from the fourth to the fourth from the end. out:
// (n, F), row-major, with starts[c + 1] - starts[c] - 5 splines of column c.
template <class T>
void column_splines(MatrixView<const T> x, VectorView<const index_t> columns,
                    VectorView<const double> knots, VectorView<const index_t> starts,
                    MatrixView<float> out, int n_threads);

}  // namespace eigenfeat
