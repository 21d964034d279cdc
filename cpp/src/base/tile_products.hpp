// Private to the core: products of a tile of features, or of affinities, with narrow matrices.
//
// Up to 64 floats or 32 doubles wide, a feature meets a whole row of the narrow matrix, or a panel of
// it, in registers; wider ones go to gemm. Narrow matrices are row-major with padded_width(k) columns
// and start on a 64-byte boundary; the padding is zero.
#pragma once

#include "eigenfeat/view.hpp"

namespace eigenfeat {

// Columns of a narrow matrix with k of them: whole vectors of the tier while the kernels serve, else k.
template <class T>
index_t padded_width(index_t k);

// z (r, width) += tile (r, c) w (c, width); columns from `used` on are padding, and stay zero
template <class T>
void add_scores(MatrixView<const T> tile, const T* w, index_t width, index_t used, T* z);

// g (c, width) += tile^T (c, r) residuals (r, width), likewise
template <class T>
void add_products(MatrixView<const T> tile, const T* residuals, index_t width, index_t used, T* g);

}  // namespace eigenfeat
