// Private to the metric: products of panels of features in 8 bits, where the machine multiplies four of
// them at once.
//
//   c (m, n) += a^T b,  a and b columns of one panel of rows, c in double
//
// A column is rounded to 255 equal steps over its range, zero being one of the numbers, and products are
// exact in integers: the Gram matrix of slightly other features, so positive semidefinite. Steps must
// not be longer than the bulk of a column bears. Hence a range ends at 16 root mean squares, and rows
// with a feature beyond are multiplied in float, by the caller; where they are more than a sixteenth of
// the panel (rare indicators, which any step renders), ranges end as far as leaves so many. An error is
// at most half a step, in the mean (16 / 255)^2 / 12 = 3e-4 of a column's mean square for columns of one
// sign, and 1.3e-3 for others.
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
  // most_rows: at most 8,192, over which products are added up in 32 bits.
  BytePanel(index_t most_rows, index_t n_features);

  // The panel's n rows, to be filled; at most most_rows.
  MatrixView<float> rows(index_t n) {
    return row_major(lines_.data(), n, n_features_, strips_ * kStrip);
  }
  // Rounds n rows but those that are beyond the range, whose numbers it leaves in outside().
  void pack(index_t n, int n_threads);
  const Vector<index_t>& outside() const { return outside_; }
  // sum (m, n) column-major += tile i's columns times tile j's; of a diagonal tile at least those on and
  // below the diagonal. products: scratch.
  void add_product(TileIndex at, index_t m, index_t n, AlignedBuffer<std::int32_t>& products,
                   double* sum) const;

 private:
  void choose_ranges(index_t n, int n_threads);

  index_t n_features_ = 0;
  index_t strips_ = 0;
  index_t entries_ = 0;           // of a column in the panel, in use
  AlignedBuffer<float> lines_;    // (most_rows, 64 strips), zeros behind the features
  AlignedBuffer<float> factors_;  // (64 strips,), as all below: one over the step
  AlignedBuffer<float> shifts_;   // the offsets
  Vector<double> steps_;
  Vector<std::int32_t> offsets_, totals_, sums_;  // sums of bytes, and without offsets
  Vector<index_t> inside_, outside_;
  AlignedBuffer<std::uint32_t> packed_;  // strip by strip
};

}  // namespace eigenfeat
