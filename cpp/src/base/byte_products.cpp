#include "base/byte_products.hpp"

#include "eigenfeat/tier.hpp"

#if defined(__x86_64__) && defined(__linux__) && defined(__GNUC__) && __GNUC__ >= 12
#define EIGENFEAT_FOUR_PRODUCTS 1
#include <immintrin.h>
// GCC 12 warns of undefined registers in its own headers (GCC bug 105593).
#pragma GCC diagnostic ignored "-Wuninitialized"
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
#endif

namespace eigenfeat {

#ifdef EIGENFEAT_FOUR_PRODUCTS

bool has_four_products() {
  return tier_in_use() == Tier::v4 && __builtin_cpu_supports("avx512vnni") != 0;
}

__attribute__((target("avx512f,avx512bw,avx512vl,avx512vnni"))) void multiply_four(
    const std::uint32_t* left, const std::uint32_t* right, index_t entries, std::int32_t* sums) {
  constexpr index_t wide = 4, narrow = 4;
  const __m512i sign = _mm512_set1_epi8(static_cast<char>(-128));
  for (index_t i = 0; i < kStrip; i += narrow) {
    __m512i sum[narrow][wide];
    for (index_t k = 0; k < narrow; ++k) {
      for (index_t v = 0; v < wide; ++v)
        sum[k][v] = _mm512_loadu_si512(sums + (i + k) * kStrip + v * 16);
    }
    for (index_t e = 0; e < entries; ++e) {
      __m512i bytes[wide];
#pragma GCC unroll 4
      for (index_t v = 0; v < wide; ++v)
        bytes[v] = _mm512_xor_si512(_mm512_loadu_si512(right + e * kStrip + v * 16), sign);
#pragma GCC unroll 4
      for (index_t k = 0; k < narrow; ++k) {
        const __m512i same = _mm512_set1_epi32(static_cast<int>(left[e * kStrip + i + k]));
#pragma GCC unroll 4
        for (index_t v = 0; v < wide; ++v)
          sum[k][v] = _mm512_dpbusd_epi32(sum[k][v], same, bytes[v]);
      }
    }
    for (index_t k = 0; k < narrow; ++k) {
      for (index_t v = 0; v < wide; ++v)
        _mm512_storeu_si512(sums + (i + k) * kStrip + v * 16, sum[k][v]);
    }
  }
}

#else

bool has_four_products() {
  return false;
}
void multiply_four(const std::uint32_t*, const std::uint32_t*, index_t, std::int32_t*) {}

#endif

}  // namespace eigenfeat
