// Private to the core: products of columns of bytes in integers. An entry of 32 bits holds the numbers of
// one column in several rows: two words, or four bytes. A strip is kStrip columns wide, its entries row by
// row.
#pragma once

#include <cstdint>

#include "kernels/family.hpp"

namespace eigenfeat {

inline constexpr index_t kStrip = 64;
inline constexpr std::int32_t kSigned = 128;  // taken off one factor where that has to be signed

// Columns rounded to bytes u = q + offset: a strip of them, and one that it is multiplied by.
struct CentredStrip {
  const double* steps;  // of q
  const std::int32_t* offsets;
  const std::int32_t* sums;  // of q over the rows
};
struct CentredColumn {
  double step;
  std::int32_t offset;
  std::int32_t sum;  // of u
};

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
  // Of kStrip columns of n rows `apart` numbers apart: the least and the largest number, zero among
  // them, and the sums of squares.
  void (*ranges)(const float* rows, index_t apart, index_t n, float* low, float* high,
                 float* squares);
  // The largest |x_j| factor_j of n columns, a multiple of kStrip.
  float (*largest_product)(const float* row, const float* factors, index_t n);
  // A line of a strip of four bytes from four rows: u = round(x factor) + offset, cut off at 0 and 255.
  // sums (kStrip) += u
  void (*pack_rounded)(const float* const* rows, const float* factors, const float* offsets,
                       std::uint32_t* out, std::int32_t* sums);
  // sum (n) += the products of q of a column with those of n columns of a strip, from products of u
  // with u - 128.
  void (*add_centred)(const std::int32_t* products, const CentredColumn& column,
                      const CentredStrip& strip, index_t n, double* sum);
};
EIGENFEAT_FAMILY(ByteKernels);

}  // namespace eigenfeat
