#include "regions/eigenbasis.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include "base/vectors.hpp"
#include "eigenfeat/parallel.hpp"
#include "regions/secular.hpp"

namespace eigenfeat {
Eigenbasis::Eigenbasis(MatrixView<const double> a, MatrixView<const double> slopes, int n_threads)
    : d_(a.rows),
      a_(a),
      exponent_(-BallScale(largest_magnitude(a.data, d_ * d_), 0.0, 1.0).value_exponent),
      curved_(kInfinity),
      sloped_(kInfinity),
      vectors_(d_ * d_),
      values_(d_),
      slopes_(slopes.rows * d_) {
  const PowerOfTwo scale(exponent_), back(-exponent_);
  std::transform(a.data, a.data + d_ * d_, vectors_.data(), scale);
  LapackWork<double> work;
  converged = syevd(Triangle::lower, vectors(), {values_.data(), d_}, work) == 0;
  std::transform(values_.data(), values_.data() + d_, values_.data(), back);
  constexpr index_t kRows = 64;  // slopes of a task
  for_ranges(slopes.rows, kRows, n_threads, [&](index_t begin, index_t end, int) {
    gemm<double>(Op::transpose, Op::none, 1.0, vectors(),
                 slopes.block(begin, 0, end - begin, d_).transposed(), 0.0,
                 column_major(slopes_.data() + begin * d_, d_, end - begin));
  });
}

void Eigenbasis::back(const double* y, double* x) const {
  gemm<double>(Op::none, Op::none, 1.0, vectors(), column_major(y, d_, 1), 0.0,
               column_major(x, d_, 1));
}

void Eigenbasis::measure() {
  if (!converged) return;
  const index_t entries = d_ * d_;
  const double order = static_cast<double>(d_);
  const double rounding = 0.5 * (order + 8.0) * kRound * (1.0 + 1e-6);
  const PowerOfTwo scale(exponent_), unscale(-exponent_);
  AlignedBuffer<double> product(entries), weighted(entries);
  const auto size = [&] { return std::sqrt(dot(product.data(), product.data(), entries)); };

  gemm<double>(Op::transpose, Op::none, 1.0, vectors(), vectors(), 0.0,
               column_major(product.data(), d_, d_));
  for (index_t i = 0; i < d_; ++i) product[i * (d_ + 1)] -= 1.0;
  double h = size() * (1.0 + 2 * rounding);
  h = 1.01 * (h + order * rounding);  // the 1% covers factors 1 + h, as h must be small

  double sum = 0.0, largest = 0.0;
  for (index_t j = 0; j < d_; ++j) {
    const double value = scale(values_[j]);
    sum += std::fabs(value);
    largest = std::max(largest, std::fabs(value));
    for (index_t i = 0; i < d_; ++i) weighted[j * d_ + i] = vectors_[j * d_ + i] * value;
  }
  std::transform(a_.data, a_.data + entries, product.data(), scale);
  const double given = size();
  gemm<double>(Op::none, Op::transpose, -1.0, column_major<const double>(weighted.data(), d_, d_),
               vectors(), 1.0, column_major(product.data(), d_, d_));
  const double rest = size() * (1.0 + 2 * rounding) + rounding * ((1.0 + h) * sum + given);
  curved_ = 1.01 * unscale(rest + (2.0 + h) * h * largest + 1e-290);
  sloped_ = 2.0 * 1.01 * (h + rounding * std::sqrt(order * (1.0 + h)));
}

double Eigenbasis::error(double length, double radius) const {
  return curved_ * radius * radius + sloped_ * length * radius;
}

}  // namespace eigenfeat
