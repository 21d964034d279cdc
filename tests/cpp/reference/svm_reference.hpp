// The multiclass SVM of Crammer and Singer by plain loops in long double.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "eigenfeat/vector.hpp"
#include "eigenfeat/view.hpp"

namespace eigenfeat::reference::svm {

struct Values {
  long double primal = 0, dual = 0, gap = 0;
};

// Rows x (n, d), the value of the constant last feature (0 for none), labels, costs, and duals a
// (n, k).
template <class T>
Vector<Vector<long double>> weights(MatrixView<const T> x, double constant,
                                    MatrixView<const double> a) {
  const index_t d = x.cols + (constant != 0.0 ? 1 : 0);
  Vector<Vector<long double>> w(a.cols, Vector<long double>(d, 0));
  for (index_t i = 0; i < x.rows; ++i) {
    for (index_t c = 0; c < a.cols; ++c) {
      for (index_t j = 0; j < d; ++j) {
        const long double entry = j < x.cols ? static_cast<long double>(x(i, j)) : constant;
        w[c][j] += a(i, c) * entry;
      }
    }
  }
  return w;
}

template <class T>
Values values(MatrixView<const T> x, double constant, const Vector<std::int32_t>& labels,
              const Vector<double>& costs, double margin, MatrixView<const double> a) {
  const auto w = weights(x, constant, a);
  Values out;
  for (const auto& row : w) {
    for (const long double entry : row) {
      out.primal += entry * entry / 2;
      out.dual -= entry * entry / 2;
    }
  }
  for (index_t i = 0; i < x.rows; ++i) {
    const auto own = labels[i];
    Vector<long double> g;
    for (index_t c = 0; c < a.cols; ++c) {
      long double score = c == own ? 0.0L : static_cast<long double>(margin);
      for (index_t j = 0; j < w[0].size(); ++j) {
        const auto at = static_cast<index_t>(j);
        score += w[c][j] * (at < x.cols ? static_cast<long double>(x(i, at)) : constant);
      }
      g.push_back(score);
    }
    const long double loss = *std::max_element(g.begin(), g.end()) - g[own];
    out.primal += costs[i] * loss;
    out.dual += margin * a(i, own);
  }
  out.gap = out.primal - out.dual;
  return out;
}

}  // namespace eigenfeat::reference::svm
