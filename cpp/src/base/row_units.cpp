#include "base/row_units.hpp"

#include <algorithm>
#include <cmath>

#include "base/class_order.hpp"
#include "eigenfeat/parallel.hpp"
#include "eigenfeat/vector.hpp"
#include "kernels/distance_kernels.hpp"

namespace eigenfeat {
namespace {

constexpr double kLargest = 1e150;  // limit of entries, whose squares are finite in double

struct Sums {
  Vector<double> sum, peak;
};

// Sums of at most 64 runs of rows, merged in order.
template <class T>
Sums sums_of(MatrixView<const T> x, int n_threads) {
  const index_t width = std::max<index_t>(256, (x.rows + 63) / 64);
  const index_t runs = (x.rows + width - 1) / width;
  Vector<double> partial(runs * 2 * x.cols, 0.0);
  for_ranges(x.rows, width, n_threads, [&](index_t begin, index_t end, int) {
    double* sum = partial.data() + begin / width * 2 * x.cols;
    for (index_t i = begin; i < end; ++i)
      kernels<DistanceKernels<T>>().add_row(x.row(i), x.cols, sum, sum + x.cols);
  });
  Sums total{Vector<double>(x.cols, 0.0), Vector<double>(x.cols, 0.0)};
  for (index_t run = 0; run < runs; ++run) {
    const double* sum = partial.data() + run * 2 * x.cols;
    for (index_t j = 0; j < x.cols; ++j) {
      total.sum[j] += sum[j];
      total.peak[j] = std::max(total.peak[j], sum[x.cols + j]);
    }
  }
  // A NaN makes the sum of its column NaN.
  for (index_t j = 0; j < x.cols; ++j) {
    if (std::isfinite(total.sum[j]) && total.peak[j] < kLargest) continue;
    for (index_t i = 0; i < x.rows; ++i) check_entry(static_cast<double>(x(i, j)), kLargest, i, j);
  }
  return total;
}

}  // namespace

template <class T>
RowUnits row_units(MatrixView<const T> references, MatrixView<const T> queries, bool same,
                   int n_threads) {
  Sums sums = sums_of(references, n_threads);
  RowUnits units{std::move(sums.sum), std::move(sums.peak), 1.0};
  for (double& sum : units.mean) sum /= static_cast<double>(std::max<index_t>(references.rows, 1));
  if (!same) {
    const Sums others = sums_of(queries, n_threads);
    for (index_t j = 0; j < units.peak.size(); ++j)
      units.peak[j] = std::max(units.peak[j], others.peak[j]);
  }
  double largest = 0.0;
  for (index_t j = 0; j < units.peak.size(); ++j) {
    units.peak[j] += std::abs(units.mean[j]);
    largest = std::max(largest, units.peak[j]);
  }
  // 2^1000 at most: a larger scale could overflow.
  if (largest > 0.0) units.scale = std::ldexp(1.0, -std::max(std::ilogb(largest), -1000));
  return units;
}

template RowUnits row_units<float>(MatrixView<const float>, MatrixView<const float>, bool, int);
template RowUnits row_units<double>(MatrixView<const double>, MatrixView<const double>, bool, int);

}  // namespace eigenfeat
