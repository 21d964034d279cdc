#include "kernels/tile_products.hpp"

#include <algorithm>

#include "eigenfeat/lapack.hpp"
#include "kernels/line.hpp"
#include "kernels/simd.hpp"

namespace eigenfeat {
namespace {

constexpr index_t kMostLines = 4;
// Columns of the tile at a time: their rows of the narrow matrix stay in the first-level cache.
constexpr index_t kColumns = 256;

template <class T, index_t kRows, index_t kLines>
EIGENFEAT_INLINE void score_rows(const T* __restrict tile, index_t stride, const T* __restrict w,
                                 index_t columns, T* __restrict z) {
  using V = typename Line<T>::type;
  const V* wv = reinterpret_cast<const V*>(w);
  V* zv = reinterpret_cast<V*>(z);
  V sum[static_cast<std::size_t>(kRows)][static_cast<std::size_t>(kLines)];
  for (index_t r = 0; r < kRows; ++r) {
    for (index_t l = 0; l < kLines; ++l) sum[r][l] = zv[r * kLines + l];
  }
  for (index_t c = 0; c < columns; ++c) {
    V line[static_cast<std::size_t>(kLines)];
    for (index_t l = 0; l < kLines; ++l) line[l] = wv[c * kLines + l];
    for (index_t r = 0; r < kRows; ++r) {
      const T entry = tile[r * stride + c];
      for (index_t l = 0; l < kLines; ++l) sum[r][l] += entry * line[l];
    }
  }
  for (index_t r = 0; r < kRows; ++r) {
    for (index_t l = 0; l < kLines; ++l) zv[r * kLines + l] = sum[r][l];
  }
}

template <class T, index_t kColumnsAtOnce, index_t kLines>
EIGENFEAT_INLINE void product_columns(const T* __restrict tile, index_t stride, index_t rows,
                                      const T* __restrict residuals, T* __restrict g) {
  using V = typename Line<T>::type;
  const V* rv = reinterpret_cast<const V*>(residuals);
  V* gv = reinterpret_cast<V*>(g);
  V sum[static_cast<std::size_t>(kColumnsAtOnce)][static_cast<std::size_t>(kLines)];
  for (index_t c = 0; c < kColumnsAtOnce; ++c) {
    for (index_t l = 0; l < kLines; ++l) sum[c][l] = gv[c * kLines + l];
  }
  for (index_t r = 0; r < rows; ++r) {
    V line[static_cast<std::size_t>(kLines)];
    for (index_t l = 0; l < kLines; ++l) line[l] = rv[r * kLines + l];
    for (index_t c = 0; c < kColumnsAtOnce; ++c) {
      const T entry = tile[r * stride + c];
      for (index_t l = 0; l < kLines; ++l) sum[c][l] += entry * line[l];
    }
  }
  for (index_t c = 0; c < kColumnsAtOnce; ++c) {
    for (index_t l = 0; l < kLines; ++l) gv[c * kLines + l] = sum[c][l];
  }
}

template <class T, index_t kLines>
EIGENFEAT_INLINE void scores(const T* tile, index_t stride, index_t rows, index_t columns,
                             const T* w, T* z) {
  constexpr index_t width = kLines * kLane<T>;
  constexpr index_t kRows = kLines == 1 ? 12 : kLines == 2 ? 8 : 4;
  for (index_t first = 0; first < columns; first += kColumns) {
    const index_t count = std::min(kColumns, columns - first);
    const T* part = tile + first;
    const T* wp = w + first * width;
    index_t r = 0;
    for (; r + kRows <= rows; r += kRows)
      score_rows<T, kRows, kLines>(part + r * stride, stride, wp, count, z + r * width);
    for (; r < rows; ++r)
      score_rows<T, 1, kLines>(part + r * stride, stride, wp, count, z + r * width);
  }
}

template <class T, index_t kLines>
EIGENFEAT_INLINE void products(const T* tile, index_t stride, index_t rows, index_t columns,
                               const T* residuals, T* g) {
  constexpr index_t width = kLines * kLane<T>;
  constexpr index_t kAtOnce = kLines == 1 ? 16 : kLines == 2 ? 8 : 4;
  index_t c = 0;
  for (; c + kAtOnce <= columns; c += kAtOnce)
    product_columns<T, kAtOnce, kLines>(tile + c, stride, rows, residuals, g + c * width);
  for (; c < columns; ++c)
    product_columns<T, 1, kLines>(tile + c, stride, rows, residuals, g + c * width);
}

template <class T>
EIGENFEAT_INLINE void scores_of(index_t lines, const T* tile, index_t stride, index_t rows,
                                index_t columns, const T* w, T* z) {
  if (lines == 1) scores<T, 1>(tile, stride, rows, columns, w, z);
  if (lines == 2) scores<T, 2>(tile, stride, rows, columns, w, z);
  if (lines == 3) scores<T, 3>(tile, stride, rows, columns, w, z);
  if (lines == 4) scores<T, 4>(tile, stride, rows, columns, w, z);
}

template <class T>
EIGENFEAT_INLINE void products_of(index_t lines, const T* tile, index_t stride, index_t rows,
                                  index_t columns, const T* residuals, T* g) {
  if (lines == 1) products<T, 1>(tile, stride, rows, columns, residuals, g);
  if (lines == 2) products<T, 2>(tile, stride, rows, columns, residuals, g);
  if (lines == 3) products<T, 3>(tile, stride, rows, columns, residuals, g);
  if (lines == 4) products<T, 4>(tile, stride, rows, columns, residuals, g);
}

// target_clones wants plain functions.
EIGENFEAT_CLONES
void scores_in_lines(index_t lines, const float* tile, index_t stride, index_t rows,
                     index_t columns, const float* w, float* z) {
  scores_of(lines, tile, stride, rows, columns, w, z);
}
EIGENFEAT_CLONES
void scores_in_lines(index_t lines, const double* tile, index_t stride, index_t rows,
                     index_t columns, const double* w, double* z) {
  scores_of(lines, tile, stride, rows, columns, w, z);
}
EIGENFEAT_CLONES
void products_in_lines(index_t lines, const float* tile, index_t stride, index_t rows,
                       index_t columns, const float* residuals, float* g) {
  products_of(lines, tile, stride, rows, columns, residuals, g);
}
EIGENFEAT_CLONES
void products_in_lines(index_t lines, const double* tile, index_t stride, index_t rows,
                       index_t columns, const double* residuals, double* g) {
  products_of(lines, tile, stride, rows, columns, residuals, g);
}

}  // namespace

template <class T>
index_t padded_width(index_t k) {
  const index_t lines = (k + kLane<T> - 1) / kLane<T>;
  return lines <= kMostLines ? lines * kLane<T> : k;
}

template <class T>
void add_scores(MatrixView<const T> tile, const T* w, index_t width, T* z) {
  const index_t lines = width / kLane<T>;
  if (width % kLane<T> == 0 && lines <= kMostLines) {
    scores_in_lines(lines, tile.data, tile.row_stride, tile.rows, tile.cols, w, z);
    return;
  }
  gemm<T>(Op::none, Op::none, T(1), row_major(w, tile.cols, width).transposed(), tile.transposed(),
          T(1), row_major(z, tile.rows, width).transposed());
}

template <class T>
void add_products(MatrixView<const T> tile, const T* residuals, index_t width, T* g) {
  const index_t lines = width / kLane<T>;
  if (width % kLane<T> == 0 && lines <= kMostLines) {
    products_in_lines(lines, tile.data, tile.row_stride, tile.rows, tile.cols, residuals, g);
    return;
  }
  gemm<T>(Op::none, Op::transpose, T(1), row_major(residuals, tile.rows, width).transposed(),
          tile.transposed(), T(1), row_major(g, tile.cols, width).transposed());
}

template index_t padded_width<float>(index_t);
template index_t padded_width<double>(index_t);
template void add_scores<float>(MatrixView<const float>, const float*, index_t, float*);
template void add_scores<double>(MatrixView<const double>, const double*, index_t, double*);
template void add_products<float>(MatrixView<const float>, const float*, index_t, float*);
template void add_products<double>(MatrixView<const double>, const double*, index_t, double*);

}  // namespace eigenfeat
