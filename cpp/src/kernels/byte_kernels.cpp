#include "kernels/byte_kernels.hpp"

#include "kernels/simd.hpp"

namespace eigenfeat {
namespace EIGENFEAT_TIER {

typedef std::int32_t Entries __attribute__((vector_size(EIGENFEAT_VECTOR_BYTES)));
constexpr index_t kEntries = EIGENFEAT_VECTOR_BYTES / 4;
// Numbers of left columns that are broadcast, and of right vectors that they multiply; the sums of
// the products stay in registers.
constexpr index_t kLeft = 4;
constexpr index_t kRight = kRegisters == 32 ? 4 : 2;

EIGENFEAT_INLINE Entries load_entries(const void* from) {
  Entries v;
  __builtin_memcpy(&v, from, sizeof v);
  return v;
}

// Sums of products of pairs of words.
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

// Vectors of columns whose ranges and sums of squares stay in registers.
constexpr index_t kRanges = 4;

void ranges(const float* rows, index_t apart, index_t n, float* low, float* high, float* squares) {
  constexpr index_t width = kWidth<float>;
  for (index_t j = 0; j < kStrip; j += kRanges * width) {
    Vec<float> lowest[kRanges] = {}, highest[kRanges] = {}, sum[kRanges] = {};
    for (index_t r = 0; r < n; ++r) {
      const float* from = rows + r * apart + j;
#pragma GCC unroll 4
      for (index_t v = 0; v < kRanges; ++v) {
        const Vec<float> x = load(from + v * width);
        lowest[v] = x < lowest[v] ? x : lowest[v];
        highest[v] = x > highest[v] ? x : highest[v];
        sum[v] += x * x;
      }
    }
    for (index_t v = 0; v < kRanges; ++v) {
      store<float>(lowest[v], low + j + v * width);
      store<float>(highest[v], high + j + v * width);
      store<float>(sum[v], squares + j + v * width);
    }
  }
}

float largest_product(const float* row, const float* factors, index_t n) {
  constexpr index_t width = kWidth<float>;
  Vec<float> most[2] = {};
  for (index_t j = 0; j < n; j += 2 * width) {
#pragma GCC unroll 2
    for (index_t v = 0; v < 2; ++v) {
      const Vec<float> x = load(row + j + v * width) * load(factors + j + v * width);
      const Vec<float> size = x < -x ? -x : x;
      most[v] = size > most[v] ? size : most[v];
    }
  }
  float result = 0.0F;
  for (index_t k = 0; k < width; ++k) {
    result = most[0][k] > result ? most[0][k] : result;
    result = most[1][k] > result ? most[1][k] : result;
  }
  return result;
}

void pack_rounded(const float* const* rows, const float* factors, const float* offsets,
                  std::uint32_t* __restrict out, std::int32_t* __restrict sums) {
  constexpr index_t width = kWidth<float>;
  const Vec<float> zero = {}, most = 255.5F + zero;
  for (index_t j = 0; j < kStrip; j += width) {
    const Vec<float> factor = load(factors + j), offset = load(offsets + j) + 0.5F;
    Entries entry = {}, sum = load_entries(sums + j);
#pragma GCC unroll 4
    for (int r = 0; r < 4; ++r) {
      Vec<float> x = load(rows[r] + j) * factor + offset;
      x = x > zero ? x : zero;
      x = x < most ? x : most;
      const Entries byte = __builtin_convertvector(x, Entries);
      entry |= byte << (8 * r);
      sum += byte;
    }
    __builtin_memcpy(out + j, &entry, sizeof entry);
    __builtin_memcpy(sums + j, &sum, sizeof sum);
  }
}

void add_centred(const std::int32_t* products, const CentredColumn& column,
                 const CentredStrip& strip, index_t n, double* __restrict sum) {
  for (index_t i = 0; i < n; ++i) {
    const std::int32_t signs = (kSigned - strip.offsets[i]) * column.sum;
    const std::int32_t exact = products[i] + signs - column.offset * strip.sums[i];
    sum[i] += column.step * strip.steps[i] * static_cast<double>(exact);
  }
}

}  // namespace EIGENFEAT_TIER

EIGENFEAT_DEFINE_FAMILY(ByteKernels) = [] {
  ByteKernels table{};
  table.multiply_words = EIGENFEAT_TIER::multiply_words;
  table.pack_pair = EIGENFEAT_TIER::pack_pair;
  table.pack_four = EIGENFEAT_TIER::pack_four;
  table.add_bytes = EIGENFEAT_TIER::add_bytes;
  table.ranges = EIGENFEAT_TIER::ranges;
  table.largest_product = EIGENFEAT_TIER::largest_product;
  table.pack_rounded = EIGENFEAT_TIER::pack_rounded;
  table.add_centred = EIGENFEAT_TIER::add_centred;
  return table;
}();

}  // namespace eigenfeat
