#include "kernels/distance_kernels.hpp"

#include "kernels/simd.hpp"

namespace eigenfeat {
namespace EIGENFEAT_TIER {

constexpr index_t kLanes = 16;  // independent sums, in a fixed order

EIGENFEAT_INLINE double sum_of(const double* lanes) {
  double total = 0.0;
  for (index_t l = 0; l < kLanes; ++l) total += lanes[l];
  return total;
}

template <class T>
void shift_and_scale(const T* __restrict x, index_t d, const T* __restrict shift, T scale,
                     T* __restrict out) {
  for (index_t j = 0; j < d; ++j) out[j] = x[j] * scale - shift[j];
}

template <class T>
double squared_norm(const T* __restrict x, index_t d) {
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
void add_row(const T* __restrict x, index_t d, double* __restrict sum, double* __restrict peak) {
  for (index_t j = 0; j < d; ++j) {
    const double value = static_cast<double>(x[j]);
    const double magnitude = value < 0.0 ? -value : value;
    sum[j] += value;
    peak[j] = magnitude > peak[j] ? magnitude : peak[j];
  }
}

template <class T>
double exact_distance(const T* __restrict x, const T* __restrict y, index_t d, double scale) {
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
index_t lows_below(const T* __restrict dot, const T* __restrict base, const T* __restrict radius,
                   T factor, index_t n, T limit, T* __restrict low, std::int32_t* __restrict hits) {
  constexpr index_t chunk = 64 / static_cast<index_t>(sizeof(T));
  index_t count = 0, j = 0;
  for (; j + chunk <= n; j += chunk) {
    T least = base[j] - T(2) * dot[j] - factor * radius[j];
    T part[chunk];
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

// Sums the columns in pieces; the sums of a piece stay in registers during the loop over rows.
template <class T>
void sum_of_differences(const T* __restrict x, const T* const* rows, index_t n_rows, index_t d,
                        T* __restrict out) {
  constexpr index_t piece = 256 / static_cast<index_t>(sizeof(T));
  index_t j = 0;
  for (; j + piece <= d; j += piece) {
    T sum[piece] = {};
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

template <class T, index_t kPiece>
EIGENFEAT_INLINE void spread_piece(const T* x, const T* const* rows, index_t n_rows, index_t j,
                                   index_t width, const T* scale, T share, T* own,
                                   T* const* targets) {
  T sum[kPiece] = {};
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
void spread_difference(const T* x, const T* const* rows, index_t n_rows, index_t d, const T* scale,
                       T share, T* own, T* const* targets) {
  constexpr index_t piece = 256 / static_cast<index_t>(sizeof(T));
  index_t j = 0;
  for (; j + piece <= d; j += piece)
    spread_piece<T, piece>(x, rows, n_rows, j, piece, scale, share, own, targets);
  if (j < d) spread_piece<T, piece>(x, rows, n_rows, j, d - j, scale, share, own, targets);
}

}  // namespace EIGENFEAT_TIER

EIGENFEAT_DEFINE_FAMILY(DistanceKernels<float>) = [] {
  DistanceKernels<float> table{};
  table.shift_and_scale = EIGENFEAT_TIER::shift_and_scale<float>;
  table.squared_norm = EIGENFEAT_TIER::squared_norm<float>;
  table.add_row = EIGENFEAT_TIER::add_row<float>;
  table.exact_distance = EIGENFEAT_TIER::exact_distance<float>;
  table.lows_below = EIGENFEAT_TIER::lows_below<float>;
  table.sum_of_differences = EIGENFEAT_TIER::sum_of_differences<float>;
  table.spread_difference = EIGENFEAT_TIER::spread_difference<float>;
  return table;
}();
EIGENFEAT_DEFINE_FAMILY(DistanceKernels<double>) = [] {
  DistanceKernels<double> table{};
  table.shift_and_scale = EIGENFEAT_TIER::shift_and_scale<double>;
  table.squared_norm = EIGENFEAT_TIER::squared_norm<double>;
  table.add_row = EIGENFEAT_TIER::add_row<double>;
  table.exact_distance = EIGENFEAT_TIER::exact_distance<double>;
  table.lows_below = EIGENFEAT_TIER::lows_below<double>;
  table.sum_of_differences = EIGENFEAT_TIER::sum_of_differences<double>;
  table.spread_difference = EIGENFEAT_TIER::spread_difference<double>;
  return table;
}();

}  // namespace eigenfeat
