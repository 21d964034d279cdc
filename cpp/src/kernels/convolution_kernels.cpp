#include "kernels/convolution_kernels.hpp"

#include "kernels/simd.hpp"

namespace eigenfeat {
namespace EIGENFEAT_TIER {
namespace {

template <class T>
using Integers = typename Register<T>::integers;

// There are sums alone, in one order: all tiers give the same numbers.
template <class T>
void negated_sums(const T* x, index_t length, index_t dilation, T* out) {
  const T* first = x - (kTaps - 1) * dilation;
  for (index_t t = 0; t < length; t += kWidth<T>) {
    Vec<T> sum = load(first + t);
    for (index_t j = 1; j < kTaps; ++j) sum += load(first + j * dilation + t);
    store<T>(-sum, out + t);
  }
}

template <class T>
void outputs(const T* const* sums, const T* const* tripled, const index_t* channels,
             index_t n_channels, const index_t* lags, index_t first, index_t last, T* out) {
  for (index_t t = first; t < last; t += kWidth<T>) {
    Vec<T> total{};
    for (index_t c = 0; c < n_channels; ++c) {
      const T* triple = tripled[channels[c]] + t;
      Vec<T> one = load(sums[channels[c]] + t) + load(triple - lags[0]);
      one += load(triple - lags[1]);
      one += load(triple - lags[2]);
      total = c == 0 ? one : total + one;
    }
    store<T>(total, out + t);
  }
}

template <class T, index_t kCount>
EIGENFEAT_INLINE void count_above(const T* values, index_t first, index_t last, const T* thresholds,
                                  index_t* counts) {
  Vec<T> limits[kCount];
  Integers<T> above[kCount];
  for (index_t k = 0; k < kCount; ++k) {
    limits[k] = Vec<T>{} + thresholds[k];
    above[k] = Integers<T>{};
  }
  index_t t = first;
  for (; t + kWidth<T> <= last; t += kWidth<T>) {
    const Vec<T> x = load(values + t);
    for (index_t k = 0; k < kCount; ++k) above[k] += x > limits[k];  // true is -1
  }
  if (t < last) {
    Integers<T> inside{};
    for (index_t l = 0; l < kWidth<T>; ++l) inside[l] = t + l < last ? -1 : 0;
    const Vec<T> x = load(values + t);
    for (index_t k = 0; k < kCount; ++k) above[k] += (x > limits[k]) & inside;
  }
  for (index_t k = 0; k < kCount; ++k) {
    index_t total = 0;
    for (index_t l = 0; l < kWidth<T>; ++l) total -= static_cast<index_t>(above[k][l]);
    counts[k] += total;
  }
}

template <class T>
void count(const T* values, index_t first, index_t last, const T* thresholds, index_t n,
           index_t* counts) {
  switch (n) {
    case 4:
      return count_above<T, 4>(values, first, last, thresholds, counts);
    case 3:
      return count_above<T, 3>(values, first, last, thresholds, counts);
    case 2:
      return count_above<T, 2>(values, first, last, thresholds, counts);
    default:
      return count_above<T, 1>(values, first, last, thresholds, counts);
  }
}

}  // namespace
}  // namespace EIGENFEAT_TIER

EIGENFEAT_DEFINE_FAMILY(ConvolutionKernels<float>) = {EIGENFEAT_TIER::negated_sums<float>,
                                                      EIGENFEAT_TIER::outputs<float>,
                                                      EIGENFEAT_TIER::count<float>};
EIGENFEAT_DEFINE_FAMILY(ConvolutionKernels<double>) = {EIGENFEAT_TIER::negated_sums<double>,
                                                       EIGENFEAT_TIER::outputs<double>,
                                                       EIGENFEAT_TIER::count<double>};

}  // namespace eigenfeat
