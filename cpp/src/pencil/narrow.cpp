#include "pencil/narrow.hpp"

#include <stdexcept>

#include "eigenfeat/parallel.hpp"

namespace eigenfeat {
namespace {

constexpr index_t kTileRows = 48;  // rows of one task: whole panels of every kernel's
// Up to this order a symmetric matrix is read by one triangle, in one task: its traffic is what
// bounds the rate while other items keep the other threads busy. Larger ones are cut into row tiles
// and read whole.
constexpr index_t kSerialSymmetric = 1024;

}  // namespace

template <class T>
void multiply_narrow(Shape shape, MatrixView<const T> m, const T* x, index_t width, T* y,
                     int n_threads) {
  const NarrowKernels<T>& kernel = kernels<NarrowKernels<T>>();
  const bool fits = width == kernel.narrowest || width == kLane<T> || width == 2 * kLane<T>;
  if (!m.is_row_major() || !fits) {
    throw std::logic_error("multiply_narrow: the view or the width does not fit");
  }
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

template void multiply_narrow<float>(Shape, MatrixView<const float>, const float*, index_t, float*,
                                     int);
template void multiply_narrow<double>(Shape, MatrixView<const double>, const double*, index_t,
                                      double*, int);

}  // namespace eigenfeat
