// Private to local_gaussians: running sums of log densities for each number of rows.
#pragma once

#include <cmath>

#include "eigenfeat/vector.hpp"
#include "kernels/gaussian_kernels.hpp"

namespace eigenfeat {

class GaussianSums {
 public:
  void start(index_t n_counts) {
    quadratic_.assign(n_counts, 0.0);
    product_.assign(n_counts * kLanes, 1.0);
    exponents_.assign(n_counts * kLanes, 0);
  }

  GaussianParts parts() { return {quadratic_.data(), product_.data(), exponents_.data()}; }

  // -(quadratic + log of the product) / 2
  double score(index_t k) const {
    double mantissas = 1.0;  // at most 2^16
    std::int64_t exponent = 0;
    for (index_t l = k * kLanes; l < (k + 1) * kLanes; ++l) {
      mantissas *= product_[l];
      exponent += exponents_[l];
    }
    const double log_product = std::log(mantissas) + static_cast<double>(exponent) * std::log(2.0);
    return -0.5 * (quadratic_[k] + log_product);
  }

 private:
  static constexpr index_t kLanes = GaussianParts::kLanes;
  Vector<double> quadratic_;
  Vector<double> product_;
  Vector<std::int64_t> exponents_;
};

}  // namespace eigenfeat
