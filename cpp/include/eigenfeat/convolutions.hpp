// Convolution features of series, as in MiniRocket (Dempster, Schmidt and Webb 2021), and features of
// competing convolutions, as in Hydra (Dempster, Schmidt and Webb 2023).
//
// The 84 kernels have nine taps: three of weight 2, the others -1. Kernel k with dilation d gives
//
//   c[t] = sum over the kernel's channels and j = 0 .. 8 of w_kj x[t - (8 - j) d],
//
// where samples before the first are 0. A window ends at t and uses no later sample. Outputs count
// from t = 4 d on if k and the index of d among the dilations are both odd or both even; otherwise
// from t = 8 d on, the first complete window. A feature is the share of outputs above a threshold b,
//
//   #{first <= t < end : c[t] > b} / (end - first),   0 where end <= first,
//
// Each series has its own values of `end`.
//
// At a dilation without thresholds, the 84 kernels compete in groups of seven at each t from 4 d
// on. If m is the number of these t, each kernel of a group has the two features
//
//   sqrt(sum of max(c[t], 0) over the t where the kernel has the largest c[t] of its group / m),
//   sqrt(#{t : the kernel has the smallest c[t] of its group} / m);
//
// of equal outputs, the first one wins. A dilation of order 1 is applied to the differences
// x[t + 1] - x[t], which are one fewer than the samples.
//
// The features of a prefix equal the features of the truncated series bit for bit, and one pass
// computes all prefixes. The order of summation is fixed: results are bit-for-bit identical for every
// tier and every number of threads. T is float or double; counts are exact.
//
// Cost: about 9 + 84 (3 channels + thresholds) operations for each sample and dilation; a dilation
// without thresholds costs as much as 8 thresholds. Threads: over series. Misuse throws
// std::invalid_argument.
#pragma once

#include "eigenfeat/view.hpp"

namespace eigenfeat {

inline constexpr index_t kConvolutionKernels = 84;

// Pairs (dilation, kernel) are numbered dilation by dilation.
struct ConvolutionPlan {
  index_t n_channels = 1;
  VectorView<const index_t> dilations;      // (D,), each at least 1
  VectorView<const index_t> orders;         // (D,): 0 for the series, 1 for its differences
  VectorView<const index_t> n_thresholds;   // (D,): thresholds of each kernel
  VectorView<const index_t> channel_begin;  // (84 D + 1,): first entry of each pair in `channels`
  VectorView<const index_t> channels;
  MatrixView<const index_t> rivals;  // (competing dilations, 84): kernels; every seven form a group
};

// Number of features of a series. Features are ordered by dilation, then by kernel and threshold; the
// 2 x 84 features of a dilation without thresholds by group, largest or smallest, and kernel.
index_t count_convolution_features(const ConvolutionPlan& plan, index_t n_thresholds);

// series: (n, channels * length), channel by channel. thresholds: pair by pair. ends: (n, m),
// ascending in each row and at most length. features: (n, m * F), where F is the number of features
// above.
template <class T>
void convolution_features(MatrixView<const T> series, const ConvolutionPlan& plan,
                          VectorView<const T> thresholds, MatrixView<const index_t> ends,
                          MatrixView<T> features, int n_threads);

// Outputs of the pairs first_pair, first_pair + 1, ...: row p of outputs (m, length) belongs to pair
// first_pair + p and series rows[p], and is 0 before its first output.
template <class T>
void convolution_outputs(MatrixView<const T> series, const ConvolutionPlan& plan,
                         index_t first_pair, VectorView<const index_t> rows, MatrixView<T> outputs,
                         int n_threads);

}  // namespace eigenfeat
