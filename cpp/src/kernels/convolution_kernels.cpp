#include "kernels/convolution_kernels.hpp"

#include <type_traits>

#include "kernels/simd.hpp"

namespace eigenfeat {
namespace EIGENFEAT_TIER {
namespace {

template <class T>
using Integers = typename Register<T>::integers;

template <class T>
using Integer = std::conditional_t<sizeof(T) == 4, std::int32_t, std::int64_t>;

template <class T>
struct LaneNumbers;
template <>
struct LaneNumbers<float> {
  std::int32_t numbers[16] = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15};
};
template <>
struct LaneNumbers<double> {
  std::int64_t numbers[8] = {0, 1, 2, 3, 4, 5, 6, 7};
};
template <class T>
constexpr LaneNumbers<T> kLaneNumbers{};

// Only sums, in a fixed order: results are identical for all tiers.
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

// Sums of the lanes of kCount vectors, by halves.
template <class T, index_t kCount>
EIGENFEAT_INLINE void subtract_lanes(const Integers<T>* lanes, index_t* counts) {
  Integer<T> parts[kCount][kWidth<T>];
  __builtin_memcpy(parts, lanes, sizeof parts);
  for (index_t half = kWidth<T> / 2; half > 0; half /= 2) {
    for (index_t k = 0; k < kCount; ++k) {
      for (index_t l = 0; l < half; ++l) parts[k][l] += parts[k][l + half];
    }
  }
  for (index_t k = 0; k < kCount; ++k) counts[k] -= parts[k][0];
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
    Integers<T> place;
    __builtin_memcpy(&place, kLaneNumbers<T>.numbers, sizeof place);
    const Integers<T> inside = place < static_cast<Integer<T>>(last - t);
    const Vec<T> x = load(values + t);
    for (index_t k = 0; k < kCount; ++k) above[k] += (x > limits[k]) & inside;
  }
  subtract_lanes<T, kCount>(above, counts);
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

// Each column of a line adds its own numbers in the order of time: sums are identical for all
// tiers, and for successive calls on parts of the series.
template <class T>
void compete(const T* values, index_t apart, index_t first, index_t from, index_t last, T* sums,
             index_t* counts) {
  constexpr index_t kLine = kWidth<T> * kPerLine;
  Integers<T> place;
  __builtin_memcpy(&place, kLaneNumbers<T>.numbers, sizeof place);
  for (index_t part = 0; part < kLine; part += kWidth<T>) {
    Vec<T> sum[kRivals];
    for (index_t k = 0; k < kRivals; ++k) sum[k] = load(sums + k * kLine + part);
    Integers<T> won[kRivals] = {};
    for (index_t t = from - (from - first) % kLine + part; t < last; t += kLine) {
      Vec<T> most = load(values + t), least = most;
      Integers<T> largest{}, smallest{};
      for (index_t k = 1; k < kRivals; ++k) {
        const Vec<T> x = load(values + k * apart + t);
        const Integers<T> rival = Integers<T>{} + static_cast<Integer<T>>(k);
        largest = x > most ? rival : largest;
        most = x > most ? x : most;
        smallest = x < least ? rival : smallest;
        least = x < least ? x : least;
      }
      const Integers<T> outside = (place < static_cast<Integer<T>>(from - t)) |
                                  (place >= static_cast<Integer<T>>(last - t));
      most = (outside == 0) & (most > 0) ? most : Vec<T>{};
      smallest |= outside;  // true is -1
      for (index_t k = 0; k < kRivals; ++k) {
        sum[k] += largest == static_cast<Integer<T>>(k) ? most : Vec<T>{};
        won[k] += smallest == static_cast<Integer<T>>(k);
      }
    }
    for (index_t k = 0; k < kRivals; ++k) store<T>(sum[k], sums + k * kLine + part);
    subtract_lanes<T, kRivals>(won, counts);
  }
}

template <class T>
constexpr ConvolutionKernels<T> kTable = {negated_sums<T>, outputs<T>, count<T>, compete<T>};

}  // namespace
}  // namespace EIGENFEAT_TIER

EIGENFEAT_DEFINE_FAMILY(ConvolutionKernels<float>) = EIGENFEAT_TIER::kTable<float>;
EIGENFEAT_DEFINE_FAMILY(ConvolutionKernels<double>) = EIGENFEAT_TIER::kTable<double>;

}  // namespace eigenfeat
