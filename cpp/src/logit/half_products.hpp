// Private to the metric: products of panels in bfloat16, where the machine multiplies pairs of them.
//
//   c (m, n) += a^T b,  a and b panels of features by rows, rounded to bfloat16, sums in float
//
// Each feature is off by at most 2^-9 of itself, so that c is the exact product of slightly other
// features, but for float's rounding of the sums: symmetric products stay positive semidefinite.
// For a preconditioner that is enough, at twice float's rate.
#pragma once

#include <cstdint>

#include "base/tiled_lower.hpp"
#include "eigenfeat/scratch.hpp"
#include "eigenfeat/view.hpp"

namespace eigenfeat {

// Whether this machine has the instructions.
bool has_half_products();

// One panel of rows, packed tile of features by tile: groups of 16 features, and in a group pairs
// of rows, the two numbers of a feature side by side. Padded with zeros.
class HalfPanel {
 public:
  static constexpr index_t kGroup = 16;
  static constexpr index_t kTile = TiledLower<float>::kTile;

  HalfPanel(index_t most_rows, index_t n_features);

  // rows (r, p) row-major float, r at most most_rows
  void pack(MatrixView<const float> rows, int n_threads);
  // product (kTile, kTile) column-major <- tile i's features times tile j's; entries beyond a
  // tile's size are zero. In a diagonal tile those above the diagonal may be anything.
  void multiply(TileIndex at, float* product) const;

 private:
  const std::uint16_t* group(index_t g) const { return packed_.data() + g * most_pairs_ * 32; }

  index_t most_pairs_ = 0;
  [[maybe_unused]] index_t pairs_ = 0;
  index_t groups_ = 0;
  AlignedBuffer<std::uint16_t> packed_;
};

}  // namespace eigenfeat
