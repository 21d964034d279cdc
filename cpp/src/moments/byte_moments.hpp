// Private to moments: sums and scatters of rows of bytes, class by class, in integers.
//
//   n S = n sum_i x_i x_i^T - (sum_i x_i)(sum_i x_i)^T
//
// is an integer matrix, and S its quotient, rounded twice: the same bits for any order of the rows.
// Products are added up in 32 bits over at most 8,192 rows, and in 64 bits beyond. On AVX-512 with VNNI
// four products of bytes are one instruction; there one factor has to be signed, so that x_i (x_j - 128)
// is summed, and 128 sum x_i added at the end. Elsewhere two products of words are one.
#pragma once

#include <cstdint>

#include "base/class_order.hpp"
#include "eigenfeat/scratch.hpp"
#include "eigenfeat/vector.hpp"

namespace eigenfeat {

// Rows of a class whose scatter n S fits 64 bits.
inline constexpr index_t kMaxByteRows = index_t{1} << 23;

class ByteMoments {
 public:
  // rows: row-major. Throws std::invalid_argument for labels outside [0, n_classes) and for classes of
  // more than kMaxByteRows rows.
  ByteMoments(MatrixView<const std::uint8_t> rows, VectorView<const std::int32_t> labels,
              index_t n_classes, int n_threads);

  index_t count(index_t c) const { return order_.count(c); }
  // Of a class with rows: sums (d,), and the scatter's lower triangle (d, d) row-major, zeros before.
  void form(index_t c, Vector<std::int64_t>& sums, double* scatter);

 private:
  void add_up(index_t c, Vector<std::int64_t>& sums);
  void choose_columns(const Vector<std::int64_t>& sums);
  void pack(index_t begin, index_t end);
  void multiply();

  MatrixView<const std::uint8_t> rows_;
  ClassOrder order_;
  int n_threads_;
  bool four_;             // rows to an entry: four, else two
  Vector<index_t> used_;  // columns that are not zero throughout the class
  index_t strips_ = 0;    // of the columns in use
  index_t entries_ = 0;   // of a column in the panel, padded
  AlignedBuffer<std::uint32_t> panel_;
  AlignedBuffer<std::int64_t> products_;  // (64 strips, 64 strips)
};

}  // namespace eigenfeat
