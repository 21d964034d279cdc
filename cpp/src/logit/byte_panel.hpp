// Private to the metric: products of panels of features in 8 bits, for processors that multiply
// four bytes in one instruction.
//
//   c (m, n) += a^T b,  a and b columns of one panel of rows, c in double
//
// A column is rounded to 255 equal steps over its range, with zero as one of the values, and
// products are exact in integers. The result is the Gram matrix of the rounded features, which is
// positive semidefinite.
//
// Steps must be small compared with most entries of a column: a range ends at 16 root mean squares,
// and the caller multiplies rows with larger entries in float. If there are more such rows than a
// sixteenth of the panel, as with rare indicators, which are exact for any step, ranges are extended
// until a sixteenth is outside. An error is at most half a step; its mean square is at most (16 / 255)^2 /
// 12 = 3e-4 of the mean square of the column for columns of one sign, and 1.3e-3 for other columns.
#pragma once

#include <cstdint>

#include "base/tiled_lower.hpp"
#include "eigenfeat/scratch.hpp"
#include "eigenfeat/vector.hpp"
#include "eigenfeat/view.hpp"
#include "kernels/byte_kernels.hpp"

namespace eigenfeat {

class BytePanel {
 public:
  // most_rows: at most 8,192, so that sums of products fit 32 bits.
  BytePanel(index_t most_rows, index_t n_features);

  // The rows of the panel, which the caller fills; at most most_rows.
  MatrixView<float> rows(index_t n) {
    return row_major(lines_.data(), n, n_features_, strips_ * kStrip);
  }
  // Rounds the rows inside the ranges, of n rows; outside() returns the indices of the others.
  void pack(index_t n, int n_threads);
  const Vector<index_t>& outside() const { return outside_; }
  // sum (m, n) column-major += products of the columns of tiles i and j; for i = j at least the
  // entries on and below the diagonal. products: scratch.
  void add_product(TileIndex at, index_t m, index_t n, AlignedBuffer<std::int32_t>& products,
                   double* sum) const;

 private:
  void choose_ranges(index_t n, int n_threads);

  index_t n_features_ = 0;
  index_t strips_ = 0;
  index_t entries_ = 0;           // entries of each column of the panel
  AlignedBuffer<float> lines_;    // (most_rows, 64 strips), padded with zeros
  AlignedBuffer<float> factors_;  // (64 strips,), like the arrays below: inverse steps
  AlignedBuffer<float> shifts_;   // offsets
  Vector<double> steps_;
  Vector<std::int32_t> offsets_, totals_, sums_;  // totals: sums of bytes; sums: without offsets
  Vector<index_t> inside_, outside_;
  AlignedBuffer<std::uint32_t> packed_;  // the bytes, strip by strip
};

}  // namespace eigenfeat
