// Powers of half waves by their formulas in long double.
#pragma once

#include <algorithm>
#include <cmath>

#include "eigenfeat/view.hpp"

namespace eigenfeat::reference {

// v^T x + offset for row i and direction f; an empty `offset` means zero.
template <class T>
long double projection(MatrixView<const T> rows, MatrixView<const T> directions,
                       VectorView<const T> offset, index_t i, index_t f) {
  long double sum = offset.empty() ? 0.0L : static_cast<long double>(offset[f]);
  for (index_t j = 0; j < rows.cols; ++j) {
    sum += static_cast<long double>(rows(i, j)) * static_cast<long double>(directions(j, f));
  }
  return sum;
}

// |v|^T |x| + |offset|: the rounding error of the projection is at most a few eps times this sum.
template <class T>
long double projection_magnitude(MatrixView<const T> rows, MatrixView<const T> directions,
                                 VectorView<const T> offset, index_t i, index_t f) {
  long double sum = offset.empty() ? 0.0L : std::fabs(static_cast<long double>(offset[f]));
  for (index_t j = 0; j < rows.cols; ++j) {
    sum += std::fabs(static_cast<long double>(rows(i, j)) *
                     static_cast<long double>(directions(j, f)));
  }
  return sum;
}

// max(0, z)^(power / 2)
inline long double half_wave(long double z, int power) {
  return std::pow(std::max(0.0L, z), static_cast<long double>(power) / 2);
}

// (sqrt(1 + max(0, z)) - 1)^power
inline long double shifted_wave(long double z, int power) {
  return std::pow(std::sqrt(1 + std::max(0.0L, z)) - 1, static_cast<long double>(power));
}

}  // namespace eigenfeat::reference
