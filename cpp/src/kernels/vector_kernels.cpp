#include "kernels/vector_kernels.hpp"

#include "kernels/simd.hpp"

namespace eigenfeat {
namespace EIGENFEAT_TIER {

template <class T>
void add_multiple(T factor, const T* __restrict x, index_t n, T* __restrict y) {
  for (index_t i = 0; i < n; ++i) y[i] += factor * x[i];
}

template <class T>
void add_weighted_squares(const T* __restrict x, index_t n, double weight, double* __restrict sum,
                          double* __restrict square) {
  for (index_t i = 0; i < n; ++i) {
    const double value = static_cast<double>(x[i]), weighted = weight * value;
    sum[i] += weighted;
    square[i] += weighted * value;
  }
}

template <class T>
void flush(T* __restrict part, index_t n, double* __restrict sum) {
  for (index_t i = 0; i < n; ++i) {
    sum[i] += static_cast<double>(part[i]);
    part[i] = T(0);
  }
}

constexpr index_t kSums = kLane<double>;
constexpr index_t kVectors = kPerLine;

double dot(const double* a, const double* b, index_t n) {
  Vec<double> sums[kVectors] = {};
  index_t i = 0;
  for (; i + kSums <= n; i += kSums) {
    for (index_t v = 0; v < kVectors; ++v)
      sums[v] += load(a + i + v * kWidth<double>) * load(b + i + v * kWidth<double>);
  }
  double parts[kSums];
  __builtin_memcpy(parts, sums, sizeof parts);
  for (index_t k = 0; i < n; ++i, ++k) parts[k] += a[i] * b[i];
  return sum_of_line(parts);
}

double largest_magnitude(const double* x, index_t n) {
  Vec<double> most[kVectors] = {};
  index_t i = 0;
  for (; i + kSums <= n; i += kSums) {
    for (index_t v = 0; v < kVectors; ++v) {
      const Vec<double> entries = load(x + i + v * kWidth<double>);
      const Vec<double> magnitudes = entries < 0.0 ? -entries : entries;
      most[v] = magnitudes > most[v] ? magnitudes : most[v];
    }
  }
  double parts[kSums], result = 0.0;
  __builtin_memcpy(parts, most, sizeof parts);
  for (index_t k = 0; k < kSums; ++k) result = parts[k] > result ? parts[k] : result;
  for (; i < n; ++i) {
    const double magnitude = __builtin_fabs(x[i]);
    result = magnitude > result ? magnitude : result;
  }
  return result;
}

void add_squares(const double* __restrict x, index_t n, double* __restrict y) {
  for (index_t i = 0; i < n; ++i) y[i] += x[i] * x[i];
}

}  // namespace EIGENFEAT_TIER

EIGENFEAT_DEFINE_FAMILY(VectorKernels<float>) = [] {
  VectorKernels<float> table{};
  table.add_multiple = EIGENFEAT_TIER::add_multiple<float>;
  table.add_weighted_squares = EIGENFEAT_TIER::add_weighted_squares<float>;
  table.flush = EIGENFEAT_TIER::flush<float>;
  return table;
}();
EIGENFEAT_DEFINE_FAMILY(VectorKernels<double>) = [] {
  VectorKernels<double> table{};
  table.add_multiple = EIGENFEAT_TIER::add_multiple<double>;
  table.add_weighted_squares = EIGENFEAT_TIER::add_weighted_squares<double>;
  table.flush = EIGENFEAT_TIER::flush<double>;
  return table;
}();
EIGENFEAT_DEFINE_FAMILY(SumKernels) = [] {
  SumKernels table{};
  table.dot = EIGENFEAT_TIER::dot;
  table.largest_magnitude = EIGENFEAT_TIER::largest_magnitude;
  table.add_squares = EIGENFEAT_TIER::add_squares;
  return table;
}();

}  // namespace eigenfeat
