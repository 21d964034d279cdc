// Scores of four dense rows, for passes of the multiclass SVM over all rows.
#include "kernels/svm_pass_kernels.hpp"

#include "kernels/simd.hpp"

namespace eigenfeat {
namespace EIGENFEAT_TIER {

// Four rows share every line of w that is read.
template <class T, index_t kVectors>
EIGENFEAT_INLINE void four_panel(const T* __restrict x, index_t stride, index_t n,
                                 const T* __restrict w, index_t width, T* __restrict out) {
  Vec<T> sum[4][kVectors] = {};
  for (index_t j = 0; j < n; ++j) {
    Vec<T> line[kVectors];
    for (index_t v = 0; v < kVectors; ++v) line[v] = load(w + j * width + v * kWidth<T>);
    for (index_t r = 0; r < 4; ++r) {
      const T entry = x[r * stride + j];
      for (index_t v = 0; v < kVectors; ++v) sum[r][v] += entry * line[v];
    }
  }
  for (index_t r = 0; r < 4; ++r) {
    for (index_t v = 0; v < kVectors; ++v) store<T>(sum[r][v], out + r * width + v * kWidth<T>);
  }
}

template <class T>
void four_row_scores_by_feature(const T* x, index_t stride, index_t n, const T* w, index_t width,
                                T* out) {
  index_t vectors = width / kWidth<T>;
  while (vectors > 0) {
    const index_t part = even_part(vectors, kMaxVectors), step = part * kWidth<T>;
    with_count<kMaxVectors>(part,
                            [&](auto c) { four_panel<T, c.value>(x, stride, n, w, width, out); });
    w += step;
    out += step;
    vectors -= part;
  }
}

// Keeps a vector that is used more than once in a register. Compilers would read it again for each
// use, but the speed of these loops is limited by loads.
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

// out[i] <- sum of the numbers of v[i], for as many v as a small vector has numbers.
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

// The sum of the parts of a vector, in a fixed order.
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

// Products of kRows rows and kClasses classes in vectors of features, without padding of classes.
// ends: the numbers of each row after its last whole vector, followed by zeros; classes are
// followed by zeros, too.
template <class T, index_t kRows, index_t kClasses>
EIGENFEAT_INLINE void sums_along(const T* __restrict x, index_t stride, index_t n,
                                 const T* __restrict ends, const T* __restrict w, index_t apart,
                                 index_t width, T* __restrict out) {
  Vec<T> sum[kRows][kClasses] = {};
  index_t j = 0;
  for (; j + kWidth<T> <= n; j += kWidth<T>) {
    // The smaller set, rows or classes, is loaded first and stays in registers.
    if constexpr (kClasses < kRows) {
      Vec<T> line[kClasses];
      for (index_t c = 0; c < kClasses; ++c) line[c] = in_register<T>(load(w + c * apart + j));
      for (index_t r = 0; r < kRows; ++r) {
        const Vec<T> row = in_register<T>(load(x + r * stride + j));
        for (index_t c = 0; c < kClasses; ++c) sum[r][c] += row * line[c];
      }
    } else {
      Vec<T> row[kRows];
      for (index_t r = 0; r < kRows; ++r) row[r] = in_register<T>(load(x + r * stride + j));
      for (index_t c = 0; c < kClasses; ++c) {
        const Vec<T> line = in_register<T>(load(w + c * apart + j));
        for (index_t r = 0; r < kRows; ++r) sum[r][c] += row[r] * line;
      }
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

// One line of weights for four rows; kParts partial sums of each row hide the latency of an addition.
template <class T>
EIGENFEAT_INLINE void sums_of_one(const T* __restrict x, index_t stride, index_t n,
                                  const T* __restrict ends, const T* __restrict w, index_t width,
                                  T* __restrict out) {
  constexpr index_t kParts = kRegisters == 32 ? 4 : 2, step = kParts * kWidth<T>;
  Vec<T> sum[4][kParts] = {};
  index_t j = 0;
  for (; j + step <= n; j += step) {
    for (index_t s = 0; s < kParts; ++s) {
      const Vec<T> line = in_register<T>(load(w + j + s * kWidth<T>));
      for (index_t r = 0; r < 4; ++r) sum[r][s] += load(x + r * stride + j + s * kWidth<T>) * line;
    }
  }
  for (; j + kWidth<T> <= n; j += kWidth<T>) {
    const Vec<T> line = load(w + j);
    for (index_t r = 0; r < 4; ++r) sum[r][0] += load(x + r * stride + j) * line;
  }
  if (j < n) {
    const Vec<T> line = load(w + j);
    for (index_t r = 0; r < 4; ++r) sum[r][0] += load(ends + r * kWidth<T>) * line;
  }
  typename Small<T>::type small[4];
  for (index_t r = 0; r < 4; ++r) {
    for (index_t s = 1; s < kParts; ++s) sum[r][0] += sum[r][s];
    small[r] = folded<T>(sum[r][0]);
  }
  constexpr index_t some = 16 / sizeof(T);
  T totals[4];
  for (index_t r = 0; r < 4; r += some) sums_of_small(small + r, totals + r);
  for (index_t r = 0; r < 4; ++r) out[r * width] += totals[r];
}

template <class T, index_t kRows>
EIGENFEAT_INLINE void classes_along(index_t count, const T* x, index_t stride, index_t n,
                                    const T* ends, const T* w, index_t apart, index_t width,
                                    T* out) {
  for (index_t r = 0; r < 4; r += kRows) {
    const T *rows = x + r * stride, *end = ends + r * kWidth<T>;
    T* to = out + r * width;
    with_count<3>(count - 2, [&](auto c) {
      sums_along<T, kRows, c.value + 2>(rows, stride, n, end, w, apart, width, to);
    });
  }
}

// With 16 registers, three classes and four rows are fastest; remaining classes are processed with
// two rows, each line in a separate pass.
EIGENFEAT_INLINE index_t classes_together(index_t left, index_t k) {
  if (k <= 2) return 1;
  if (kRegisters == 32 || !kFused) return even_part(left, 5);
  return left == 4 || left == 5 ? left : 3;
}

// If few lanes are padding, sums with one class in each lane are faster, because they need no sum
// across lanes at the end of a row. The shares are measured. One vector of AVX2 has too few sums to
// hide the latency of an addition, and vectors of 16 bytes gain nothing.
template <class T>
bool is_by_feature(index_t k) {
  const index_t width = (k + kWidth<T> - 1) / kWidth<T> * kWidth<T>;
  if (EIGENFEAT_VECTOR_BYTES == 64) return 16 * k >= 15 * width;
  if (EIGENFEAT_VECTOR_BYTES == 32) return 6 * k >= 5 * width && width > kWidth<T>;
  return false;
}

// Number of features whose weights, for a group of classes, stay in the first-level cache.
template <class T>
constexpr index_t kFeatures = 4096 / sizeof(T);

template <class T>
void four_row_scores_by_class(const T* x, index_t stride, index_t n, const T* w, index_t apart,
                              index_t k, index_t width, T* out) {
  for (index_t i = 0; i < 4 * width; ++i) out[i] = T(0);
  for (index_t begin = 0; begin < n; begin += kFeatures<T>) {
    const index_t some = least(kFeatures<T>, n - begin), whole = some / kWidth<T> * kWidth<T>;
    alignas(64) T ends[4 * kWidth<T>] = {};
    for (index_t r = 0; r < 4; ++r) {
      for (index_t j = whole; j < some; ++j)
        ends[r * kWidth<T> + j - whole] = x[r * stride + begin + j];
    }
    for (index_t c = 0; c < k;) {
      const index_t count = classes_together(k - c, k);
      const T* lines = w + c * apart + begin;
      // Twice as many rows if their sums fit the registers.
      if (count == 1) {
        sums_of_one(x + begin, stride, some, ends, lines, width, out + c);
      } else if (kRegisters == 32 || (kFused && count == 3)) {
        classes_along<T, 4>(count, x + begin, stride, some, ends, lines, apart, width, out + c);
      } else {
        classes_along<T, 2>(count, x + begin, stride, some, ends, lines, apart, width, out + c);
      }
      c += count;
    }
  }
}

}  // namespace EIGENFEAT_TIER

EIGENFEAT_DEFINE_FAMILY(SvmPassKernels<float>) = [] {
  SvmPassKernels<float> table{};
  table.is_by_feature = EIGENFEAT_TIER::is_by_feature<float>;
  table.four_row_scores_by_class = EIGENFEAT_TIER::four_row_scores_by_class<float>;
  table.four_row_scores_by_feature = EIGENFEAT_TIER::four_row_scores_by_feature<float>;
  return table;
}();
EIGENFEAT_DEFINE_FAMILY(SvmPassKernels<double>) = [] {
  SvmPassKernels<double> table{};
  table.is_by_feature = EIGENFEAT_TIER::is_by_feature<double>;
  table.four_row_scores_by_class = EIGENFEAT_TIER::four_row_scores_by_class<double>;
  table.four_row_scores_by_feature = EIGENFEAT_TIER::four_row_scores_by_feature<double>;
  return table;
}();

}  // namespace eigenfeat
