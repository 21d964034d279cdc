// Private to the files of this folder: exponentials of the numbers of a vector.
#pragma once

#include "kernels/simd.hpp"

namespace eigenfeat::EIGENFEAT_TIER {

// Constants of each type: log 2 in two parts; coefficients, highest power first, of the polynomial
// (exp(r) - 1 - r) / r^2 for |r| < 0.3466; and the layout of floating-point numbers.
template <class T>
struct Exponential;
template <>
struct Exponential<double> {  // interpolates with an error of 1.6e-17
  static constexpr double shift = 0x1.8p52, least = -708.0;
  static constexpr double high = 6.93147180369123816490e-01, low = 1.90821492927058770002e-10;
  static constexpr double coefficients[] = {2.510038319586702e-08,  2.7620085455018414e-07,
                                            2.7557268464831627e-06, 2.4801521302241082e-05,
                                            1.9841269863050506e-04, 1.388888891720967e-03,
                                            8.333333333330063e-03,  4.1666666666624136e-02,
                                            0.16666666666666669,    0.5000000000000001};
  static constexpr int bias = 1023, fraction_bits = 52;
};
template <>
struct Exponential<float> {  // Cephes' expf
  static constexpr float shift = 0x1.8p23F, least = -87.0F;
  static constexpr float high = 0.693359375F, low = -2.12194440e-4F;
  static constexpr float coefficients[] = {1.9875691500e-4F, 1.3981999507e-3F, 8.3334519073e-3F,
                                           4.1665795894e-2F, 1.6666665459e-1F, 5.0000001201e-1F};
  static constexpr int bias = 127, fraction_bits = 23;
};

// x <- exp(min(x, 0)) = 2^k exp(r), r = x - k log 2, with an error below 2 ulp; 0 below exp(least).
// NaN stays NaN.
template <class T>
EIGENFEAT_INLINE void exponential(Vec<T>& x) {
  using V = Vec<T>;
  using Constants = Exponential<T>;
  x = x > T(0) ? x - x : x;
  // x + shift has the nearest integer to x in its lowest bits
  const V shifted = x * T(1.4426950408889634) + Constants::shift;
  const V k = shifted - Constants::shift;
  const V r = (x - k * Constants::high) - k * Constants::low;
  V p = r * Constants::coefficients[0] + Constants::coefficients[1];
  constexpr index_t count = sizeof Constants::coefficients / sizeof(T);
  for (index_t i = 2; i < count; ++i) p = p * r + Constants::coefficients[i];
  p = p * (r * r) + r + T(1);
  // The lowest bits of shifted, with the exponent's bias, become the exponent of 2^k.
  typename Register<T>::integers bits;
  __builtin_memcpy(&bits, &shifted, sizeof bits);
  bits = (bits + Constants::bias) << Constants::fraction_bits;
  V power;
  __builtin_memcpy(&power, &bits, sizeof power);
  p = p * power;
  x = x < Constants::least ? V{} : p;
}

}  // namespace eigenfeat::EIGENFEAT_TIER
