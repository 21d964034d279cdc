#include "kernels/wave_kernels.hpp"

#include "kernels/simd.hpp"

namespace eigenfeat {
namespace EIGENFEAT_TIER {

// The base of the wave, whose powers are the features. sqrt(1 + z) - 1 = z / (sqrt(1 + z) + 1),
// which avoids cancellation for small z.
template <bool kShifted, class T>
EIGENFEAT_INLINE T base(T z) {
  return kShifted ? z / (square_root(T(1) + z) + T(1)) : square_root(z);
}

// One of the half waves of p and -p is zero, so that one root, of |p|, suffices. NaN makes both NaN.
template <class T>
EIGENFEAT_INLINE T magnitude(T p) {
  return p < T(0) ? -p : p;
}
template <class V>
EIGENFEAT_INLINE void store_halves(const V& p, const V& wave, V* up, V* down) {
  const V zero = {};
  *up = p < zero ? zero : wave;
  *down = p > zero ? zero : wave;
}

// Powers 1, 2, 3 of both signs in one pass over p. Compilers do not vectorise a loop with six
// results, which might overlap.
template <bool kShifted, class T>
EIGENFEAT_INLINE void all_powers(const T* __restrict p, index_t n, T* __restrict out) {
  index_t f = 0;
  for (; f + kWidth<T> <= n; f += kWidth<T>) {
    const Vec<T> from = load(p + f);
    alignas(64) T x[kWidth<T>];
    const Vec<T> z = from < T(0) ? -from : from;
    store<T>(z, x);
    for (index_t l = 0; l < kWidth<T>; ++l) x[l] = base<kShifted>(x[l]);
    const Vec<T> a = load(x);
    const Vec<T> power[3] = {a, kShifted ? a * a : z, kShifted ? a * a * a : a * z};
    for (index_t k = 0; k < 3; ++k) {
      Vec<T> up, down;
      store_halves(from, power[k], &up, &down);
      store<T>(up, out + k * n + f);
      store<T>(down, out + (3 + k) * n + f);
    }
  }
  for (; f < n; ++f) {
    const T z = magnitude(p[f]), a = base<kShifted>(z);
    const T power[3] = {a, kShifted ? a * a : z, kShifted ? a * a * a : a * z};
    for (index_t k = 0; k < 3; ++k)
      store_halves(p[f], power[k], out + k * n + f, out + (3 + k) * n + f);
  }
}

template <bool kShifted, class T>
EIGENFEAT_INLINE void one_power(int power, const T* __restrict p, index_t n, T* __restrict up,
                                T* __restrict down) {
  for (index_t f = 0; f < n; ++f) {
    const T z = magnitude(p[f]);
    T wave = z;
    if (kShifted || power != 2) {
      const T a = base<kShifted>(z);
      wave = power == 1 ? a : power == 2 ? a * a : kShifted ? a * a * a : a * z;
    }
    up[f] = p[f] < T(0) ? T(0) : wave;
    down[f] = p[f] > T(0) ? T(0) : wave;
  }
}

template <bool kShifted, class T>
EIGENFEAT_INLINE void waves(const int* powers, index_t n_powers, const T* p, index_t n, T* out) {
  if (n_powers == 3 && powers[0] == 1 && powers[1] == 2 && powers[2] == 3) {
    all_powers<kShifted>(p, n, out);
    return;
  }
  for (index_t k = 0; k < n_powers; ++k)
    one_power<kShifted>(powers[k], p, n, out + k * n, out + (n_powers + k) * n);
}

template <class T>
EIGENFEAT_INLINE void monomials(const int* powers, index_t n_powers, const T* __restrict p,
                                index_t n, T* __restrict out) {
  for (index_t k = 0; k < n_powers; ++k) {
    T* __restrict column = out + k * n;
    if (powers[k] == 1) {
      for (index_t f = 0; f < n; ++f) column[f] = p[f];
    } else if (powers[k] == 2) {
      for (index_t f = 0; f < n; ++f) column[f] = p[f] * p[f];
    } else {
      for (index_t f = 0; f < n; ++f) column[f] = p[f] * p[f] * p[f];
    }
  }
}

template <class T>
void expand_row(Wave wave, const int* powers, index_t n_powers, const T* p, index_t n, T* out) {
  if (wave == Wave::polynomial) {
    monomials(powers, n_powers, p, n, out);
  } else if (wave == Wave::shifted) {
    waves<true>(powers, n_powers, p, n, out);
  } else {
    waves<false>(powers, n_powers, p, n, out);
  }
}

}  // namespace EIGENFEAT_TIER

EIGENFEAT_DEFINE_FAMILY(WaveKernels<float>) = [] {
  WaveKernels<float> table{};
  table.expand_row = EIGENFEAT_TIER::expand_row<float>;
  return table;
}();
EIGENFEAT_DEFINE_FAMILY(WaveKernels<double>) = [] {
  WaveKernels<double> table{};
  table.expand_row = EIGENFEAT_TIER::expand_row<double>;
  return table;
}();

}  // namespace eigenfeat
