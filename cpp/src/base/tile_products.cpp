#include "base/tile_products.hpp"

#include "eigenfeat/lapack.hpp"
#include "kernels/line.hpp"
#include "kernels/tile_kernels.hpp"

namespace eigenfeat {
namespace {

// 64 floats or 32 doubles: for wider matrices, BLAS is faster than kernels that read a tile
// repeatedly.
template <class T>
constexpr index_t kMaxColumns = 4 * kLane<T>;

template <class T>
bool serves(index_t width) {
  return width <= kMaxColumns<T> && width % kernels<TileKernels<T>>().unit == 0;
}

}  // namespace

template <class T>
index_t padded_width(index_t k) {
  const index_t unit = kernels<TileKernels<T>>().unit, width = (k + unit - 1) / unit * unit;
  return width <= kMaxColumns<T> ? width : k;
}

template <class T>
void add_scores(MatrixView<const T> tile, const T* w, index_t width, index_t used, T* z) {
  if (serves<T>(width)) {
    kernels<TileKernels<T>>().scores(tile.data, tile.row_stride, tile.rows, tile.cols, w, width,
                                     used, z);
    return;
  }
  gemm<T>(Op::none, Op::none, T(1), row_major(w, tile.cols, width).transposed(), tile.transposed(),
          T(1), row_major(z, tile.rows, width).transposed());
}

template <class T>
void add_products(MatrixView<const T> tile, const T* residuals, index_t width, index_t used, T* g) {
  if (serves<T>(width)) {
    kernels<TileKernels<T>>().products(tile.data, tile.row_stride, tile.rows, tile.cols, residuals,
                                       width, used, g);
    return;
  }
  gemm<T>(Op::none, Op::transpose, T(1), row_major(residuals, tile.rows, width).transposed(),
          tile.transposed(), T(1), row_major(g, tile.cols, width).transposed());
}

template index_t padded_width<float>(index_t);
template index_t padded_width<double>(index_t);
template void add_scores<float>(MatrixView<const float>, const float*, index_t, index_t, float*);
template void add_scores<double>(MatrixView<const double>, const double*, index_t, index_t,
                                 double*);
template void add_products<float>(MatrixView<const float>, const float*, index_t, index_t, float*);
template void add_products<double>(MatrixView<const double>, const double*, index_t, index_t,
                                   double*);

}  // namespace eigenfeat
