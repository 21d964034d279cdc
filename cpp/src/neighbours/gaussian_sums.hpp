// Private to local_gaussians: running sums of log densities, for each number of rows.
#pragma once

#include <cmath>
#include <vector>

#include "kernels/gaussian_kernels.hpp"

namespace eigenfeat {

class GaussianSums {
 public:
  void start(index_t n_counts) {
    const auto n = static_cast<std::size_t>(n_counts);
    quadratic_.assign(n, 0.0);
    product_.assign(n * kLanes, 1.0);
    exponents_.assign(n * kLanes, 0);
  }

  GaussianParts parts() { return {quadratic_.data(), product_.data(), exponents_.data()}; }

  // -(quadratic + log of the product) / 2
  double score(index_t k) const {
    const auto at = static_cast<std::size_t>(k);
    double mantissas = 1.0;  // at most 2^16
    std::int64_t exponent = 0;
    for (std::size_t l = at * kLanes; l < (at + 1) * kLanes; ++l) {
      mantissas *= product_[l];
      exponent += exponents_[l];
    }
    const double log_product = std::log(mantissas) + static_cast<double>(exponent) * std::log(2.0);
    return -0.5 * (quadratic_[at] + log_product);
  }

 private:
  static constexpr std::size_t kLanes = GaussianParts::kLanes;
  std::vector<double> quadratic_;
  std::vector<double> product_;
  std::vector<std::int64_t> exponents_;
};

}  // namespace eigenfeat
