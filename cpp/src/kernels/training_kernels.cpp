#include "kernels/training_kernels.hpp"

#include "kernels/simd.hpp"

namespace eigenfeat {
namespace EIGENFEAT_TIER {

// d u^a / dp = a u^(a-1) / (2 sqrt(1 + p)) for u = sqrt(1 + p) - 1 and p > 0.
template <int kPower, class T>
EIGENFEAT_INLINE void add_slopes(const T* __restrict p, const T* __restrict up,
                                 const T* __restrict down, index_t n, T* __restrict slopes) {
  for (index_t f = 0; f < n; ++f) {
    const T z = magnitude(p[f]), root = square_root(T(1) + z);
    const T u = z / (root + T(1));
    const T power = kPower == 1 ? T(1) : kPower == 2 ? T(2) * u : T(3) * u * u;
    const T outer = p[f] > T(0) ? up[f] : p[f] < T(0) ? -down[f] : T(0);
    slopes[f] += outer * power / (T(2) * root);
  }
}

template <class T>
void wave_slopes(const int* powers, index_t n_powers, const T* p, const T* gradients, index_t n,
                 T* slopes) {
  for (index_t f = 0; f < n; ++f) slopes[f] = T(0);
  for (index_t k = 0; k < n_powers; ++k) {
    const T *up = gradients + k * n, *down = gradients + (n_powers + k) * n;
    with_count<3>(powers[k], [&](auto power) { add_slopes<power.value>(p, up, down, n, slopes); });
  }
}

// Means below `tiny` become 0, because subnormal numbers are slow, and means of entries without
// gradients decay to them. Steps for gradients below `least` are shorter.
template <class T>
void adam(const AdamStep<T>& step, const T* __restrict gradient, index_t n, T* __restrict means,
          T* __restrict squares, T* __restrict values) {
  constexpr T kMean = T(0.1), kSquare = T(0.001), tiny = T(1e-30), least = T(1e-12);
  const T rate = step.rate, factor = step.square_factor;
  for (index_t i = 0; i < n; ++i) {
    const T g = gradient[i];
    const T mean = means[i] + kMean * (g - means[i]);
    const T square = squares[i] + kSquare * (g * g - squares[i]);
    means[i] = magnitude(mean) < tiny ? T(0) : mean;
    squares[i] = square < tiny ? T(0) : square;
    values[i] -= rate * means[i] / (square_root(factor * squares[i]) + least);
  }
}

}  // namespace EIGENFEAT_TIER

EIGENFEAT_DEFINE_FAMILY(TrainingKernels<float>) = [] {
  TrainingKernels<float> table{};
  table.wave_slopes = EIGENFEAT_TIER::wave_slopes<float>;
  table.adam = EIGENFEAT_TIER::adam<float>;
  return table;
}();
EIGENFEAT_DEFINE_FAMILY(TrainingKernels<double>) = [] {
  TrainingKernels<double> table{};
  table.wave_slopes = EIGENFEAT_TIER::wave_slopes<double>;
  table.adam = EIGENFEAT_TIER::adam<double>;
  return table;
}();

}  // namespace eigenfeat
