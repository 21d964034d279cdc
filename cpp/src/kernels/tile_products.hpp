// Private to the core: products of a tile of features, or of affinities, with narrow matrices.
//
// For width up to 4 lines (64 floats, 32 doubles) every feature is read once and meets a whole row
// of the narrow matrix in registers; wider ones go to gemm. Narrow matrices are row-major with
// padded_width(k) columns on 64-byte boundaries, the padding zero.
#pragma once

#include "eigenfeat/view.hpp"

namespace eigenfeat {

// Columns of a narrow matrix with k of them: whole lines while the kernels serve, else k.
template <class T>
index_t padded_width(index_t k);

// z (r, width) += tile (r, c) w (c, width)
template <class T>
void add_scores(MatrixView<const T> tile, const T* w, index_t width, T* z);

// g (c, width) += tile^T (c, r) residuals (r, width)
template <class T>
void add_products(MatrixView<const T> tile, const T* residuals, index_t width, T* g);

}  // namespace eigenfeat
