// Private to the files of this folder: exponentials of a vector's numbers.
#pragma once

#include "kernels/simd.hpp"

namespace eigenfeat::EIGENFEAT_TIER {

// x <- exp(min(x, 0)), 0 below exp(-708); NaN stays. 2^k times a polynomial of degree 11 in r = x - k log 2,
// |r| < 0.3466, which interpolates there with an error of 1.6e-17. Off by less than 2 ulp.
EIGENFEAT_INLINE void exponential(Vec<double>& x) {
  constexpr double shift = 0x1.8p52;  // x + shift has the nearest integer to x in its lowest bits
  x = x > 0.0 ? x - x : x;
  const Vec<double> shifted = x * 1.4426950408889634 + shift;
  const Vec<double> k = shifted - shift;
  const Vec<double> r = (x - k * 6.93147180369123816490e-01) - k * 1.90821492927058770002e-10;
  Vec<double> p = r * 2.510038319586702e-08 + 2.7620085455018414e-07;
  p = p * r + 2.7557268464831627e-06;
  p = p * r + 2.4801521302241082e-05;
  p = p * r + 1.9841269863050506e-04;
  p = p * r + 1.388888891720967e-03;
  p = p * r + 8.333333333330063e-03;
  p = p * r + 4.1666666666624136e-02;
  p = p * r + 0.16666666666666669;
  p = p * r + 0.5000000000000001;
  p = p * (r * r) + r + 1.0;
  // The lowest bits of shifted, with the exponent's bias, become the exponent of 2^k.
  Register<double>::integers bits;
  __builtin_memcpy(&bits, &shifted, sizeof bits);
  bits = (bits + 1023) << 52;
  Vec<double> power;
  __builtin_memcpy(&power, &bits, sizeof power);
  p = p * power;
  x = x < -708.0 ? Vec<double>{} : p;
}

// The same in float: 0 below exp(-87), a polynomial of degree 7 (Cephes' expf).
EIGENFEAT_INLINE void exponential(Vec<float>& x) {
  constexpr float shift = 0x1.8p23F;
  x = x > 0.0F ? x - x : x;
  const Vec<float> shifted = x * 1.44269504F + shift;
  const Vec<float> k = shifted - shift;
  const Vec<float> r = (x - k * 0.693359375F) + k * 2.12194440e-4F;
  Vec<float> p = r * 1.9875691500e-4F + 1.3981999507e-3F;
  p = p * r + 8.3334519073e-3F;
  p = p * r + 4.1665795894e-2F;
  p = p * r + 1.6666665459e-1F;
  p = p * r + 5.0000001201e-1F;
  p = p * (r * r) + r + 1.0F;
  Register<float>::integers bits;
  __builtin_memcpy(&bits, &shifted, sizeof bits);
  bits = (bits + 127) << 23;
  Vec<float> power;
  __builtin_memcpy(&power, &bits, sizeof power);
  p = p * power;
  x = x < -87.0F ? Vec<float>{} : p;
}

}  // namespace eigenfeat::EIGENFEAT_TIER
