// Private to signals: outputs of the convolutions of series, how many are above thresholds, and how
// often each is the largest or the smallest of its group.
#pragma once

#include "kernels/family.hpp"

namespace eigenfeat {

inline constexpr index_t kTaps = 9;           // of a kernel
inline constexpr index_t kMaxThresholds = 4;  // of one call of `count`
inline constexpr index_t kRivals = 7;         // convolutions of a group

// Series are preceded by 8 dilations of zeros, and arrays followed by 64 bytes that may be read.
template <class T>
struct ConvolutionKernels {
  // out[t] = -(x[t - 8 d] + ... + x[t - d] + x[t]), 0 <= t < length
  void (*negated_sums)(const T* x, index_t length, index_t dilation, T* out);
  // out[t] = sum over channels c of sums[c][t] + tripled[c][t - lags[0]] + tripled[c][t - lags[1]]
  //          + tripled[c][t - lags[2]], first <= t < last
  void (*outputs)(const T* const* sums, const T* const* tripled, const index_t* channels,
                  index_t n_channels, const index_t* lags, index_t first, index_t last, T* out);
  // counts[k] += number of values[t] > thresholds[k], first <= t < last, n <= kMaxThresholds
  void (*count)(const T* values, index_t first, index_t last, const T* thresholds, index_t n,
                index_t* counts);
  // Rows k < kRivals of values, `apart` numbers apart, compete at each t, from <= t < last; the first
  // of equal ones wins. sums (kRivals, 64 bytes) += the largest, if positive, in the winner's row, at
  // column t - first of a line; counts[k] += number of t where row k is the smallest.
  void (*compete)(const T* values, index_t apart, index_t first, index_t from, index_t last,
                  T* sums, index_t* counts);
};
EIGENFEAT_FAMILY(ConvolutionKernels<float>);
EIGENFEAT_FAMILY(ConvolutionKernels<double>);

}  // namespace eigenfeat
