#include "kernels/byte_kernels.hpp"

#include "kernels/simd.hpp"

namespace eigenfeat {
namespace EIGENFEAT_TIER {

typedef std::int32_t Entries __attribute__((vector_size(EIGENFEAT_VECTOR_BYTES)));
constexpr index_t kEntries = EIGENFEAT_VECTOR_BYTES / 4;
// Columns of the left that are broadcast, and vectors of the right that they meet: their sums stay in
// registers.
constexpr index_t kLeft = 4;
constexpr index_t kRight = kRegisters == 32 ? 4 : 2;

EIGENFEAT_INLINE Entries load_entries(const void* from) {
  Entries v;
  __builtin_memcpy(&v, from, sizeof v);
  return v;
}

// Sums of the products of two words each.
EIGENFEAT_INLINE Entries pair_products(Entries a, Entries b) {
  typedef short Words __attribute__((vector_size(EIGENFEAT_VECTOR_BYTES)));
  [[maybe_unused]] const Words x = reinterpret_cast<Words>(a), y = reinterpret_cast<Words>(b);
#if defined(__AVX512BW__) && defined(__clang__)
  return reinterpret_cast<Entries>(__builtin_ia32_pmaddwd512(x, y));
#elif defined(__AVX512BW__)
  return reinterpret_cast<Entries>(
      __builtin_ia32_pmaddwd512_mask(x, y, Entries{}, static_cast<unsigned short>(-1)));
#elif defined(__AVX2__)
  return reinterpret_cast<Entries>(__builtin_ia32_pmaddwd256(x, y));
#elif defined(__SSE2__)
  return reinterpret_cast<Entries>(__builtin_ia32_pmaddwd128(x, y));
#else
  return (a & 0xffff) * (b & 0xffff) + (a >> 16) * (b >> 16);
#endif
}

void multiply_words(const std::uint32_t* left, const std::uint32_t* right, index_t entries,
                    std::int32_t* sums) {
  for (index_t j = 0; j < kStrip; j += kRight * kEntries) {
    for (index_t i = 0; i < kStrip; i += kLeft) {
      Entries sum[kLeft][kRight] = {};
      for (index_t e = 0; e < entries; ++e) {
        Entries wide[kRight];
        for (index_t v = 0; v < kRight; ++v)
          wide[v] = load_entries(right + e * kStrip + j + v * kEntries);
#pragma GCC unroll 4
        for (index_t k = 0; k < kLeft; ++k) {
          const Entries same = static_cast<std::int32_t>(left[e * kStrip + i + k]) + Entries{};
#pragma GCC unroll 4
          for (index_t v = 0; v < kRight; ++v) sum[k][v] += pair_products(same, wide[v]);
        }
      }
      for (index_t k = 0; k < kLeft; ++k) {
        for (index_t v = 0; v < kRight; ++v) {
          std::int32_t* at = sums + (i + k) * kStrip + j + v * kEntries;
          const Entries total = load_entries(at) + sum[k][v];
          __builtin_memcpy(at, &total, sizeof total);
        }
      }
    }
  }
}

void pack_pair(const std::uint8_t* const* rows, std::uint32_t* __restrict out) {
  const std::uint8_t *a = rows[0], *b = rows[1];
  for (index_t j = 0; j < kStrip; ++j)
    out[j] = static_cast<std::uint32_t>(a[j]) | static_cast<std::uint32_t>(b[j]) << 16;
}

void pack_four(const std::uint8_t* const* rows, std::uint32_t* __restrict out) {
  const std::uint8_t *a = rows[0], *b = rows[1], *c = rows[2], *d = rows[3];
  for (index_t j = 0; j < kStrip; ++j) {
    out[j] = static_cast<std::uint32_t>(a[j]) | static_cast<std::uint32_t>(b[j]) << 8 |
             static_cast<std::uint32_t>(c[j]) << 16 | static_cast<std::uint32_t>(d[j]) << 24;
  }
}

void add_bytes(const std::uint8_t* x, index_t n, std::uint32_t* __restrict sums) {
  for (index_t j = 0; j < n; ++j) sums[j] += x[j];
}

}  // namespace EIGENFEAT_TIER

EIGENFEAT_DEFINE_FAMILY(ByteKernels) = [] {
  ByteKernels table{};
  table.multiply_words = EIGENFEAT_TIER::multiply_words;
  table.pack_pair = EIGENFEAT_TIER::pack_pair;
  table.pack_four = EIGENFEAT_TIER::pack_four;
  table.add_bytes = EIGENFEAT_TIER::add_bytes;
  return table;
}();

}  // namespace eigenfeat
