// Private to the core: products of columns of bytes in integers. An entry of 32 bits has the
// numbers of one column in two rows, as words, or in four rows, as bytes. A strip has kStrip
// columns, with its entries in row-major order.
#pragma once

#include <cstdint>

#include "kernels/family.hpp"

namespace eigenfeat {

inline constexpr index_t kStrip = 64;         // columns of a strip
inline constexpr std::int32_t kSigned = 128;  // subtracted from a factor that must be signed

// Columns rounded to bytes u = q + offset: a strip, and a column by which it is multiplied.
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
  // sums (kStrip, kStrip) row-major += left^T right of strips with `entries` pairs of words below
  // 256 in each column.
  void (*multiply_words)(const std::uint32_t* left, const std::uint32_t* right, index_t entries,
                         std::int32_t* sums);
  // A line of a strip from kStrip columns of two rows, or of four rows.
  void (*pack_pair)(const std::uint8_t* const* rows, std::uint32_t* out);
  void (*pack_four)(const std::uint8_t* const* rows, std::uint32_t* out);
  // sums += x for n columns
  void (*add_bytes)(const std::uint8_t* x, index_t n, std::uint32_t* sums);
  // For kStrip columns of n rows with stride `apart`: the smallest and the largest number, at most
  // and at least zero, and the sums of squares.
  void (*ranges)(const float* rows, index_t apart, index_t n, float* low, float* high,
                 float* squares);
  // The largest |x_j| factor_j of n columns, a multiple of kStrip.
  float (*largest_product)(const float* row, const float* factors, index_t n);
  // A line of a strip of four bytes from four rows: u = round(x factor) + offset, clipped to
  // [0, 255]. sums (kStrip) += u.
  void (*pack_rounded)(const float* const* rows, const float* factors, const float* offsets,
                       std::uint32_t* out, std::int32_t* sums);
  // sum (n) += products of q of a column with q of n columns of a strip, from products of u with
  // u - 128.
  void (*add_centred)(const std::int32_t* products, const CentredColumn& column,
                      const CentredStrip& strip, index_t n, double* sum);
};
EIGENFEAT_FAMILY(ByteKernels);

}  // namespace eigenfeat
