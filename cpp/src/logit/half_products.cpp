// Panels in bfloat16: packing, and a kernel of 8 broadcast against 32 loaded features.
#include "logit/half_products.hpp"

#include <algorithm>

#include "eigenfeat/parallel.hpp"
#include "eigenfeat/tier.hpp"

#if defined(__x86_64__) && defined(__linux__) && defined(__GNUC__) && __GNUC__ >= 12
#define EIGENFEAT_HALF_PRODUCTS 1
#include <immintrin.h>
// GCC 12 takes its own headers' undefined registers for mistakes (its bug 105593).
#pragma GCC diagnostic ignored "-Wuninitialized"
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
#define EIGENFEAT_HALF_TARGET __attribute__((target("avx512f,avx512bw,avx512vl,avx512bf16")))
#endif

namespace eigenfeat {

HalfPanel::HalfPanel(index_t most_rows, index_t n_features)
    : most_pairs_((most_rows + 1) / 2),
      groups_((n_features + kTile - 1) / kTile * (kTile / kGroup)),
      packed_(
          AlignedBuffer<std::uint16_t>::zeros(std::max<index_t>(groups_ * most_pairs_, 1) * 32)) {}

#ifdef EIGENFEAT_HALF_PRODUCTS

namespace {

constexpr index_t kWide = 32;    // features in two registers
constexpr index_t kNarrow = 8;   // features broadcast to them
constexpr index_t kPairs = 256;  // of rows: two tiles of so many stay in the second-level cache

EIGENFEAT_HALF_TARGET void pack_group(MatrixView<const float> rows, index_t first, index_t width,
                                      std::uint16_t* out) {
  const __mmask16 mask = static_cast<__mmask16>((1U << width) - 1U);
  for (index_t r = 0; r < rows.rows; r += 2, out += 2 * HalfPanel::kGroup) {
    const __m512 even = _mm512_maskz_loadu_ps(mask, rows.row(r) + first);
    const __m512 odd = r + 1 < rows.rows ? _mm512_maskz_loadu_ps(mask, rows.row(r + 1) + first)
                                         : _mm512_setzero_ps();
    // The later row's number is the upper half of a pair.
    const __m512bh both = _mm512_cvtne2ps_pbh(odd, even);
    const __m512i halves = reinterpret_cast<__m512i>(both);
    const __m512i low = _mm512_cvtepu16_epi32(_mm512_castsi512_si256(halves));
    const __m512i high = _mm512_cvtepu16_epi32(_mm512_extracti64x4_epi64(halves, 1));
    _mm512_storeu_si512(out, _mm512_or_si512(low, _mm512_slli_epi32(high, 16)));
  }
}

// c (32, 8) column-major with columns kTile apart, += two groups of `wide` times 8 features.
EIGENFEAT_HALF_TARGET void micro_kernel(const std::uint16_t* wide, index_t apart,
                                        const std::uint16_t* narrow, index_t pairs, float* c) {
  __m512 sums[kNarrow][2];
  for (index_t j = 0; j < kNarrow; ++j) {
    sums[j][0] = _mm512_loadu_ps(c + j * HalfPanel::kTile);
    sums[j][1] = _mm512_loadu_ps(c + j * HalfPanel::kTile + 16);
  }
  for (index_t r = 0; r < pairs; ++r) {
    const auto first = reinterpret_cast<__m512bh>(_mm512_loadu_si512(wide + 32 * r));
    const auto second = reinterpret_cast<__m512bh>(_mm512_loadu_si512(wide + apart + 32 * r));
#pragma GCC unroll 8
    for (index_t j = 0; j < kNarrow; ++j) {
      int pair;
      __builtin_memcpy(&pair, narrow + 32 * r + 2 * j, sizeof pair);
      const auto same = reinterpret_cast<__m512bh>(_mm512_set1_epi32(pair));
      sums[j][0] = _mm512_dpbf16_ps(sums[j][0], first, same);
      sums[j][1] = _mm512_dpbf16_ps(sums[j][1], second, same);
    }
  }
  for (index_t j = 0; j < kNarrow; ++j) {
    _mm512_storeu_ps(c + j * HalfPanel::kTile, sums[j][0]);
    _mm512_storeu_ps(c + j * HalfPanel::kTile + 16, sums[j][1]);
  }
}

}  // namespace

bool has_half_products() {
  return tier_in_use() == Tier::v4 && __builtin_cpu_supports("avx512bf16") != 0 &&
         __builtin_cpu_supports("avx512bw") != 0 && __builtin_cpu_supports("avx512vl") != 0;
}

void HalfPanel::pack(MatrixView<const float> rows, int n_threads) {
  pairs_ = (rows.rows + 1) / 2;
  const index_t used = (rows.cols + kGroup - 1) / kGroup;
  for_blocks(used, n_threads, [&](index_t g, int) {
    const index_t width = std::min(kGroup, rows.cols - g * kGroup);
    pack_group(rows, g * kGroup, width, packed_.data() + g * most_pairs_ * 32);
  });
}

void HalfPanel::multiply(TileIndex at, float* product) const {
  std::fill(product, product + kTile * kTile, 0.0F);
  const index_t apart = most_pairs_ * 32, per_tile = kTile / kGroup;
  for (index_t begin = 0; begin < pairs_; begin += kPairs) {
    const index_t pairs = std::min(kPairs, pairs_ - begin);
    for (index_t j = 0; j < kTile; j += kNarrow) {
      const std::uint16_t* narrow =
          group(at.j * per_tile + j / kGroup) + begin * 32 + 2 * (j % kGroup);
      const index_t from = at.i == at.j ? j / kWide * kWide : 0;
      for (index_t i = from; i < kTile; i += kWide) {
        const std::uint16_t* wide = group(at.i * per_tile + i / kGroup) + begin * 32;
        micro_kernel(wide, apart, narrow, pairs, product + j * kTile + i);
      }
    }
  }
}

#else

bool has_half_products() {
  return false;
}
void HalfPanel::pack(MatrixView<const float>, int) {}
void HalfPanel::multiply(TileIndex, float*) const {}

#endif

}  // namespace eigenfeat
