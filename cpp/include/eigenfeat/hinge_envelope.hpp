// Moreau envelopes of the multiclass hinge loss: moved rows m that balance distance and loss.
//
//   e_i = min_m |m - x_i|^2 / (2 v) + C_i max_y (margin [y != y_i] + (w_y - w_{y_i})^T m)
//       = max_b s_i^T b - v/2 (b - C_i e_{y_i})^T G (b - C_i e_{y_i}),   b >= 0, sum_y b^y = C_i
//   s_i^y = margin [y != y_i] + (w_y - w_{y_i})^T x_i,   G = W W^T
//   m_i = x_i + v sum_y a_i^y w_y,   a_i = C_i e_{y_i} - b_i
//
// With d = s - v G (b - C e_{y_i}), the primal at m minus the dual at b is gap = C max_y d^y - b^T d,
// which bounds the error of both. The method keeps an active set of classes whose b^y may be
// positive. A Newton step changes the b^y of the set as far as all remain nonnegative; then the
// class of the largest d joins the set. The dual never decreases except by rounding. Most rows of
// an SVM need no step.
//
// Shapes: scores (n, k) of W x + c, G (k, k) symmetric, a (n, k). The search starts from a, or, if
// a is not feasible, from a = 0, the row that does not move. All numbers are double.
// Errors: std::invalid_argument if shapes or numbers do not fit. A row that has not converged after
// max_steps, or whose numbers are not finite, keeps its gap.
// Threads: over blocks of 64 rows; results are bit-for-bit identical for any number of threads.
// Cost: 2 k^2 + m^3 / 3 flops for a step with m active classes, at most one more than the rank of W.
// Sources: Crammer and Singer 2001; Moreau 1965; Wolfe 1976 (nearest point of a polytope, a more
// general problem).
#pragma once

#include <cstdint>

#include "eigenfeat/view.hpp"

namespace eigenfeat {

struct HingeRows {
  MatrixView<const double> scores;        // (n, k)
  MatrixView<const double> gram;          // G: (k, k)
  VectorView<const std::int32_t> labels;  // n indices in [0, k)
  VectorView<const double> costs;         // C_i: n positive numbers
  double margin = 1.0;                    // > 0
  double variance = 1.0;                  // v, at least 0
};

struct HingeOptions {
  double tolerance = 1e-9;   // stops when the gap is at most tolerance * C_i
  index_t max_steps = 1000;  // for each row
};

// a: (n, k), start and result. values: (n,), dual objectives. gaps: (n,).
void hinge_envelope(const HingeRows& rows, const HingeOptions& options, MatrixView<double> a,
                    VectorView<double> values, VectorView<double> gaps, int n_threads);

}  // namespace eigenfeat
