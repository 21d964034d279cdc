// Private to local_means: log densities of a point under Gaussians of growing numbers of rows.
#pragma once

#include <cstdint>

#include "kernels/family.hpp"

namespace eigenfeat {

// Running sums for each number of rows: a quadratic form each, and in so many lanes each the
// product of variances, as mantissas and binary exponents.
struct GaussianParts {
  static constexpr index_t kLanes = 16;
  double* quadratic;
  double* product;
  std::int64_t* exponents;
};

template <class T>
struct GaussianKernels {
  // Adds columns [first, last): for every counts[k] <= n_rows, ascending, the mean and variance of
  // the first counts[k] rows, the latter plus ridge > 0. Sums are about the first row.
  void (*add)(const T* x, const T* const* rows, index_t n_rows, index_t first, index_t last,
              const index_t* counts, index_t n_counts, T ridge, const GaussianParts& sums);
  // Means and variances, ridge added, of the rows' d columns; n_rows >= 1.
  void (*of_rows)(const T* const* rows, index_t n_rows, index_t d, T ridge, double* mean,
                  double* variance);
};
EIGENFEAT_FAMILY(GaussianKernels<float>);
EIGENFEAT_FAMILY(GaussianKernels<double>);

}  // namespace eigenfeat
