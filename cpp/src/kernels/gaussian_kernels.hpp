// Private to local_means: log densities of a point under Gaussians of growing numbers of rows.
#pragma once

#include <cstdint>
#include <vector>

#include "eigenfeat/view.hpp"

namespace eigenfeat {

// Running sums for each number of rows; sized by start().
struct GaussianSums {
  static constexpr index_t kLanes = 16;
  std::vector<double> quadratic;        // one a number
  std::vector<double> product;          // lanes: mantissas of the product of variances
  std::vector<std::int64_t> exponents;  // and their binary exponents

  void start(index_t n_counts);
  // -(quadratic + log of the product) / 2
  double score(index_t k) const;
};

// Adds all columns: for every counts[k] <= n_rows, ascending, the mean and variance of the first
// counts[k] rows, the latter plus ridge > 0. Sums are about the first row.
void add_gaussians(const float* x, const float* const* rows, index_t n_rows, index_t d,
                   const index_t* counts, index_t n_counts, float ridge, GaussianSums& sums);
void add_gaussians(const double* x, const double* const* rows, index_t n_rows, index_t d,
                   const index_t* counts, index_t n_counts, double ridge, GaussianSums& sums);

// Means and variances, ridge added, of the rows' d columns; n_rows >= 1.
void gaussian_of(const float* const* rows, index_t n_rows, index_t d, float ridge, double* mean,
                 double* variance);
void gaussian_of(const double* const* rows, index_t n_rows, index_t d, double ridge, double* mean,
                 double* variance);

}  // namespace eigenfeat
