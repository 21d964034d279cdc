#include "kernels/svm_kernels.hpp"

#include <algorithm>
#include <cstddef>

#include "kernels/line.hpp"
#include "kernels/simd.hpp"

namespace eigenfeat {
namespace {

constexpr index_t kPanel = 4;  // lines of classes that stay in registers

// kSums independent sums hide the latency of an addition.
template <class T, index_t kLines, index_t kSums, bool kSparse>
EIGENFEAT_INLINE void scores_panel(const T* __restrict x, const std::uint32_t* __restrict columns,
                                   index_t n, const T* __restrict w, index_t width,
                                   T* __restrict out) {
  using V = typename Line<T>::type;
  V sum[static_cast<std::size_t>(kSums)][static_cast<std::size_t>(kLines)];
  for (index_t s = 0; s < kSums; ++s) {
    for (index_t l = 0; l < kLines; ++l) sum[s][l] = V{};
  }
  index_t e = 0;
  for (; e + kSums <= n; e += kSums) {
    for (index_t s = 0; s < kSums; ++s) {
      const index_t j = kSparse ? static_cast<index_t>(columns[e + s]) : e + s;
      const V* line = reinterpret_cast<const V*>(w + j * width);
      for (index_t l = 0; l < kLines; ++l) sum[s][l] += x[e + s] * line[l];
    }
  }
  for (; e < n; ++e) {
    const index_t j = kSparse ? static_cast<index_t>(columns[e]) : e;
    const V* line = reinterpret_cast<const V*>(w + j * width);
    for (index_t l = 0; l < kLines; ++l) sum[0][l] += x[e] * line[l];
  }
  V* to = reinterpret_cast<V*>(out);
  for (index_t l = 0; l < kLines; ++l) {
    for (index_t s = 1; s < kSums; ++s) sum[0][l] += sum[s][l];
    to[l] = sum[0][l];
  }
}

template <class T, bool kSparse>
EIGENFEAT_INLINE void scores_row(const T* x, const std::uint32_t* columns, index_t n, const T* w,
                                 index_t width, T* out) {
  index_t lines = width / kLane<T>;
  while (lines > 0) {
    const index_t part = std::min(lines, kPanel), step = part * kLane<T>;
    if (part == 1) scores_panel<T, 1, 8, kSparse>(x, columns, n, w, width, out);
    if (part == 2) scores_panel<T, 2, 4, kSparse>(x, columns, n, w, width, out);
    if (part == 3) scores_panel<T, 3, 3, kSparse>(x, columns, n, w, width, out);
    if (part == 4) scores_panel<T, 4, 2, kSparse>(x, columns, n, w, width, out);
    w += step;
    out += step;
    lines -= part;
  }
}

// Four rows share every line of w that is read.
template <class T, index_t kLines>
EIGENFEAT_INLINE void four_panel(const T* __restrict x, index_t stride, index_t n,
                                 const T* __restrict w, index_t width, T* __restrict out) {
  using V = typename Line<T>::type;
  V sum[4][static_cast<std::size_t>(kLines)];
  for (index_t r = 0; r < 4; ++r) {
    for (index_t l = 0; l < kLines; ++l) sum[r][l] = V{};
  }
  for (index_t j = 0; j < n; ++j) {
    const V* line = reinterpret_cast<const V*>(w + j * width);
    for (index_t r = 0; r < 4; ++r) {
      const T entry = x[r * stride + j];
      for (index_t l = 0; l < kLines; ++l) sum[r][l] += entry * line[l];
    }
  }
  for (index_t r = 0; r < 4; ++r) {
    V* to = reinterpret_cast<V*>(out + r * width);
    for (index_t l = 0; l < kLines; ++l) to[l] = sum[r][l];
  }
}

template <class T>
EIGENFEAT_INLINE void four_rows(const T* x, index_t stride, index_t n, const T* w, index_t width,
                                T* out) {
  index_t lines = width / kLane<T>;
  while (lines > 0) {
    const index_t part = std::min(lines, kPanel), step = part * kLane<T>;
    if (part == 1) four_panel<T, 1>(x, stride, n, w, width, out);
    if (part == 2) four_panel<T, 2>(x, stride, n, w, width, out);
    if (part == 3) four_panel<T, 3>(x, stride, n, w, width, out);
    if (part == 4) four_panel<T, 4>(x, stride, n, w, width, out);
    w += step;
    out += step;
    lines -= part;
  }
}

template <class T, class U, index_t kLines, bool kSparse>
EIGENFEAT_INLINE void add_panel(const T* __restrict x, const std::uint32_t* __restrict columns,
                                index_t n, const U* __restrict delta, index_t width,
                                U* __restrict w) {
  using V = typename Line<U>::type;
  V step[static_cast<std::size_t>(kLines)];
  const V* from = reinterpret_cast<const V*>(delta);
  for (index_t l = 0; l < kLines; ++l) step[l] = from[l];
  for (index_t e = 0; e < n; ++e) {
    const index_t j = kSparse ? static_cast<index_t>(columns[e]) : e;
    V* line = reinterpret_cast<V*>(w + j * width);
    const U entry = static_cast<U>(x[e]);
    for (index_t l = 0; l < kLines; ++l) line[l] += entry * step[l];
  }
}

template <class T, class U, bool kSparse>
EIGENFEAT_INLINE void add_to(const T* x, const std::uint32_t* columns, index_t n, const U* delta,
                             index_t width, U* w) {
  index_t lines = width / kLane<U>;
  while (lines > 0) {
    const index_t part = std::min(lines, kPanel), step = part * kLane<U>;
    if (part == 1) add_panel<T, U, 1, kSparse>(x, columns, n, delta, width, w);
    if (part == 2) add_panel<T, U, 2, kSparse>(x, columns, n, delta, width, w);
    if (part == 3) add_panel<T, U, 3, kSparse>(x, columns, n, delta, width, w);
    if (part == 4) add_panel<T, U, 4, kSparse>(x, columns, n, delta, width, w);
    w += step;
    delta += step;
    lines -= part;
  }
}

template <class T>
EIGENFEAT_INLINE RowCount counted(const T* __restrict x, index_t n) {
  // A line of sums, in a fixed order: the compiler may not reorder a single one.
  constexpr index_t lane = 16;
  double squares[lane] = {};
  std::int32_t entries[lane] = {};
  index_t j = 0;
  for (; j + lane <= n; j += lane) {
    for (index_t l = 0; l < lane; ++l) {
      const T value = x[j + l];
      squares[l] += static_cast<double>(value) * static_cast<double>(value);
      entries[l] += value != T(0) ? 1 : 0;
    }
  }
  for (; j < n; ++j) {
    squares[0] += static_cast<double>(x[j]) * static_cast<double>(x[j]);
    entries[0] += x[j] != T(0) ? 1 : 0;
  }
  RowCount count;
  for (index_t l = 0; l < lane; ++l) {
    count.square += squares[l];
    count.entries += entries[l];
  }
  return count;
}

template <class T>
EIGENFEAT_INLINE T greatest(T* __restrict g, const T* __restrict mask, index_t width) {
  constexpr index_t lane = kLane<T>;
  T best[static_cast<std::size_t>(lane)];
  for (index_t l = 0; l < lane; ++l) {
    g[l] += mask[l];
    best[l] = g[l];
  }
  for (index_t c = lane; c < width; c += lane) {
    for (index_t l = 0; l < lane; ++l) {
      g[c + l] += mask[c + l];
      best[l] = g[c + l] > best[l] ? g[c + l] : best[l];
    }
  }
  for (index_t half = lane / 2; half > 0; half /= 2) {
    for (index_t l = 0; l < half; ++l)
      best[l] = best[l + half] > best[l] ? best[l + half] : best[l];
  }
  return best[0];
}

template <class T>
EIGENFEAT_INLINE double squares_of(const T* __restrict x, index_t n) {
  constexpr index_t lane = 32;
  double sums[lane] = {};
  index_t e = 0;
  for (; e + lane <= n; e += lane) {
    for (index_t l = 0; l < lane; ++l) {
      const double value = static_cast<double>(x[e + l]);
      sums[l] += value * value;
    }
  }
  for (; e < n; ++e) sums[0] += static_cast<double>(x[e]) * static_cast<double>(x[e]);
  double total = 0.0;
  for (index_t l = 0; l < lane; ++l) total += sums[l];
  return total;
}

template <class T>
EIGENFEAT_INLINE void add_clearing(T factor, T* __restrict x, index_t n, T* __restrict w) {
  for (index_t e = 0; e < n; ++e) {
    w[e] += factor * x[e];
    x[e] = T(0);
  }
}

}  // namespace

EIGENFEAT_CLONES
double sum_of_squares(const float* x, index_t n) {
  return squares_of(x, n);
}
EIGENFEAT_CLONES
double sum_of_squares(const double* x, index_t n) {
  return squares_of(x, n);
}
EIGENFEAT_CLONES
void add_and_clear(float factor, float* x, index_t n, float* w) {
  add_clearing(factor, x, n, w);
}
EIGENFEAT_CLONES
void add_and_clear(double factor, double* x, index_t n, double* w) {
  add_clearing(factor, x, n, w);
}

EIGENFEAT_CLONES
void row_scores(const float* x, const std::uint32_t* columns, index_t n, const float* w,
                index_t width, float* out) {
  if (columns != nullptr) {
    scores_row<float, true>(x, columns, n, w, width, out);
  } else {
    scores_row<float, false>(x, columns, n, w, width, out);
  }
}

EIGENFEAT_CLONES
void row_scores(const double* x, const std::uint32_t* columns, index_t n, const double* w,
                index_t width, double* out) {
  if (columns != nullptr) {
    scores_row<double, true>(x, columns, n, w, width, out);
  } else {
    scores_row<double, false>(x, columns, n, w, width, out);
  }
}

EIGENFEAT_CLONES
void four_row_scores(const float* x, index_t stride, index_t n, const float* w, index_t width,
                     float* out) {
  four_rows(x, stride, n, w, width, out);
}

EIGENFEAT_CLONES
void four_row_scores(const double* x, index_t stride, index_t n, const double* w, index_t width,
                     double* out) {
  four_rows(x, stride, n, w, width, out);
}

EIGENFEAT_CLONES
void add_row(const float* x, const std::uint32_t* columns, index_t n, const float* delta,
             index_t width, float* w) {
  if (columns != nullptr) {
    add_to<float, float, true>(x, columns, n, delta, width, w);
  } else {
    add_to<float, float, false>(x, columns, n, delta, width, w);
  }
}

EIGENFEAT_CLONES
void add_row(const float* x, const std::uint32_t* columns, index_t n, const double* delta,
             index_t width, double* w) {
  if (columns != nullptr) {
    add_to<float, double, true>(x, columns, n, delta, width, w);
  } else {
    add_to<float, double, false>(x, columns, n, delta, width, w);
  }
}

EIGENFEAT_CLONES
void add_row(const double* x, const std::uint32_t* columns, index_t n, const double* delta,
             index_t width, double* w) {
  if (columns != nullptr) {
    add_to<double, double, true>(x, columns, n, delta, width, w);
  } else {
    add_to<double, double, false>(x, columns, n, delta, width, w);
  }
}

EIGENFEAT_CLONES
RowCount count_row(const float* x, index_t n) {
  return counted(x, n);
}
EIGENFEAT_CLONES
RowCount count_row(const double* x, index_t n) {
  return counted(x, n);
}

EIGENFEAT_CLONES
float masked_greatest(float* g, const float* mask, index_t width) {
  return greatest(g, mask, width);
}
EIGENFEAT_CLONES
double masked_greatest(double* g, const double* mask, index_t width) {
  return greatest(g, mask, width);
}

}  // namespace eigenfeat
