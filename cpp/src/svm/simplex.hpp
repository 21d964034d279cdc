// Private to the multiclass SVM: the exact step of one row.
#pragma once

#include <algorithm>
#include <utility>

#include "eigenfeat/vector.hpp"
#include "eigenfeat/view.hpp"

namespace eigenfeat {

// Projections on the simplex { b >= 0, sum b = size } by sorting (Held, Wolfe and Crowder 1974).
// Only entries within `size` of the largest can be positive, so that few are sorted.
class SimplexProjection {
 public:
  // z: k numbers. Calls put(c, b_c) for every c with positive b_c.
  template <class Put>
  void operator()(const double* z, index_t k, double size, Put&& put) {
    const double top = *std::max_element(z, z + k);
    candidates_.clear();
    for (index_t c = 0; c < k; ++c) {
      if (z[c] - top > -size) candidates_.emplace_back(z[c] - top, c);
    }
    if (candidates_.empty()) candidates_.emplace_back(0.0, std::max_element(z, z + k) - z);
    // Equal entries are in the order of their classes, so that the rounding of the sum is
    // reproducible.
    std::sort(candidates_.begin(), candidates_.end(), [](const auto& a, const auto& b) {
      return a.first != b.first ? a.first > b.first : a.second < b.second;
    });
    double sum = 0.0, level = 0.0;
    index_t kept = 0;
    for (; kept < candidates_.size(); ++kept) {
      const double with = sum + candidates_[kept].first;
      const double next = (with - size) / static_cast<double>(kept + 1);
      if (kept > 0 && candidates_[kept].first <= next) break;
      sum = with;
      level = next;
    }
    for (index_t c = 0; c < kept; ++c) {
      const double value = candidates_[c].first - level;
      if (value > 0.0) put(candidates_[c].second, std::min(value, size));
    }
  }

 private:
  Vector<std::pair<double, index_t>> candidates_;
};

}  // namespace eigenfeat
