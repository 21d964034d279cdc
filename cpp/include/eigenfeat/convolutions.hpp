// Convolution features of series, in the manner of MiniRocket (Dempster, Schmidt and Webb 2021), and
// of contests of convolutions, in the manner of Hydra (Dempster, Schmidt and Webb 2023).
//
// The 84 kernels have nine taps: three of weight 2, the others -1. Kernel k with dilation d gives
//
//   c[t] = sum over the kernel's channels and j = 0 .. 8 of w_kj x[t - (8 - j) d],
//
// where samples before the first are 0. A window ends at t and uses nothing after it. Outputs count
// from t = 4 d on where d's place among the dilations and k are both odd or both even, and else from
// t = 8 d on, the first whole window. A feature is the share of a threshold's exceedances,
//
//   #{first <= t < end : c[t] > b} / (end - first),   0 where end <= first,
//
// at ends that each series has of its own.
//
// Dilations without thresholds have contests instead: the 84 kernels in groups of seven compete at
// each t from 4 d on. The features of a group are, with m the number of these t,
//
//   sqrt(sum of c[t] > 0 over the t where a kernel has the largest c[t] of its group / m),
//   sqrt(#{t : a kernel has the smallest c[t] of its group} / m),
//
// of seven kernels each; the first of equal outputs counts. A dilation of order 1 is applied to the
// differences x[t + 1] - x[t], which have one sample less.
//
// The features of a prefix are those of the series cut there, bit for bit, and all prefixes take one
// pass. Sums run in one order: every tier and every number of threads gives the same bits. T is float
// or double; counts are exact.
//
// Cost: about 9 + 84 (3 channels + thresholds) operations for each sample and dilation, where a contest
// counts as 8 thresholds. Threads: over series. Misuse throws std::invalid_argument.
#pragma once

#include "eigenfeat/view.hpp"

namespace eigenfeat {

inline constexpr index_t kConvolutionKernels = 84;

// Pairs (dilation, kernel) are numbered dilation by dilation.
struct ConvolutionPlan {
  index_t n_channels = 1;
  VectorView<const index_t> dilations;      // (D,), each at least 1
  VectorView<const index_t> orders;         // (D,): 0 of the series, 1 of its differences
  VectorView<const index_t> n_thresholds;   // (D,), for each kernel
  VectorView<const index_t> channel_begin;  // (84 D + 1,): which of `channels` a pair has
  VectorView<const index_t> channels;
  MatrixView<const index_t> rivals;  // (contests, 84): kernels, of which each seven are a group
};

// Number of features of a series, dilation by dilation: its thresholds by kernel, or 2 x 84 of its
// contest by group, largest or smallest, and kernel.
index_t count_convolution_features(const ConvolutionPlan& plan, index_t n_thresholds);

// series (n, channels * length), channel by channel; thresholds: pair by pair; ends (n, m), ascending
// in each row and at most length; features (n, m * F), F as counted above.
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
