#include "logit/softmax.hpp"

#include <algorithm>

#include "base/whole_lines.hpp"
#include "eigenfeat/scratch.hpp"
#include "kernels/softmax_kernels.hpp"

namespace eigenfeat {
namespace {

constexpr index_t kRows = 64;       // samples at a time, a multiple of a line of doubles
constexpr index_t kNumbers = 2048;  // exponentials at a time, unless one sample has more

// The largest logit of a sample, computed before exponentials.
template <class T>
struct Top {
  T value;     // largest logit
  index_t at;  // class of the largest logit
  double gap;  // largest logit minus the logit of the label
};

template <class T>
void largest(const T* z, index_t k, index_t label, Top<T>& top) {
  top.at = 0;
  top.value = z[0];
  for (index_t c = 1; c < k; ++c) {
    const bool larger = z[c] > top.value;
    top.at = larger ? c : top.at;
    top.value = larger ? z[c] : top.value;
  }
  top.gap = static_cast<double>(top.value) - static_cast<double>(z[label]);
}

// Sum over c of f(c), in four partial sums, which hide the latency of an addition.
template <class F>
double sum_of(index_t k, F&& f) {
  double sums[4] = {};
  index_t c = 0;
  for (; c + 4 <= k; c += 4) {
    for (index_t l = 0; l < 4; ++l) sums[l] += f(c + l);
  }
  for (index_t l = 0; c + l < k; ++l) sums[l] += f(c + l);
  return (sums[0] + sums[1]) + (sums[2] + sums[3]);
}

}  // namespace

template <class T>
LogitTerms softmax_residuals(MatrixView<T> z, const std::int32_t* labels, const double* weights,
                             double energy_weight) {
  const SoftmaxKernels<T>& kernel = kernels<SoftmaxKernels<T>>();
  const index_t k = std::max<index_t>(z.cols, 1);  // tells clang's analyzer that k is positive
  const index_t at_once = std::clamp<index_t>(kNumbers / k, 1, kRows);
  alignas(64) T few[kNumbers];
  alignas(64) double logs[kRows];
  Top<T> tops[kRows];
  AlignedBuffer<T> many;
  if (k > kNumbers) many.reserve(whole_lines<T>(k));
  T* const parts = k > kNumbers ? many.data() : few;  // exponentials of the samples, k each
  LogitTerms terms;
  for (index_t first = 0; first < z.rows; first += at_once) {
    const index_t rows = std::min(at_once, z.rows - first);
    for (index_t r = 0; r < rows; ++r) {
      const T* row = z.row(first + r);
      largest(row, k, labels[first + r], tops[r]);
      for (index_t c = 0; c < k; ++c) parts[r * k + c] = row[c] - tops[r].value;
    }
    const index_t count = rows * k, padded = whole_lines<T>(count);
    std::fill(parts + count, parts + padded, T(0));
    kernel.exponentials(parts, padded);
    std::fill(logs, logs + kRows, 0.0);
    for (index_t r = 0; r < rows; ++r) {
      T* part = parts + r * k;
      part[tops[r].at] -= T(1);  // leaves out the largest logit, whose exponential is 1
      logs[r] = sum_of(k, [part](index_t c) { return static_cast<double>(part[c]); });
      part[tops[r].at] += T(1);
    }
    for (index_t r = 0; r < rows; ++r) {
      T* row = z.row(first + r);
      const T* part = parts + r * k;
      const Top<T>& top = tops[r];
      const double weight = weights == nullptr ? 1.0 : weights[first + r];
      const T others = static_cast<T>(logs[r]), w = static_cast<T>(weight);
      const T sum = T(1) + others, share = w / sum;
      const T energy = static_cast<T>(weight * energy_weight);
      const index_t label = labels[first + r];
      terms.energy += weight * sum_of(k, [row](index_t c) {
                        return static_cast<double>(row[c]) * static_cast<double>(row[c]);
                      });
      for (index_t c = 0; c < k; ++c) row[c] = share * part[c] + energy * row[c];
      // 1 - p for the probability p of the label, without cancellation if p is near 1.
      if (label == top.at) {
        row[label] = energy * top.value - w * (others / sum);
      } else {
        row[label] -= w;
      }
    }
    kernel.logarithms(logs, whole_lines<double>(rows));
    for (index_t r = 0; r < rows; ++r) {
      const double weight = weights == nullptr ? 1.0 : weights[first + r];
      terms.loss += weight * (logs[r] + tops[r].gap);
    }
  }
  return terms;
}

template LogitTerms softmax_residuals<float>(MatrixView<float>, const std::int32_t*, const double*,
                                             double);
template LogitTerms softmax_residuals<double>(MatrixView<double>, const std::int32_t*,
                                              const double*, double);

}  // namespace eigenfeat
