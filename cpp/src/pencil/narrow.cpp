#include "pencil/narrow.hpp"

#include <algorithm>
#include <stdexcept>

#include "eigenfeat/parallel.hpp"

namespace eigenfeat {
namespace {

constexpr index_t kTileRows = 48;  // rows of a task, a multiple of the panels of all kernels
// Up to this order, one task reads one triangle of a symmetric matrix, because memory traffic
// limits the speed while other items occupy the other threads. Larger matrices are divided into row
// tiles and read in full.
constexpr index_t kSerialSymmetric = 1024;
// Columns of a transposed product, whose rows of Y fit the cache.
constexpr index_t kTileColumns = 192;

template <class T>
void check_block(MatrixView<const T> m, index_t width) {
  const index_t narrowest = kernels<NarrowKernels<T>>().narrowest;
  const bool fits = width == narrowest || width == kLane<T> || width == 2 * kLane<T>;
  if (!m.is_row_major() || !fits) {
    throw std::logic_error("multiply_narrow: the view or the width does not fit");
  }
}

}  // namespace

template <class T>
void multiply_narrow(Shape shape, MatrixView<const T> m, const T* x, index_t width, T* y,
                     int n_threads) {
  const NarrowKernels<T>& kernel = kernels<NarrowKernels<T>>();
  check_block(m, width);
  if (shape == Shape::symmetric && m.rows <= kSerialSymmetric) {
    kernel.symmetric(width, m.data, m.row_stride, m.rows, x, y);
    return;
  }
  if (n_threads == 1) {
    kernel.rows(shape, width, m.data, m.row_stride, m.cols, x, 0, m.rows, y);
    return;
  }
  for_ranges(m.rows, kTileRows, n_threads, [&](index_t first, index_t last, int) {
    kernel.rows(shape, width, m.data, m.row_stride, m.cols, x, first, last, y);
  });
}

template <class T>
void add_transposed_narrow(Shape shape, MatrixView<const T> m, const T* x, index_t width, T* y,
                           int n_threads) {
  const NarrowKernels<T>& kernel = kernels<NarrowKernels<T>>();
  check_block(m, width);
  const auto columns = [&](index_t first, index_t last) {
    const index_t n = shape == Shape::upper ? std::min(m.rows, last) : m.rows;
    kernel.transposed(shape, width, m.data, m.row_stride, n, x, first, last, y);
  };
  if (n_threads == 1) {
    for (index_t first = 0; first < m.cols; first += kTileColumns)
      columns(first, std::min(first + kTileColumns, m.cols));
    return;
  }
  for_ranges(m.cols, kTileColumns, n_threads,
             [&](index_t first, index_t last, int) { columns(first, last); });
}

template void multiply_narrow<float>(Shape, MatrixView<const float>, const float*, index_t, float*,
                                     int);
template void multiply_narrow<double>(Shape, MatrixView<const double>, const double*, index_t,
                                      double*, int);
template void add_transposed_narrow<float>(Shape, MatrixView<const float>, const float*, index_t,
                                           float*, int);
template void add_transposed_narrow<double>(Shape, MatrixView<const double>, const double*, index_t,
                                            double*, int);

}  // namespace eigenfeat
