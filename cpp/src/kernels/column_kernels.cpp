#include "kernels/column_kernels.hpp"

#include <utility>

#include "kernels/simd.hpp"

#ifdef __has_builtin
#if __has_builtin(__builtin_shufflevector)
#define EIGENFEAT_SHUFFLES 1
#endif
#endif

namespace eigenfeat {
namespace EIGENFEAT_TIER {

constexpr index_t kAheadLines = 4;  // cache lines that are prefetched in advance

// One number at a time, for the rows and columns outside whole squares.
template <class T>
EIGENFEAT_INLINE void scatter_some(const T* x, index_t col_stride, index_t rows, index_t first,
                                   index_t last, T* const* out) {
  for (index_t i = 0; i < rows; ++i) {
    for (index_t j = first; j < last; ++j) out[i][j] = x[j * col_stride + i];
  }
}

#ifdef EIGENFEAT_SHUFFLES

// Exchanges the off-diagonal blocks of size kHalf in all blocks of size 2 kHalf, a step of the
// transposition of a square of vectors.
template <class T, index_t kHalf, index_t... kEntry>
EIGENFEAT_INLINE void exchange(Vec<T>* square, std::integer_sequence<index_t, kEntry...>) {
  constexpr index_t n = kWidth<T>;
  for (index_t i = 0; i < n; ++i) {
    if ((i & kHalf) != 0) continue;
    const Vec<T> a = square[i], b = square[i + kHalf];
    square[i] = __builtin_shufflevector(a, b, ((kEntry & kHalf) ? n + kEntry - kHalf : kEntry)...);
    square[i + kHalf] =
        __builtin_shufflevector(a, b, ((kEntry & kHalf) ? n + kEntry : kEntry + kHalf)...);
  }
}

template <class T, index_t kHalf>
EIGENFEAT_INLINE void transpose_from(Vec<T>* square) {
  if constexpr (kHalf > 0) {
    exchange<T, kHalf>(square, std::make_integer_sequence<index_t, kWidth<T>>());
    transpose_from<T, kHalf / 2>(square);
  }
}

// A square of vectors: rows out[0 ..] at columns [j, j + kWidth).
template <class T>
EIGENFEAT_INLINE void scatter_square(const T* x, index_t col_stride, index_t ahead, index_t j,
                                     T* const* out) {
  Vec<T> square[kWidth<T>];
  for (index_t l = 0; l < kWidth<T>; ++l) {
    const T* column = x + (j + l) * col_stride;
    EIGENFEAT_PREFETCH(column + ahead);
    square[l] = load(column);
  }
  transpose_from<T, kWidth<T> / 2>(square);
  for (index_t l = 0; l < kWidth<T>; ++l) store<T>(square[l], out[l] + j);
}

#else

template <class T>
EIGENFEAT_INLINE void scatter_square(const T* x, index_t col_stride, index_t, index_t j,
                                     T* const* out) {
  scatter_some(x, col_stride, kWidth<T>, j, j + kWidth<T>, out);
}

#endif

template <class T>
void scatter_rows(const T* x, index_t col_stride, index_t n, index_t d, index_t ahead,
                  T* const* out) {
  constexpr index_t width = kWidth<T>;
  index_t i = 0;
  for (; i + width <= n; i += width) {
    const index_t distance = least(kAheadLines * kLane<T>, n + ahead - 1 - i);
    index_t j = 0;
    for (; j + width <= d; j += width) scatter_square(x + i, col_stride, distance, j, out + i);
    scatter_some(x + i, col_stride, width, j, d, out + i);
  }
  scatter_some(x + i, col_stride, n - i, 0, d, out + i);
}

}  // namespace EIGENFEAT_TIER

EIGENFEAT_DEFINE_FAMILY(ColumnKernels<float>) = [] {
  ColumnKernels<float> table{};
  table.scatter_rows = EIGENFEAT_TIER::scatter_rows<float>;
  return table;
}();
EIGENFEAT_DEFINE_FAMILY(ColumnKernels<double>) = [] {
  ColumnKernels<double> table{};
  table.scatter_rows = EIGENFEAT_TIER::scatter_rows<double>;
  return table;
}();

}  // namespace eigenfeat
