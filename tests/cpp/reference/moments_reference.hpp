// Class moments by plain loops: two passes over the rows in long double.
//
//   W = sum_i w_i,   mu = sum_i w_i x_i / W,   S = sum_i w_i (x_i - mu)(x_i - mu)^T
//
// The class's first row is first subtracted from every row, so that a huge mean costs no digits.
#pragma once

#include <cstddef>
#include <cstdint>

#include "eigenfeat/vector.hpp"
#include "eigenfeat/view.hpp"

namespace eigenfeat::reference {

struct Moments {
  index_t n_features = 0;
  long double weight = 0;
  Vector<long double> mean;
  Vector<long double> covariance_entries;  // (d, d)

  long double covariance(index_t i, index_t j) const {
    return covariance_entries[i * n_features + j];
  }
  long double second_moment(index_t i, index_t j) const {
    return covariance(i, j) + mean[i] * mean[j];
  }
};

// Moments of the rows whose label is `label`; an empty `weights` means all ones.
template <class T>
Moments class_moments(MatrixView<const T> rows, VectorView<const std::int32_t> labels,
                      VectorView<const double> weights, std::int32_t label) {
  const index_t d = rows.cols;
  Moments result;
  result.n_features = d;
  result.mean.assign(d, 0.0L);
  result.covariance_entries.assign(d * d, 0.0L);

  const auto weight_of = [&](index_t i) -> long double {
    if (labels[i] != label) return 0.0L;
    return weights.empty() ? 1.0L : static_cast<long double>(weights[i]);
  };
  index_t first = -1;
  for (index_t i = 0; i < rows.rows; ++i) {
    if (first < 0 && weight_of(i) > 0) first = i;
    result.weight += weight_of(i);
  }
  if (first < 0) return result;
  const auto shifted = [&](index_t i, index_t j) {
    return static_cast<long double>(rows(i, j)) - static_cast<long double>(rows(first, j));
  };

  VectorView<long double> mean{result.mean.data(), d};
  for (index_t i = 0; i < rows.rows; ++i) {
    for (index_t j = 0; j < d; ++j) {
      if (weight_of(i) > 0) mean[j] += weight_of(i) * shifted(i, j) / result.weight;
    }
  }
  MatrixView<long double> covariance = row_major(result.covariance_entries.data(), d, d);
  for (index_t i = 0; i < rows.rows; ++i) {
    if (!(weight_of(i) > 0)) continue;
    const long double share = weight_of(i) / result.weight;
    for (index_t j = 0; j < d; ++j) {
      for (index_t k = 0; k < d; ++k) {
        covariance(j, k) += share * (shifted(i, j) - mean[j]) * (shifted(i, k) - mean[k]);
      }
    }
  }
  for (index_t j = 0; j < d; ++j) mean[j] += static_cast<long double>(rows(first, j));
  return result;
}

}  // namespace eigenfeat::reference
