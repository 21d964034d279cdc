// Private to moments: products of columns of bytes in integers. An entry of 32 bits holds the numbers of
// one column in several rows: two words, or four bytes. A strip is kStrip columns wide, its entries row by
// row.
#pragma once

#include <cstdint>

#include "kernels/family.hpp"

namespace eigenfeat {

inline constexpr index_t kStrip = 64;

struct ByteKernels {
  // sums (kStrip, kStrip) row-major += left^T right of strips of pairs of words below 256, `entries` of
  // them a column.
  void (*multiply_words)(const std::uint32_t* left, const std::uint32_t* right, index_t entries,
                         std::int32_t* sums);
  // A line of a strip from kStrip columns of two rows, or of four.
  void (*pack_pair)(const std::uint8_t* const* rows, std::uint32_t* out);
  void (*pack_four)(const std::uint8_t* const* rows, std::uint32_t* out);
  // sums += x for n columns
  void (*add_bytes)(const std::uint8_t* x, index_t n, std::uint32_t* sums);
};
EIGENFEAT_FAMILY(ByteKernels);

}  // namespace eigenfeat
