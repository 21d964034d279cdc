#include "kernels/svm_kernels.hpp"

#include "kernels/simd.hpp"

namespace eigenfeat {
namespace EIGENFEAT_TIER {

constexpr index_t kPanel = 4;  // vectors of classes that stay in registers

// kSums independent sums hide the latency of an addition.
template <class T, index_t kVectors, index_t kSums, bool kSparse>
EIGENFEAT_INLINE void scores_panel(const T* __restrict x, const std::uint32_t* __restrict columns,
                                   index_t n, const T* __restrict w, index_t width,
                                   T* __restrict out) {
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
    if (part == 1) scores_panel<T, 1, 8, kSparse>(x, columns, n, w, width, out);
    if (part == 2) scores_panel<T, 2, 4, kSparse>(x, columns, n, w, width, out);
    if (part == 3) scores_panel<T, 3, 3, kSparse>(x, columns, n, w, width, out);
    if (part == 4) scores_panel<T, 4, 2, kSparse>(x, columns, n, w, width, out);
    w += step;
    out += step;
    vectors -= part;
  }
}

// Keeps a vector that is used more than once in a register: the compiler would rather read it again
// for each use, and loads are what these loops are short of.
template <class T>
EIGENFEAT_INLINE Vec<T> in_register(Vec<T> v) {
#if defined(__GNUC__) && defined(__x86_64__)
  asm("" : "+x"(v));
#elif defined(__GNUC__) && defined(__aarch64__)
  asm("" : "+w"(v));
#endif
  return v;
}

// Four floats or two doubles.
template <class T>
struct Small;
template <>
struct Small<float> {
  typedef float type __attribute__((vector_size(16)));
};
template <>
struct Small<double> {
  typedef double type __attribute__((vector_size(16)));
};

#if defined(__clang__) || __GNUC__ >= 12
#define EIGENFEAT_PICK(a, b, ...) __builtin_shufflevector(a, b, __VA_ARGS__)
#else
#define EIGENFEAT_PICK(a, b, ...) __builtin_shuffle(a, b, decltype(a < b){__VA_ARGS__})
#endif

// out[i] <- the sum of v[i]'s numbers, for as many v as a small vector has numbers.
EIGENFEAT_INLINE void sums_of_small(const Small<float>::type* v, float* out) {
  using V = Small<float>::type;
  const V a = EIGENFEAT_PICK(v[0], v[1], 0, 4, 1, 5) + EIGENFEAT_PICK(v[0], v[1], 2, 6, 3, 7);
  const V b = EIGENFEAT_PICK(v[2], v[3], 0, 4, 1, 5) + EIGENFEAT_PICK(v[2], v[3], 2, 6, 3, 7);
  const V sum = EIGENFEAT_PICK(a, b, 0, 1, 4, 5) + EIGENFEAT_PICK(a, b, 2, 3, 6, 7);
  __builtin_memcpy(out, &sum, sizeof sum);
}
EIGENFEAT_INLINE void sums_of_small(const Small<double>::type* v, double* out) {
  using V = Small<double>::type;
  const V sum = EIGENFEAT_PICK(v[0], v[1], 0, 2) + EIGENFEAT_PICK(v[0], v[1], 1, 3);
  __builtin_memcpy(out, &sum, sizeof sum);
}

// The sum of a vector's parts, always in the same order.
template <class T>
EIGENFEAT_INLINE typename Small<T>::type folded(const Vec<T>& v) {
  constexpr index_t parts = EIGENFEAT_VECTOR_BYTES / 16;
  typename Small<T>::type part[parts];
  __builtin_memcpy(part, &v, sizeof v);
  for (index_t half = parts / 2; half > 0; half /= 2) {
    for (index_t l = 0; l < half; ++l) part[l] += part[l + half];
  }
  return part[0];
}

// kRows rows times kClasses classes, along the features: no class needs padding. ends: what is left
// of each row after its whole vectors, with zeros behind; the classes have such zeros, too.
template <class T, index_t kRows, index_t kClasses>
EIGENFEAT_INLINE void sums_along(const T* __restrict x, index_t stride, index_t n,
                                 const T* __restrict ends, const T* __restrict w, index_t apart,
                                 index_t width, T* __restrict out) {
  Vec<T> sum[kRows][kClasses] = {};
  index_t j = 0;
  for (; j + kWidth<T> <= n; j += kWidth<T>) {
    Vec<T> row[kRows];
    for (index_t r = 0; r < kRows; ++r) row[r] = load(x + r * stride + j);
    for (index_t c = 0; c < kClasses; ++c) {
      const Vec<T> line = in_register<T>(load(w + c * apart + j));
      for (index_t r = 0; r < kRows; ++r) sum[r][c] += row[r] * line;
    }
  }
  if (j < n) {
    for (index_t c = 0; c < kClasses; ++c) {
      const Vec<T> line = load(w + c * apart + j);
      for (index_t r = 0; r < kRows; ++r) sum[r][c] += load(ends + r * kWidth<T>) * line;
    }
  }
  constexpr index_t some = 16 / sizeof(T), all = (kRows * kClasses + some - 1) / some * some;
  typename Small<T>::type small[all] = {};
  for (index_t r = 0; r < kRows; ++r) {
    for (index_t c = 0; c < kClasses; ++c) small[r * kClasses + c] = folded<T>(sum[r][c]);
  }
  T totals[all];
  for (index_t i = 0; i < all; i += some) sums_of_small(small + i, totals + i);
  for (index_t r = 0; r < kRows; ++r) {
    for (index_t c = 0; c < kClasses; ++c) out[r * width + c] += totals[r * kClasses + c];
  }
}

template <class T, index_t kRows>
EIGENFEAT_INLINE void classes_along(index_t count, const T* x, index_t stride, index_t n,
                                    const T* ends, const T* w, index_t apart, index_t width,
                                    T* out) {
  for (index_t r = 0; r < 4; r += kRows) {
    const T *rows = x + r * stride, *end = ends + r * kWidth<T>;
    T* to = out + r * width;
    if (count == 1) sums_along<T, kRows, 1>(rows, stride, n, end, w, apart, width, to);
    if (count == 2) sums_along<T, kRows, 2>(rows, stride, n, end, w, apart, width, to);
    if (count == 3) sums_along<T, kRows, 3>(rows, stride, n, end, w, apart, width, to);
    if (count == 4) sums_along<T, kRows, 4>(rows, stride, n, end, w, apart, width, to);
    if (count == 5) sums_along<T, kRows, 5>(rows, stride, n, end, w, apart, width, to);
  }
}

// Features whose weights for some classes stay in the first cache.
template <class T>
constexpr index_t kFeatures = 4096 / sizeof(T);

template <class T>
void four_row_scores(const T* x, index_t stride, index_t n, const T* w, index_t apart, index_t k,
                     index_t width, T* out) {
  for (index_t i = 0; i < 4 * width; ++i) out[i] = T(0);
  for (index_t begin = 0; begin < n; begin += kFeatures<T>) {
    const index_t some = least(kFeatures<T>, n - begin), whole = some / kWidth<T> * kWidth<T>;
    alignas(64) T ends[4 * kWidth<T>] = {};
    for (index_t r = 0; r < 4; ++r) {
      for (index_t j = whole; j < some; ++j)
        ends[r * kWidth<T> + j - whole] = x[r * stride + begin + j];
    }
    for (index_t c = 0; c < k;) {
      const index_t count = even_part(k - c, 5);
      const T* lines = w + c * apart + begin;
      // Twice as many rows where the registers hold their sums.
      if (kRegisters == 32 || count <= 2) {
        classes_along<T, 4>(count, x + begin, stride, some, ends, lines, apart, width, out + c);
      } else {
        classes_along<T, 2>(count, x + begin, stride, some, ends, lines, apart, width, out + c);
      }
      c += count;
    }
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
    if (part == 1) add_panel<T, U, 1, kSparse>(x, columns, n, delta, width, w);
    if (part == 2) add_panel<T, U, 2, kSparse>(x, columns, n, delta, width, w);
    if (part == 3) add_panel<T, U, 3, kSparse>(x, columns, n, delta, width, w);
    if (part == 4) add_panel<T, U, 4, kSparse>(x, columns, n, delta, width, w);
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

EIGENFEAT_DEFINE_FAMILY(SvmKernels<float>) = {
    EIGENFEAT_TIER::kWidth<float>,          EIGENFEAT_TIER::row_scores<float>,
    EIGENFEAT_TIER::four_row_scores<float>, EIGENFEAT_TIER::add_row<float, float>,
    EIGENFEAT_TIER::add_row<float, double>, EIGENFEAT_TIER::count_row<float>,
    EIGENFEAT_TIER::sum_of_squares<float>,  EIGENFEAT_TIER::add_and_clear<float>,
    EIGENFEAT_TIER::masked_greatest<float>};
EIGENFEAT_DEFINE_FAMILY(SvmKernels<double>) = {
    EIGENFEAT_TIER::kWidth<double>,          EIGENFEAT_TIER::row_scores<double>,
    EIGENFEAT_TIER::four_row_scores<double>, EIGENFEAT_TIER::add_row<double, double>,
    EIGENFEAT_TIER::add_row<double, double>, EIGENFEAT_TIER::count_row<double>,
    EIGENFEAT_TIER::sum_of_squares<double>,  EIGENFEAT_TIER::add_and_clear<double>,
    EIGENFEAT_TIER::masked_greatest<double>};

}  // namespace eigenfeat
