#include "kernels/column_kernels.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "kernels/line.hpp"
#include "kernels/simd.hpp"

namespace eigenfeat {
namespace {

constexpr index_t kAheadLines = 4;  // what a core has time to fetch meanwhile

// One number after another, for what is left of whole lines.
template <class T>
EIGENFEAT_INLINE void scatter_some(const T* x, index_t col_stride, index_t rows, index_t first,
                                   index_t last, T* const* out) {
  for (index_t i = 0; i < rows; ++i) {
    for (index_t j = first; j < last; ++j) out[i][j] = x[j * col_stride + i];
  }
}

#if defined(__GNUC__) && !defined(__clang__)

template <class T>
struct Lanes;
template <>
struct Lanes<float> {
  using Number = std::int32_t;
  typedef Number type __attribute__((vector_size(64)));
};
template <>
struct Lanes<double> {
  using Number = std::int64_t;
  typedef Number type __attribute__((vector_size(64)));
};

// Exchanges the off-diagonal blocks of size Half in all blocks of twice that: one step of log2(lane)
// that transpose a square of lines.
template <class T, index_t Half>
EIGENFEAT_INLINE void exchange(typename Line<T>::type* lines) {
  constexpr index_t lane = kLane<T>;
  typename Lanes<T>::type upper, lower;
  for (index_t l = 0; l < lane; ++l) {
    const bool odd = (l & Half) != 0;
    using Number = typename Lanes<T>::Number;
    upper[l] = static_cast<Number>(odd ? lane + l - Half : l);
    lower[l] = static_cast<Number>(odd ? lane + l : l + Half);
  }
  for (index_t i = 0; i < lane; ++i) {
    if ((i & Half) != 0) continue;
    const typename Line<T>::type a = lines[i], b = lines[i + Half];
    lines[i] = __builtin_shuffle(a, b, upper);
    lines[i + Half] = __builtin_shuffle(a, b, lower);
  }
}

// A square of lines: rows out[0 ..] at columns [j, j + lane).
template <class T>
EIGENFEAT_INLINE void scatter_square(const T* x, index_t col_stride, index_t ahead, index_t j,
                                     T* const* out) {
  constexpr index_t lane = kLane<T>;
  typename Line<T>::type lines[static_cast<std::size_t>(lane)];
  for (index_t l = 0; l < lane; ++l) {
    const T* column = x + (j + l) * col_stride;
    EIGENFEAT_PREFETCH(column + ahead);
    std::memcpy(&lines[l], column, sizeof lines[l]);
  }
  if constexpr (lane == 16) exchange<T, lane / 2>(lines);
  exchange<T, 4>(lines);
  exchange<T, 2>(lines);
  exchange<T, 1>(lines);
  for (index_t l = 0; l < lane; ++l) std::memcpy(out[l] + j, &lines[l], sizeof lines[l]);
}

#else

template <class T>
EIGENFEAT_INLINE void scatter_square(const T* x, index_t col_stride, index_t, index_t j,
                                     T* const* out) {
  scatter_some(x, col_stride, kLane<T>, j, j + kLane<T>, out);
}

#endif

template <class T>
EIGENFEAT_INLINE void scatter(const T* x, index_t col_stride, index_t n, index_t d, index_t ahead,
                              T* const* out) {
  constexpr index_t lane = kLane<T>;
  index_t i = 0;
  for (; i + lane <= n; i += lane) {
    const index_t distance = std::min(kAheadLines * lane, n + ahead - 1 - i);
    index_t j = 0;
    for (; j + lane <= d; j += lane) scatter_square(x + i, col_stride, distance, j, out + i);
    scatter_some(x + i, col_stride, lane, j, d, out + i);
  }
  scatter_some(x + i, col_stride, n - i, 0, d, out + i);
}

}  // namespace

EIGENFEAT_CLONES
void scatter_rows(const float* x, index_t col_stride, index_t n, index_t d, index_t ahead,
                  float* const* out) {
  scatter(x, col_stride, n, d, ahead, out);
}

EIGENFEAT_CLONES
void scatter_rows(const double* x, index_t col_stride, index_t n, index_t d, index_t ahead,
                  double* const* out) {
  scatter(x, col_stride, n, d, ahead, out);
}

}  // namespace eigenfeat
