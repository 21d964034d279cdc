#include "kernels/svm_kernels.hpp"

#include "kernels/simd.hpp"

namespace eigenfeat {
namespace EIGENFEAT_TIER {

constexpr index_t kPanel = 4;  // vectors of classes that stay in registers

// Independent sums hide the latency of an addition; about eight fit the registers.
constexpr index_t sums_for(index_t vectors) {
  return vectors == 1 ? 8 : vectors == 2 ? 4 : vectors == 3 ? 3 : 2;
}

template <class T, index_t kVectors, bool kSparse>
EIGENFEAT_INLINE void scores_panel(const T* __restrict x, const std::uint32_t* __restrict columns,
                                   index_t n, const T* __restrict w, index_t width,
                                   T* __restrict out) {
  constexpr index_t kSums = sums_for(kVectors);
  Vec<T> sum[kSums][kVectors] = {};
  index_t e = 0;
  for (; e + kSums <= n; e += kSums) {
    for (index_t s = 0; s < kSums; ++s) {
      const index_t j = kSparse ? static_cast<index_t>(columns[e + s]) : e + s;
      const T* line = w + j * width;
      for (index_t v = 0; v < kVectors; ++v) sum[s][v] += x[e + s] * load(line + v * kWidth<T>);
    }
  }
  for (; e < n; ++e) {
    const index_t j = kSparse ? static_cast<index_t>(columns[e]) : e;
    const T* line = w + j * width;
    for (index_t v = 0; v < kVectors; ++v) sum[0][v] += x[e] * load(line + v * kWidth<T>);
  }
  for (index_t v = 0; v < kVectors; ++v) {
    for (index_t s = 1; s < kSums; ++s) sum[0][v] += sum[s][v];
    store<T>(sum[0][v], out + v * kWidth<T>);
  }
}

template <class T, bool kSparse>
EIGENFEAT_INLINE void panels_of_row(const T* x, const std::uint32_t* columns, index_t n, const T* w,
                                    index_t width, T* out) {
  index_t vectors = width / kWidth<T>;
  while (vectors > 0) {
    const index_t part = least(vectors, kPanel), step = part * kWidth<T>;
    with_count<kPanel>(
        part, [&](auto c) { scores_panel<T, c.value, kSparse>(x, columns, n, w, width, out); });
    w += step;
    out += step;
    vectors -= part;
  }
}

template <class T, class U, index_t kVectors, bool kSparse>
EIGENFEAT_INLINE void add_panel(const T* __restrict x, const std::uint32_t* __restrict columns,
                                index_t n, const U* __restrict delta, index_t width,
                                U* __restrict w) {
  Vec<U> step[kVectors];
  for (index_t v = 0; v < kVectors; ++v) step[v] = load(delta + v * kWidth<U>);
  for (index_t e = 0; e < n; ++e) {
    const index_t j = kSparse ? static_cast<index_t>(columns[e]) : e;
    U* line = w + j * width;
    const U entry = static_cast<U>(x[e]);
    for (index_t v = 0; v < kVectors; ++v)
      store<U>(load(line + v * kWidth<U>) + entry * step[v], line + v * kWidth<U>);
  }
}

template <class T, class U, bool kSparse>
EIGENFEAT_INLINE void add_panels(const T* x, const std::uint32_t* columns, index_t n,
                                 const U* delta, index_t width, U* w) {
  index_t vectors = width / kWidth<U>;
  while (vectors > 0) {
    const index_t part = least(vectors, kPanel), step = part * kWidth<U>;
    with_count<kPanel>(
        part, [&](auto c) { add_panel<T, U, c.value, kSparse>(x, columns, n, delta, width, w); });
    w += step;
    delta += step;
    vectors -= part;
  }
}

template <class T>
void row_scores(const T* x, const std::uint32_t* columns, index_t n, const T* w, index_t width,
                T* out) {
  if (columns != nullptr) {
    panels_of_row<T, true>(x, columns, n, w, width, out);
  } else {
    panels_of_row<T, false>(x, columns, n, w, width, out);
  }
}

template <class T, class U>
void add_row(const T* x, const std::uint32_t* columns, index_t n, const U* delta, index_t width,
             U* w) {
  if (columns != nullptr) {
    add_panels<T, U, true>(x, columns, n, delta, width, w);
  } else {
    add_panels<T, U, false>(x, columns, n, delta, width, w);
  }
}

template <class T>
RowCount count_row(const T* __restrict x, index_t n) {
  // A line of partial sums, added in a fixed order; compilers may not split a single sum into parts.
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
T masked_greatest(T* __restrict g, const T* __restrict mask, index_t width) {
  constexpr index_t lane = kWidth<T>;
  T best[lane];
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
double sum_of_squares(const T* __restrict x, index_t n) {
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
void add_and_clear(T factor, T* __restrict x, index_t n, T* __restrict w) {
  for (index_t e = 0; e < n; ++e) {
    w[e] += factor * x[e];
    x[e] = T(0);
  }
}

}  // namespace EIGENFEAT_TIER

EIGENFEAT_DEFINE_FAMILY(SvmKernels<float>) = [] {
  SvmKernels<float> table{};
  table.unit = EIGENFEAT_TIER::kWidth<float>;
  table.row_scores = EIGENFEAT_TIER::row_scores<float>;
  table.add_row = EIGENFEAT_TIER::add_row<float, float>;
  table.add_row_in_double = EIGENFEAT_TIER::add_row<float, double>;
  table.count_row = EIGENFEAT_TIER::count_row<float>;
  table.sum_of_squares = EIGENFEAT_TIER::sum_of_squares<float>;
  table.add_and_clear = EIGENFEAT_TIER::add_and_clear<float>;
  table.masked_greatest = EIGENFEAT_TIER::masked_greatest<float>;
  return table;
}();
EIGENFEAT_DEFINE_FAMILY(SvmKernels<double>) = [] {
  SvmKernels<double> table{};
  table.unit = EIGENFEAT_TIER::kWidth<double>;
  table.row_scores = EIGENFEAT_TIER::row_scores<double>;
  table.add_row = EIGENFEAT_TIER::add_row<double, double>;
  table.add_row_in_double = EIGENFEAT_TIER::add_row<double, double>;
  table.count_row = EIGENFEAT_TIER::count_row<double>;
  table.sum_of_squares = EIGENFEAT_TIER::sum_of_squares<double>;
  table.add_and_clear = EIGENFEAT_TIER::add_and_clear<double>;
  table.masked_greatest = EIGENFEAT_TIER::masked_greatest<double>;
  return table;
}();

}  // namespace eigenfeat
