// Private to moments: sums and scatters of rows of bytes, class by class, in integers.
//
//   n S = n sum_i x_i x_i^T - (sum_i x_i)(sum_i x_i)^T
//
// is an integer matrix, and S is its quotient, rounded twice: results are bit-for-bit identical for
// any order of the rows. Products are summed in 32 bits over at most 8,192 rows; these sums are
// added in 64 bits. AVX-512 with VNNI computes four products of bytes in one instruction, in which
// one factor must be signed; x_i (x_j - 128) is therefore summed, and 128 sum x_i is added at the
// end. Other tiers compute two products of words in one instruction.
#pragma once

#include <cstdint>

#include "base/class_order.hpp"
#include "eigenfeat/scratch.hpp"
#include "eigenfeat/vector.hpp"

namespace eigenfeat {

// Maximum number of rows of a class, for which n S fits 64 bits.
inline constexpr index_t kMaxByteRows = index_t{1} << 23;

class ByteMoments {
 public:
  // rows: row-major. Throws std::invalid_argument for labels outside [0, n_classes) and for classes
  // of more than kMaxByteRows rows.
  ByteMoments(MatrixView<const std::uint8_t> rows, VectorView<const std::int32_t> labels,
              index_t n_classes, int n_threads);

  index_t count(index_t c) const { return order_.count(c); }
  // For a class with rows: sums (d,) and lower triangle of the scatter (d, d), row-major, which are
  // zero before the call.
  void form(index_t c, Vector<std::int64_t>& sums, double* scatter);

 private:
  void add_up(index_t c, Vector<std::int64_t>& sums);
  void choose_columns(const Vector<std::int64_t>& sums);
  void pack(index_t begin, index_t end);
  void multiply();

  MatrixView<const std::uint8_t> rows_;
  ClassOrder order_;
  int n_threads_;
  bool four_;             // whether an entry has four rows instead of two
  Vector<index_t> used_;  // columns with nonzero entries in the class
  index_t strips_ = 0;    // strips of the used columns
  index_t entries_ = 0;   // padded number of entries of a column in the panel
  AlignedBuffer<std::uint32_t> panel_;
  AlignedBuffer<std::int64_t> products_;  // (64 strips, 64 strips)
};

}  // namespace eigenfeat
