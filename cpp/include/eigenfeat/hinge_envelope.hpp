// Rows moved just as far as their multiclass hinge loss repays: Moreau envelopes of the hinge.
//
//   e_i = min_m |m - x_i|^2 / (2 v) + C_i max_y (margin [y != y_i] + (w_y - w_{y_i})^T m)
//       = max_b s_i^T b - v/2 (b - C_i e_{y_i})^T G (b - C_i e_{y_i}),   b >= 0, sum_y b^y = C_i
//   s_i^y = margin [y != y_i] + (w_y - w_{y_i})^T x_i,   G = W W^T
//   m_i = x_i + v sum_y a_i^y w_y,   a_i = C_i e_{y_i} - b_i
//
// With d = s - v G (b - C e_{y_i}), the primal at m less the dual at b is gap = C max_y d^y - b^T d,
// which bounds the error of both. An active-set method: Newton steps among the classes whose b^y may
// be positive, each as far as all stay so; then the class of the greatest d joins them. The dual
// never falls, but by rounding, and most rows of an SVM need no step.
//
// Shapes: scores (n, k) of W x + c, G (k, k) symmetric, a (n, k). a is read as a start; where it is
// not feasible the row starts where it stays. Everything is double.
// Errors: std::invalid_argument where shapes or numbers do not fit. A row that is not done after
// max_steps, or whose numbers are not finite, keeps its gap.
// Threads: rows are shared in blocks of 64; every number of threads gives the same bits.
// Cost: 2 k^2 + m^3 / 3 flops a step, m classes being active: at most one more than W has
// dimensions. Source: Crammer and Singer 2001; Moreau 1965; Wolfe 1976 (the nearest point of a
// polytope, of which this is a case).
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
  index_t max_steps = 1000;  // of a row
};

// a: (n, k), start and result; values: the dual; gaps: n each.
void hinge_envelope(const HingeRows& rows, const HingeOptions& options, MatrixView<double> a,
                    VectorView<double> values, VectorView<double> gaps, int n_threads);

}  // namespace eigenfeat
