#include "kernels/distance_kernels.hpp"

#include <algorithm>

#include "kernels/simd.hpp"

namespace eigenfeat {
namespace {

constexpr index_t kLanes = 16;  // independent sums, in a fixed order

EIGENFEAT_INLINE double sum_of(const double* lanes) {
  double total = 0.0;
  for (index_t l = 0; l < kLanes; ++l) total += lanes[l];
  return total;
}

template <class T>
EIGENFEAT_INLINE void shifted(const T* __restrict x, index_t d, const T* __restrict shift, T scale,
                              T* __restrict out) {
  for (index_t j = 0; j < d; ++j) out[j] = x[j] * scale - shift[j];
}

template <class T>
EIGENFEAT_INLINE double norm(const T* __restrict x, index_t d) {
  double lanes[kLanes] = {};
  index_t j = 0;
  for (; j + kLanes <= d; j += kLanes) {
    for (index_t l = 0; l < kLanes; ++l) {
      const double value = static_cast<double>(x[j + l]);
      lanes[l] += value * value;
    }
  }
  for (; j < d; ++j) lanes[0] += static_cast<double>(x[j]) * static_cast<double>(x[j]);
  return sum_of(lanes);
}

template <class T>
EIGENFEAT_INLINE void add(const T* __restrict x, index_t d, double* __restrict sum,
                          double* __restrict peak) {
  for (index_t j = 0; j < d; ++j) {
    const double value = static_cast<double>(x[j]);
    const double magnitude = value < 0.0 ? -value : value;
    sum[j] += value;
    peak[j] = magnitude > peak[j] ? magnitude : peak[j];
  }
}

template <class T>
EIGENFEAT_INLINE double distance(const T* __restrict x, const T* __restrict y, index_t d,
                                 double scale) {
  double lanes[kLanes] = {};
  index_t j = 0;
  for (; j + kLanes <= d; j += kLanes) {
    for (index_t l = 0; l < kLanes; ++l) {
      const double gap = scale * (static_cast<double>(x[j + l]) - static_cast<double>(y[j + l]));
      lanes[l] += gap * gap;
    }
  }
  for (; j < d; ++j) {
    const double gap = scale * (static_cast<double>(x[j]) - static_cast<double>(y[j]));
    lanes[0] += gap * gap;
  }
  return sum_of(lanes);
}

template <class T>
EIGENFEAT_INLINE index_t lows(const T* __restrict dot, const T* __restrict base,
                              const T* __restrict radius, T factor, index_t n, T limit,
                              T* __restrict low, std::int32_t* __restrict hits) {
  constexpr index_t chunk = 64 / static_cast<index_t>(sizeof(T));
  index_t count = 0, j = 0;
  for (; j + chunk <= n; j += chunk) {
    T least = base[j] - T(2) * dot[j] - factor * radius[j];
    T part[static_cast<std::size_t>(chunk)];
    for (index_t l = 0; l < chunk; ++l)
      part[l] = base[j + l] - T(2) * dot[j + l] - factor * radius[j + l];
    for (index_t l = 0; l < chunk; ++l) {
      low[j + l] = part[l];
      least = part[l] < least ? part[l] : least;
    }
    if (least > limit) continue;
    for (index_t l = 0; l < chunk; ++l) {
      if (part[l] <= limit) hits[count++] = static_cast<std::int32_t>(j + l);
    }
  }
  for (; j < n; ++j) {
    low[j] = base[j] - T(2) * dot[j] - factor * radius[j];
    if (low[j] <= limit) hits[count++] = static_cast<std::int32_t>(j);
  }
  return count;
}

// Columns in pieces that stay in registers while the rows go by.
template <class T>
EIGENFEAT_INLINE void differences(const T* __restrict x, const T* const* rows, index_t n_rows,
                                  index_t d, T* __restrict out) {
  constexpr index_t piece = 256 / static_cast<index_t>(sizeof(T));
  index_t j = 0;
  for (; j + piece <= d; j += piece) {
    T sum[static_cast<std::size_t>(piece)] = {};
    for (index_t r = 0; r < n_rows; ++r) {
      const T* __restrict row = rows[r] + j;
      for (index_t l = 0; l < piece; ++l) sum[l] += x[j + l] - row[l];
    }
    for (index_t l = 0; l < piece; ++l) out[j + l] = sum[l];
  }
  for (index_t l = j; l < d; ++l) out[l] = T(0);
  for (index_t r = 0; r < n_rows; ++r) {
    for (index_t l = j; l < d; ++l) out[l] += x[l] - rows[r][l];
  }
}

template <class T, index_t kWidth>
EIGENFEAT_INLINE void spread_piece(const T* x, const T* const* rows, index_t n_rows, index_t j,
                                   index_t width, const T* scale, T share, T* own,
                                   T* const* targets) {
  T sum[static_cast<std::size_t>(kWidth)] = {};
  for (index_t r = 0; r < n_rows; ++r) {
    const T* row = rows[r] + j;
    for (index_t l = 0; l < width; ++l) sum[l] += x[j + l] - row[l];
  }
  for (index_t l = 0; l < width; ++l) sum[l] *= scale == nullptr ? share : share * scale[j + l];
  for (index_t l = 0; l < width; ++l) own[j + l] += sum[l];
  const T part = T(1) / static_cast<T>(n_rows);
  for (index_t l = 0; l < width; ++l) sum[l] *= part;
  for (index_t r = 0; r < n_rows; ++r) {
    T* target = targets[r] + j;
    for (index_t l = 0; l < width; ++l) target[l] -= sum[l];
  }
}

template <class T>
EIGENFEAT_INLINE void spread(const T* x, const T* const* rows, index_t n_rows, index_t d,
                             const T* scale, T share, T* own, T* const* targets) {
  constexpr index_t piece = 256 / static_cast<index_t>(sizeof(T));
  index_t j = 0;
  for (; j + piece <= d; j += piece)
    spread_piece<T, piece>(x, rows, n_rows, j, piece, scale, share, own, targets);
  if (j < d) spread_piece<T, piece>(x, rows, n_rows, j, d - j, scale, share, own, targets);
}

}  // namespace

EIGENFEAT_CLONES
void spread_difference(const float* x, const float* const* rows, index_t n_rows, index_t d,
                       const float* scale, float share, float* own, float* const* targets) {
  spread(x, rows, n_rows, d, scale, share, own, targets);
}
EIGENFEAT_CLONES
void spread_difference(const double* x, const double* const* rows, index_t n_rows, index_t d,
                       const double* scale, double share, double* own, double* const* targets) {
  spread(x, rows, n_rows, d, scale, share, own, targets);
}
EIGENFEAT_CLONES
void shift_and_scale(const float* x, index_t d, const float* shift, float scale, float* out) {
  shifted(x, d, shift, scale, out);
}
EIGENFEAT_CLONES
double squared_norm(const float* x, index_t d) {
  return norm(x, d);
}
EIGENFEAT_CLONES
void shift_and_scale(const double* x, index_t d, const double* shift, double scale, double* out) {
  shifted(x, d, shift, scale, out);
}
EIGENFEAT_CLONES
double squared_norm(const double* x, index_t d) {
  return norm(x, d);
}
EIGENFEAT_CLONES
void add_row(const float* x, index_t d, double* sum, double* peak) {
  add(x, d, sum, peak);
}
EIGENFEAT_CLONES
void add_row(const double* x, index_t d, double* sum, double* peak) {
  add(x, d, sum, peak);
}
EIGENFEAT_CLONES
double exact_distance(const float* x, const float* y, index_t d, double scale) {
  return distance(x, y, d, scale);
}
EIGENFEAT_CLONES
double exact_distance(const double* x, const double* y, index_t d, double scale) {
  return distance(x, y, d, scale);
}
EIGENFEAT_CLONES
index_t lows_below(const float* dot, const float* base, const float* radius, float factor,
                   index_t n, float limit, float* low, std::int32_t* hits) {
  return lows(dot, base, radius, factor, n, limit, low, hits);
}
EIGENFEAT_CLONES
index_t lows_below(const double* dot, const double* base, const double* radius, double factor,
                   index_t n, double limit, double* low, std::int32_t* hits) {
  return lows(dot, base, radius, factor, n, limit, low, hits);
}
EIGENFEAT_CLONES
void sum_of_differences(const float* x, const float* const* rows, index_t n_rows, index_t d,
                        float* out) {
  differences(x, rows, n_rows, d, out);
}
EIGENFEAT_CLONES
void sum_of_differences(const double* x, const double* const* rows, index_t n_rows, index_t d,
                        double* out) {
  differences(x, rows, n_rows, d, out);
}

}  // namespace eigenfeat
