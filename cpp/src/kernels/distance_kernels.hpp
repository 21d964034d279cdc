// Private to local_means and local_affinity: loops over columns, and over the distances of a block.
#pragma once

#include <cstdint>

#include "kernels/family.hpp"

namespace eigenfeat {

template <class T>
struct DistanceKernels {
  // out = x scale - shift
  void (*shift_and_scale)(const T* x, index_t d, const T* shift, T scale, T* out);
  // |x|^2
  double (*squared_norm)(const T* x, index_t d);
  // sum[j] += x[j], peak[j] = max(peak[j], |x[j]|)
  void (*add_row)(const T* x, index_t d, double* sum, double* peak);
  // |scale (x - y)|^2 in double, from the original rows
  double (*exact_distance)(const T* x, const T* y, index_t d, double scale);
  // low[j] = base[j] - 2 dot[j] - factor radius[j]; writes the indices j with low[j] <= limit to
  // hits, and returns their number.
  index_t (*lows_below)(const T* dot, const T* base, const T* radius, T factor, index_t n, T limit,
                        T* low, std::int32_t* hits);
  // out[j] = sum over rows r of (x[j] - r[j])
  void (*sum_of_differences)(const T* x, const T* const* rows, index_t n_rows, index_t d, T* out);
  // t = sum over rows r of (x[j] - r[j]) times share (and scale[j], if there is a scale);
  // own[j] += t, and target[j] -= t / n_rows for each of n_rows targets
  void (*spread_difference)(const T* x, const T* const* rows, index_t n_rows, index_t d,
                            const T* scale, T share, T* own, T* const* targets);
};
EIGENFEAT_FAMILY(DistanceKernels<float>);
EIGENFEAT_FAMILY(DistanceKernels<double>);

}  // namespace eigenfeat
