#include "kernels/narrow.hpp"

#include <cstddef>
#include <stdexcept>

#include "eigenfeat/parallel.hpp"
#include "kernels/simd.hpp"

namespace eigenfeat {
namespace {

constexpr index_t kTileRows = 64;  // rows of one task
// Up to this order a symmetric matrix is read by one triangle, in one task: its traffic is what
// bounds the rate while other items keep the other threads busy. Larger ones are cut into row tiles
// and read whole.
constexpr index_t kSerialSymmetric = 1024;

// y[r] = sum over k in [begin, end) of m[r][k] x[k], for kRows rows and kLines lines of columns.
template <class T, index_t kRows, index_t kLines>
EIGENFEAT_INLINE void multiply_rows(const T* __restrict m, index_t stride, const T* __restrict x,
                                    index_t begin, index_t end, T* __restrict y) {
  using V = typename Line<T>::type;
  const V* xv = reinterpret_cast<const V*>(x);
  V* yv = reinterpret_cast<V*>(y);
  V sum[static_cast<std::size_t>(kRows)][static_cast<std::size_t>(kLines)];
  for (index_t r = 0; r < kRows; ++r) {
    for (index_t l = 0; l < kLines; ++l) sum[r][l] = V{};
  }
  for (index_t k = begin; k < end; ++k) {
    V line[static_cast<std::size_t>(kLines)];
    for (index_t l = 0; l < kLines; ++l) line[l] = xv[k * kLines + l];
    for (index_t r = 0; r < kRows; ++r) {
      const T entry = m[r * stride + k];
      for (index_t l = 0; l < kLines; ++l) sum[r][l] += entry * line[l];
    }
  }
  for (index_t r = 0; r < kRows; ++r) {
    for (index_t l = 0; l < kLines; ++l) yv[r * kLines + l] = sum[r][l];
  }
}

struct ColumnRange {
  index_t begin;
  index_t end;
};

// The columns in which rows [first, last) of a matrix of this shape may be nonzero.
EIGENFEAT_INLINE ColumnRange columns_of(Shape shape, index_t first, index_t last, index_t d) {
  if (shape == Shape::lower) return {0, last};
  if (shape == Shape::upper) return {first, d};
  return {0, d};
}

template <class T, index_t kLines>
EIGENFEAT_INLINE void tile_product(Shape shape, const T* m, index_t stride, index_t d, const T* x,
                                   index_t first, index_t last, T* y) {
  constexpr index_t width = kLines * kLane<T>;
  constexpr index_t kRows = 8;
  index_t i = first;
  for (; i + kRows <= last; i += kRows) {
    const ColumnRange range = columns_of(shape, i, i + kRows, d);
    multiply_rows<T, kRows, kLines>(m + i * stride, stride, x, range.begin, range.end,
                                    y + i * width);
  }
  for (; i < last; ++i) {
    const ColumnRange range = columns_of(shape, i, i + 1, d);
    multiply_rows<T, 1, kLines>(m + i * stride, stride, x, range.begin, range.end, y + i * width);
  }
}

// Rows [i, i + kRows) of a symmetric product from the lower triangle alone: every entry left of the
// diagonal block serves twice, for its own row and, transposed, for the row of its column.
template <class T, index_t kRows, index_t kLines>
EIGENFEAT_INLINE void symmetric_rows(const T* __restrict m, index_t stride, const T* __restrict x,
                                     index_t i, T* __restrict y) {
  using V = typename Line<T>::type;
  constexpr auto rows = static_cast<std::size_t>(kRows), lines = static_cast<std::size_t>(kLines);
  const V* xv = reinterpret_cast<const V*>(x);
  V* yv = reinterpret_cast<V*>(y);
  V sum[rows][lines], own[rows][lines];
  for (index_t r = 0; r < kRows; ++r) {
    for (index_t l = 0; l < kLines; ++l) {
      sum[r][l] = V{};
      own[r][l] = xv[(i + r) * kLines + l];
    }
  }
  for (index_t k = 0; k < i; ++k) {
    V line[lines], back[lines];
    for (index_t l = 0; l < kLines; ++l) {
      line[l] = xv[k * kLines + l];
      back[l] = yv[k * kLines + l];
    }
    for (index_t r = 0; r < kRows; ++r) {
      const T entry = m[r * stride + k];
      for (index_t l = 0; l < kLines; ++l) {
        sum[r][l] += entry * line[l];
        back[l] += entry * own[r][l];
      }
    }
    for (index_t l = 0; l < kLines; ++l) yv[k * kLines + l] = back[l];
  }
  for (index_t r = 0; r < kRows; ++r) {
    for (index_t k = 0; k < kRows; ++k) {
      for (index_t l = 0; l < kLines; ++l) sum[r][l] += m[r * stride + i + k] * own[k][l];
    }
  }
  for (index_t r = 0; r < kRows; ++r) {
    for (index_t l = 0; l < kLines; ++l) yv[(i + r) * kLines + l] = sum[r][l];
  }
}

template <class T, index_t kLines>
EIGENFEAT_INLINE void symmetric_product(const T* m, index_t stride, index_t d, const T* x, T* y) {
  constexpr index_t kRows = kLines == 1 ? 8 : 4;
  index_t i = 0;
  for (; i + kRows <= d; i += kRows)
    symmetric_rows<T, kRows, kLines>(m + i * stride, stride, x, i, y);
  for (; i < d; ++i) symmetric_rows<T, 1, kLines>(m + i * stride, stride, x, i, y);
}

EIGENFEAT_CLONES
void symmetric_one(const double* m, index_t stride, index_t d, const double* x, double* y) {
  symmetric_product<double, 1>(m, stride, d, x, y);
}
EIGENFEAT_CLONES
void symmetric_two(const double* m, index_t stride, index_t d, const double* x, double* y) {
  symmetric_product<double, 2>(m, stride, d, x, y);
}
EIGENFEAT_CLONES
void symmetric_one(const float* m, index_t stride, index_t d, const float* x, float* y) {
  symmetric_product<float, 1>(m, stride, d, x, y);
}
EIGENFEAT_CLONES
void symmetric_two(const float* m, index_t stride, index_t d, const float* x, float* y) {
  symmetric_product<float, 2>(m, stride, d, x, y);
}

EIGENFEAT_CLONES
void tile_one(Shape shape, const double* m, index_t stride, index_t d, const double* x,
              index_t first, index_t last, double* y) {
  tile_product<double, 1>(shape, m, stride, d, x, first, last, y);
}
EIGENFEAT_CLONES
void tile_two(Shape shape, const double* m, index_t stride, index_t d, const double* x,
              index_t first, index_t last, double* y) {
  tile_product<double, 2>(shape, m, stride, d, x, first, last, y);
}
EIGENFEAT_CLONES
void tile_one(Shape shape, const float* m, index_t stride, index_t d, const float* x, index_t first,
              index_t last, float* y) {
  tile_product<float, 1>(shape, m, stride, d, x, first, last, y);
}
EIGENFEAT_CLONES
void tile_two(Shape shape, const float* m, index_t stride, index_t d, const float* x, index_t first,
              index_t last, float* y) {
  tile_product<float, 2>(shape, m, stride, d, x, first, last, y);
}

}  // namespace

template <class T>
void multiply_narrow(Shape shape, MatrixView<const T> m, const T* x, index_t width, T* y,
                     int n_threads) {
  const bool one = width == kLane<T>;
  if (!m.is_row_major() || (!one && width != 2 * kLane<T>)) {
    throw std::logic_error("multiply_narrow: the view or the width does not fit");
  }
  if (shape == Shape::symmetric && m.rows <= kSerialSymmetric) {
    if (one) {
      symmetric_one(m.data, m.row_stride, m.rows, x, y);
    } else {
      symmetric_two(m.data, m.row_stride, m.rows, x, y);
    }
    return;
  }
  for_ranges(m.rows, kTileRows, n_threads, [&](index_t first, index_t last, int) {
    if (one) {
      tile_one(shape, m.data, m.row_stride, m.cols, x, first, last, y);
    } else {
      tile_two(shape, m.data, m.row_stride, m.cols, x, first, last, y);
    }
  });
}

template void multiply_narrow<float>(Shape, MatrixView<const float>, const float*, index_t, float*,
                                     int);
template void multiply_narrow<double>(Shape, MatrixView<const double>, const double*, index_t,
                                      double*, int);

}  // namespace eigenfeat
