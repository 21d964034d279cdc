// Private to local_means: log densities of a point under Gaussians of its first rows, for several
// numbers of rows.
#pragma once

#include <cstdint>

#include "kernels/family.hpp"

namespace eigenfeat {

// Running sums for each number of rows: a quadratic form, and in each lane the product of
// variances, as mantissa and binary exponent.
struct GaussianParts {
  static constexpr index_t kLanes = 16;
  double* quadratic;
  double* product;
  std::int64_t* exponents;
};

template <class T>
struct GaussianKernels {
  // Adds columns [first, last): for every counts[k] <= n_rows, ascending, the mean of the first
  // counts[k] rows, and their variance plus ridge > 0. The first row is subtracted before summation.
  void (*add)(const T* x, const T* const* rows, index_t n_rows, index_t first, index_t last,
              const index_t* counts, index_t n_counts, T ridge, const GaussianParts& sums);
  // Means, and variances plus ridge, of the d columns of the rows; n_rows >= 1.
  void (*of_rows)(const T* const* rows, index_t n_rows, index_t d, T ridge, double* mean,
                  double* variance);
};
EIGENFEAT_FAMILY(GaussianKernels<float>);
EIGENFEAT_FAMILY(GaussianKernels<double>);

}  // namespace eigenfeat
