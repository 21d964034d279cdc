#include "kernels/row_kernels.hpp"

#include "kernels/simd.hpp"

namespace eigenfeat {
namespace EIGENFEAT_TIER {

// Rows are in class order, so that hardware prefetchers cannot predict their addresses. The kernels
// prefetch the next row, a cache line at a time, while they process a row.
constexpr index_t kLineBytes = 64;

template <class T>
void accumulate(const T* __restrict x, const T* next, index_t d, double weight,
                double* __restrict sum, T* __restrict peak) {
  constexpr index_t line = kLineBytes / static_cast<index_t>(sizeof(T));
  for (index_t begin = 0; begin < d; begin += line) {
    EIGENFEAT_PREFETCH(next + begin);
    const index_t end = begin + line < d ? begin + line : d;
    for (index_t j = begin; j < end; ++j) {
      const T value = x[j];
      const T magnitude = value < T(0) ? -value : value;
      sum[j] += weight * static_cast<double>(value);
      peak[j] = magnitude > peak[j] ? magnitude : peak[j];
    }
  }
}

template <class T, class Out>
void centre(const T* __restrict x, const T* next, index_t d, const double* __restrict shift,
            const double* __restrict scale, double root, double weight, Out* __restrict out,
            double* __restrict residual) {
  constexpr index_t line = kLineBytes / static_cast<index_t>(sizeof(T));
  for (index_t begin = 0; begin < d; begin += line) {
    EIGENFEAT_PREFETCH(next + begin);
    const index_t end = begin + line < d ? begin + line : d;
    for (index_t j = begin; j < end; ++j) {
      const double t = static_cast<double>(x[j]) - shift[j];
      residual[j] += weight * t;
      out[j] = static_cast<Out>(t * root * scale[j]);
    }
  }
}

template <class T>
void add_scaled(const T* __restrict source, index_t n, const double* __restrict scale,
                double factor, double* __restrict destination) {
  for (index_t j = 0; j < n; ++j)
    destination[j] += static_cast<double>(source[j]) * scale[j] * factor;
}

}  // namespace EIGENFEAT_TIER

EIGENFEAT_DEFINE_FAMILY(RowKernels<float>) = [] {
  RowKernels<float> table{};
  table.accumulate = EIGENFEAT_TIER::accumulate<float>;
  table.centre = EIGENFEAT_TIER::centre<float, float>;
  table.centre_to_float = EIGENFEAT_TIER::centre<float, float>;
  table.add_scaled = EIGENFEAT_TIER::add_scaled<float>;
  return table;
}();
EIGENFEAT_DEFINE_FAMILY(RowKernels<double>) = [] {
  RowKernels<double> table{};
  table.accumulate = EIGENFEAT_TIER::accumulate<double>;
  table.centre = EIGENFEAT_TIER::centre<double, double>;
  table.centre_to_float = EIGENFEAT_TIER::centre<double, float>;
  table.add_scaled = EIGENFEAT_TIER::add_scaled<double>;
  return table;
}();

}  // namespace eigenfeat
