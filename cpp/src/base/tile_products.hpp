// Private to the core: products of a tile of features, or of affinities, with narrow matrices.
//
// For narrow matrices of up to 64 floats or 32 doubles, kernels multiply each feature by a row, or
// a part of a row, in registers; wider matrices are multiplied by gemm. Narrow matrices are
// row-major with padded_width(k) columns and start on a 64-byte boundary; the padding is zero.
#pragma once

#include "eigenfeat/view.hpp"

namespace eigenfeat {

// Number of stored columns of a narrow matrix with k columns: rounded up to vectors of the tier if
// kernels multiply it, otherwise k.
template <class T>
index_t padded_width(index_t k);

// z (r, width) += tile (r, c) w (c, width); columns from `used` on are padding and stay zero
template <class T>
void add_scores(MatrixView<const T> tile, const T* w, index_t width, index_t used, T* z);

// g (c, width) += tile^T (c, r) residuals (r, width), with padding from `used` on
template <class T>
void add_products(MatrixView<const T> tile, const T* residuals, index_t width, index_t used, T* g);

}  // namespace eigenfeat
