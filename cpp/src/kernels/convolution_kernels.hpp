// Private to signals: outputs of convolutions of series, numbers of outputs above thresholds, and
// numbers of times at which an output is the largest or the smallest of its group.
#pragma once

#include "kernels/family.hpp"

namespace eigenfeat {

inline constexpr index_t kTaps = 9;           // taps of a kernel
inline constexpr index_t kMaxThresholds = 4;  // thresholds of one call of `count`
inline constexpr index_t kRivals = 7;         // convolutions of a group

// Series are preceded by 8 * dilation zeros. 64 bytes after the end of each array must be readable.
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
  // The kRivals rows of `values`, with stride `apart`, compete at each t, from <= t < last; of equal
  // values, the first wins. The largest value, if positive, is added to the winner's row of
  // `sums`, whose rows have 64 bytes, in column (t - first) modulo the length of a row.
  // counts[k] += number of t at which row k is the smallest.
  void (*compete)(const T* values, index_t apart, index_t first, index_t from, index_t last,
                  T* sums, index_t* counts);
};
EIGENFEAT_FAMILY(ConvolutionKernels<float>);
EIGENFEAT_FAMILY(ConvolutionKernels<double>);

}  // namespace eigenfeat
