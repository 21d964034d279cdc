// Private to the core: products of a tile of features with narrow matrices (see
// base/tile_products.hpp).
#pragma once

#include "kernels/family.hpp"

namespace eigenfeat {

// Narrow matrices have `width` columns, a multiple of `unit`, on 64-byte boundaries. Columns from
// `used` on are padding; they are zero and stay zero.
template <class T>
struct TileKernels {
  index_t unit;  // numbers in a vector
  // z (rows, width) += tile (rows, columns) w (columns, width)
  void (*scores)(const T* tile, index_t stride, index_t rows, index_t columns, const T* w,
                 index_t width, index_t used, T* z);
  // g (columns, width) += tile^T residuals (rows, width)
  void (*products)(const T* tile, index_t stride, index_t rows, index_t columns, const T* residuals,
                   index_t width, index_t used, T* g);
};
EIGENFEAT_FAMILY(TileKernels<float>);
EIGENFEAT_FAMILY(TileKernels<double>);

}  // namespace eigenfeat
