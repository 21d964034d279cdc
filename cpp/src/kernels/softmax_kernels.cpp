#include "kernels/softmax_kernels.hpp"

#include "kernels/exponential.hpp"

namespace eigenfeat {
namespace EIGENFEAT_TIER {

template <class T>
void exponentials(T* x, index_t n) {
  for (index_t i = 0; i < n; i += kWidth<T>) {
    Vec<T> v = load(x + i);
    exponential<T>(v);
    store<T>(v, x + i);
  }
}

// u = 1 + x = 2^e (1 + f) with 1 + f between the square roots of 1/2 and 2; the rounding error of u
// over u is added at the end. log(1 + f) = f - f^2 / 2 + s (f^2 / 2 + R(s^2)), s = f / (2 + f),
// with the polynomial R of fdlibm.
EIGENFEAT_INLINE Vec<double> logarithm_of_sum(const Vec<double>& x) {
  using Bits = Register<double>::integers;
  constexpr std::int64_t mantissa = (std::int64_t{1} << 52) - 1, one = std::int64_t{1023} << 52;
  constexpr std::int64_t shift = std::int64_t{0x433} << 52;  // bits of 2^52
  const Vec<double> u = 1.0 + x;
  const Vec<double> lost = (x > 1.0 ? 1.0 - (u - x) : x - (u - 1.0)) / u;
  Bits bits;
  __builtin_memcpy(&bits, &u, sizeof bits);
  // A mantissa of at least 1.41421... is halved, and its exponent is increased by 1.
  constexpr std::int64_t from_root = 0x6a09e667f3bcd;
  const Bits upper = (bits & mantissa) >= from_root;  // -1 for such mantissas, else 0
  const Bits exponent_bits = ((bits >> 52) - upper) | shift;
  const Bits fraction_bits = ((bits & mantissa) | one) + (upper & -(std::int64_t{1} << 52));
  Vec<double> exponent, f;
  __builtin_memcpy(&exponent, &exponent_bits, sizeof exponent);
  __builtin_memcpy(&f, &fraction_bits, sizeof f);
  exponent -= 0x1p52 + 1023.0;
  f -= 1.0;
  const Vec<double> s = f / (2.0 + f), z = s * s, square = 0.5 * f * f;
  Vec<double> r = z * 1.479819860511658591e-01 + 1.531383769920937332e-01;
  r = r * z + 1.818357216161805012e-01;
  r = r * z + 2.222219843214978396e-01;
  r = r * z + 2.857142874366239149e-01;
  r = r * z + 3.999999999940941908e-01;
  r = r * z + 6.666666666666735130e-01;
  r *= z;
  const Vec<double> low = exponent * 1.90821492927058770002e-10 + lost;
  const Vec<double> out =
      exponent * 6.93147180369123816490e-01 - ((square - (s * (square + r) + low)) - f);
  return x == x ? out : x;
}

void logarithms(double* x, index_t n) {
  for (index_t i = 0; i < n; i += kWidth<double>)
    store<double>(logarithm_of_sum(load(x + i)), x + i);
}

}  // namespace EIGENFEAT_TIER

EIGENFEAT_DEFINE_FAMILY(SoftmaxKernels<float>) = [] {
  SoftmaxKernels<float> table{};
  table.exponentials = EIGENFEAT_TIER::exponentials<float>;
  table.logarithms = EIGENFEAT_TIER::logarithms;
  return table;
}();
EIGENFEAT_DEFINE_FAMILY(SoftmaxKernels<double>) = [] {
  SoftmaxKernels<double> table{};
  table.exponentials = EIGENFEAT_TIER::exponentials<double>;
  table.logarithms = EIGENFEAT_TIER::logarithms;
  return table;
}();

}  // namespace eigenfeat
