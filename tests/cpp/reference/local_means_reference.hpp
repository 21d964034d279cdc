// Local neighbours, LDG's scatters and local QDA's discriminants by plain loops in long double.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <utility>

#include "eigenfeat/vector.hpp"
#include "eigenfeat/view.hpp"

namespace eigenfeat::reference {

template <class T>
long double squared_distance(MatrixView<const T> a, index_t i, MatrixView<const T> b, index_t j) {
  long double sum = 0;
  for (index_t c = 0; c < a.cols; ++c) {
    const long double gap = static_cast<long double>(a(i, c)) - static_cast<long double>(b(j, c));
    sum += gap * gap;
  }
  return sum;
}

// The k nearest rows of a class, by sorting pairs (distance, row); -1 where the class has fewer.
// Rows in `left_out` are not chosen.
template <class T, class LeftOut>
Vector<index_t> nearest(MatrixView<const T> queries, index_t i, MatrixView<const T> rows,
                        VectorView<const std::int32_t> codes, std::int32_t c, index_t k,
                        LeftOut left_out) {
  Vector<std::pair<long double, index_t>> found;
  for (index_t j = 0; j < rows.rows; ++j) {
    if (codes[j] == c && !left_out(j)) found.emplace_back(squared_distance(queries, i, rows, j), j);
  }
  std::sort(found.begin(), found.end());
  Vector<index_t> result(k, -1);
  for (index_t r = 0; r < std::min(found.size(), result.size()); ++r) result[r] = found[r].second;
  return result;
}

struct LocalDifference {
  index_t count = 0;
  Vector<long double> gap;       // x - mean
  Vector<long double> variance;  // maximum-likelihood estimate
};

template <class T>
LocalDifference local_difference(MatrixView<const T> queries, index_t i, MatrixView<const T> rows,
                                 const index_t* list, index_t k) {
  LocalDifference result;
  while (result.count < k && list[result.count] >= 0) ++result.count;
  for (index_t c = 0; c < rows.cols && result.count > 0; ++c) {
    long double mean = 0, spread = 0;
    for (index_t r = 0; r < result.count; ++r) mean += static_cast<long double>(rows(list[r], c));
    mean /= static_cast<long double>(result.count);
    for (index_t r = 0; r < result.count; ++r) {
      const long double gap = static_cast<long double>(rows(list[r], c)) - mean;
      spread += gap * gap;
    }
    result.gap.push_back(static_cast<long double>(queries(i, c)) - mean);
    result.variance.push_back(spread / static_cast<long double>(result.count));
  }
  return result;
}

// sum over pairs of weight(i, c) D D^T, entry (a, b) at a d + b.
template <class T, class Weight>
Vector<long double> scatter(MatrixView<const T> queries, MatrixView<const T> rows,
                            const Vector<index_t>& lists, index_t n_classes, index_t k,
                            Weight weight) {
  const index_t d = rows.cols;
  Vector<long double> sum(d * d, 0);
  for (index_t i = 0; i < queries.rows; ++i) {
    for (index_t c = 0; c < n_classes; ++c) {
      const auto found =
          local_difference(queries, i, rows, lists.data() + (i * n_classes + c) * k, k);
      for (index_t a = 0; a < d && found.count > 0; ++a) {
        for (index_t b = 0; b < d; ++b) {
          sum[a * d + b] += static_cast<long double>(weight(i, c)) * found.gap[a] * found.gap[b];
        }
      }
    }
  }
  return sum;
}

inline long double log_density(const LocalDifference& local, long double ridge) {
  if (local.count == 0) return -std::numeric_limits<long double>::infinity();
  long double sum = 0;
  for (index_t c = 0; c < local.gap.size(); ++c) {
    const long double spread = local.variance[c] + ridge;
    sum += local.gap[c] * local.gap[c] / spread + std::log(spread);
  }
  return -sum / 2;
}

}  // namespace eigenfeat::reference
