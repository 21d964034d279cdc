#include "kernels/wave_kernels.hpp"

#include "kernels/simd.hpp"

namespace eigenfeat {
namespace EIGENFEAT_TIER {

// max(0, p), but a NaN stays one.
template <class T>
EIGENFEAT_INLINE T positive_part(T p) {
  return p < T(0) ? T(0) : p;
}

// The wave's base: powers 1, 2, 3 are its first three powers. sqrt(1 + z) - 1 = z / (sqrt(1 + z) +
// 1), without the cancellation for small z.
template <bool kShifted, class T>
EIGENFEAT_INLINE T base(T z) {
  return kShifted ? z / (square_root(T(1) + z) + T(1)) : square_root(z);
}

// A vector's powers 1, 2, 3 of one sign. A compiler does not find vectors in a loop with six results,
// which could overlap as far as it knows.
template <bool kShifted, class T>
EIGENFEAT_INLINE void three_powers(const Vec<T>& z, T* first, T* second, T* third) {
  alignas(64) T x[kWidth<T>];
  store<T>(z, x);
  for (index_t l = 0; l < kWidth<T>; ++l) x[l] = base<kShifted>(x[l]);
  const Vec<T> a = load(x);
  store<T>(a, first);
  store<T>(kShifted ? a * a : z, second);
  store<T>(kShifted ? a * a * a : a * z, third);
}

// Powers 1, 2, 3 of both signs in one pass over p.
template <bool kShifted, class T>
EIGENFEAT_INLINE void all_powers(const T* __restrict p, index_t n, T* __restrict out) {
  T* __restrict p1 = out, * __restrict p2 = out + n, * __restrict p3 = out + 2 * n;
  T* __restrict n1 = out + 3 * n, * __restrict n2 = out + 4 * n, * __restrict n3 = out + 5 * n;
  const Vec<T> zero = {};
  index_t f = 0;
  for (; f + kWidth<T> <= n; f += kWidth<T>) {
    const Vec<T> up = load(p + f), down = -up;  // of a NaN both are one
    three_powers<kShifted, T>(up < T(0) ? zero : up, p1 + f, p2 + f, p3 + f);
    three_powers<kShifted, T>(down < T(0) ? zero : down, n1 + f, n2 + f, n3 + f);
  }
  for (; f < n; ++f) {
    const T up = positive_part(p[f]), down = positive_part(-p[f]);
    const T a = base<kShifted>(up), b = base<kShifted>(down);
    p1[f] = a;
    p2[f] = kShifted ? a * a : up;
    p3[f] = kShifted ? a * a * a : a * up;
    n1[f] = b;
    n2[f] = kShifted ? b * b : down;
    n3[f] = kShifted ? b * b * b : b * down;
  }
}

template <bool kShifted, class T>
EIGENFEAT_INLINE void one_power(int power, T sign, const T* __restrict p, index_t n,
                                T* __restrict out) {
  if (power == 2 && !kShifted) {
    for (index_t f = 0; f < n; ++f) out[f] = positive_part(sign * p[f]);
    return;
  }
  for (index_t f = 0; f < n; ++f) {
    const T z = positive_part(sign * p[f]);
    const T a = base<kShifted>(z);
    out[f] = power == 1 ? a : power == 2 ? a * a : kShifted ? a * a * a : a * z;
  }
}

template <bool kShifted, class T>
EIGENFEAT_INLINE void waves(const int* powers, index_t n_powers, const T* p, index_t n, T* out) {
  if (n_powers == 3 && powers[0] == 1 && powers[1] == 2 && powers[2] == 3) {
    all_powers<kShifted>(p, n, out);
    return;
  }
  for (index_t s = 0; s < 2; ++s) {
    for (index_t k = 0; k < n_powers; ++k) {
      one_power<kShifted>(powers[k], s == 0 ? T(1) : T(-1), p, n, out + (s * n_powers + k) * n);
    }
  }
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
