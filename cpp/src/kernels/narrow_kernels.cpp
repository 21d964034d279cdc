#include "kernels/narrow_kernels.hpp"

#include "kernels/simd.hpp"

namespace eigenfeat {
namespace EIGENFEAT_TIER {

// A panel is up to kPanel neighbouring vectors of each row of X. Each of kRows rows of M has a sum
// for every vector of the panel; the sums, a row of the panel and an entry of M stay in registers.
constexpr index_t kPanel = kPerLine == 1 ? 2 : 4;

constexpr index_t rows_for(index_t vectors) {
  if (kRegisters == 32) return vectors == 1 ? 12 : vectors == 2 ? 8 : 6;
  return vectors == 1 ? 12 : vectors == 2 ? 6 : vectors == 3 ? 4 : 3;
}

// y[r] = sum over k in [begin, end) of m[r][k] x[k]; rows of x and y have the stride `apart`.
template <class T, index_t kRows, index_t kVectors>
EIGENFEAT_INLINE void multiply_rows(const T* __restrict m, index_t stride, const T* __restrict x,
                                    index_t apart, index_t begin, index_t end, T* __restrict y) {
  Vec<T> sum[kRows][kVectors] = {};
  for (index_t k = begin; k < end; ++k) {
    Vec<T> line[kVectors];
    for (index_t v = 0; v < kVectors; ++v) line[v] = load(x + k * apart + v * kWidth<T>);
    for (index_t r = 0; r < kRows; ++r) {
      const T entry = m[r * stride + k];
      for (index_t v = 0; v < kVectors; ++v) sum[r][v] += entry * line[v];
    }
  }
  for (index_t r = 0; r < kRows; ++r) {
    for (index_t v = 0; v < kVectors; ++v) store<T>(sum[r][v], y + r * apart + v * kWidth<T>);
  }
}

struct ColumnRange {
  index_t begin;
  index_t end;
};

// Columns in which rows [first, last) of a matrix of this shape may be nonzero.
EIGENFEAT_INLINE ColumnRange columns_of(Shape shape, index_t first, index_t last, index_t d) {
  if (shape == Shape::lower) return {0, last};
  if (shape == Shape::upper) return {first, d};
  return {0, d};
}

template <class T, index_t kVectors>
EIGENFEAT_INLINE void panel_rows(Shape shape, const T* m, index_t stride, index_t d, const T* x,
                                 index_t apart, index_t first, index_t last, T* y) {
  constexpr index_t kRows = rows_for(kVectors);
  index_t i = first;
  for (; i + kRows <= last; i += kRows) {
    const ColumnRange range = columns_of(shape, i, i + kRows, d);
    multiply_rows<T, kRows, kVectors>(m + i * stride, stride, x, apart, range.begin, range.end,
                                      y + i * apart);
  }
  constexpr index_t kHalf = kRows / 2;
  for (; i + kHalf <= last; i += kHalf) {
    const ColumnRange range = columns_of(shape, i, i + kHalf, d);
    multiply_rows<T, kHalf, kVectors>(m + i * stride, stride, x, apart, range.begin, range.end,
                                      y + i * apart);
  }
  for (; i < last; ++i) {
    const ColumnRange range = columns_of(shape, i, i + 1, d);
    multiply_rows<T, 1, kVectors>(m + i * stride, stride, x, apart, range.begin, range.end,
                                  y + i * apart);
  }
}

// Columns of the narrowest block, and the vectors in one of its rows.
template <class T>
inline constexpr index_t kMinColumns = kPerLine == 1 ? kWidth<T> : kLane<T> / 2;
template <class T>
inline constexpr index_t kMinVectors = kMinColumns<T> / kWidth<T>;

// Calls work(number of vectors, first column) for all columns of a block.
template <class T, index_t kMax, class F>
EIGENFEAT_INLINE void for_panels(index_t width, F&& work) {
  const index_t vectors = width / kWidth<T>;
  for (index_t v = 0; v < vectors; v += least(vectors, kMax)) {
    if constexpr (kMinVectors<T> == 1) {
      if (vectors == 1) work(Count<1>{}, v * kWidth<T>);
    }
    if constexpr (kMax > 2) {
      if (vectors == 2) work(Count<2>{}, v * kWidth<T>);
    }
    if (vectors >= kMax) work(Count<kMax>{}, v * kWidth<T>);
  }
}

template <class T>
void narrow_rows(Shape shape, index_t width, const T* m, index_t stride, index_t d, const T* x,
                 index_t first, index_t last, T* y) {
  for_panels<T, kPanel>(width, [&](auto count, index_t c) {
    panel_rows<T, count.value>(shape, m, stride, d, x + c, width, first, last, y + c);
  });
}

// y[k] += sum over rows r of m[r][k] x[r] for k in [begin, end)
template <class T, index_t kRows, index_t kVectors>
EIGENFEAT_INLINE void spread_rows(const T* __restrict m, index_t stride, const T* __restrict x,
                                  index_t apart, index_t begin, index_t end, T* __restrict y) {
  Vec<T> own[kRows][kVectors];
  for (index_t r = 0; r < kRows; ++r) {
    for (index_t v = 0; v < kVectors; ++v) own[r][v] = load(x + r * apart + v * kWidth<T>);
  }
  for (index_t k = begin; k < end; ++k) {
    Vec<T> sum[kVectors];
    for (index_t v = 0; v < kVectors; ++v) sum[v] = load(y + k * apart + v * kWidth<T>);
    for (index_t r = 0; r < kRows; ++r) {
      const T entry = m[r * stride + k];
      for (index_t v = 0; v < kVectors; ++v) sum[v] += entry * own[r][v];
    }
    for (index_t v = 0; v < kVectors; ++v) store<T>(sum[v], y + k * apart + v * kWidth<T>);
  }
}

template <class T, index_t kVectors>
EIGENFEAT_INLINE void spread_panel(Shape shape, const T* m, index_t stride, index_t n, const T* x,
                                   index_t apart, index_t first, index_t last, T* y) {
  // The rows of X, a sum and an entry of M stay in registers.
  constexpr index_t kRows = kVectors == 1 ? 8 : kVectors == 2 ? rows_for(kVectors) : kRegisters / 8;
  const auto begin = [&](index_t i) { return shape == Shape::upper && i > first ? i : first; };
  index_t i = 0;
  for (; i + kRows <= n; i += kRows) {
    spread_rows<T, kRows, kVectors>(m + i * stride, stride, x + i * apart, apart, begin(i), last,
                                    y);
  }
  for (; i < n; ++i)
    spread_rows<T, 1, kVectors>(m + i * stride, stride, x + i * apart, apart, begin(i), last, y);
}

template <class T>
void narrow_transposed(Shape shape, index_t width, const T* m, index_t stride, index_t n,
                       const T* x, index_t first, index_t last, T* y) {
  for_panels<T, kPanel>(width, [&](auto count, index_t c) {
    spread_panel<T, count.value>(shape, m, stride, n, x + c, width, first, last, y + c);
  });
}

// Rows [i, i + kRows) of a symmetric product, from the entries of M up to the end of the diagonal
// block. An entry m[r][k] to the left of this block is used twice, for rows r and k of Y.
template <class T, index_t kRows, index_t kVectors>
EIGENFEAT_INLINE void symmetric_rows(const T* __restrict m, index_t stride, const T* __restrict x,
                                     index_t apart, index_t i, T* __restrict y) {
  Vec<T> sum[kRows][kVectors] = {}, own[kRows][kVectors];
  for (index_t r = 0; r < kRows; ++r) {
    for (index_t v = 0; v < kVectors; ++v) own[r][v] = load(x + (i + r) * apart + v * kWidth<T>);
  }
  for (index_t k = 0; k < i; ++k) {
    Vec<T> line[kVectors], back[kVectors];
    for (index_t v = 0; v < kVectors; ++v) {
      line[v] = load(x + k * apart + v * kWidth<T>);
      back[v] = load(y + k * apart + v * kWidth<T>);
    }
    for (index_t r = 0; r < kRows; ++r) {
      const T entry = m[r * stride + k];
      for (index_t v = 0; v < kVectors; ++v) {
        sum[r][v] += entry * line[v];
        back[v] += entry * own[r][v];
      }
    }
    for (index_t v = 0; v < kVectors; ++v) store<T>(back[v], y + k * apart + v * kWidth<T>);
  }
  for (index_t r = 0; r < kRows; ++r) {
    for (index_t k = 0; k < kRows; ++k) {
      for (index_t v = 0; v < kVectors; ++v) sum[r][v] += m[r * stride + i + k] * own[k][v];
    }
  }
  for (index_t r = 0; r < kRows; ++r) {
    for (index_t v = 0; v < kVectors; ++v) store<T>(sum[r][v], y + (i + r) * apart + v * kWidth<T>);
  }
}

template <class T, index_t kVectors>
EIGENFEAT_INLINE void symmetric_panel(const T* m, index_t stride, index_t d, const T* x,
                                      index_t apart, T* y) {
  // Registers: kRows rows of X and their sums, a row k of X and its sum, 2 (kRows + 1) kVectors.
  constexpr index_t kRows = kRegisters == 32 ? (kVectors == 1   ? 8
                                                : kVectors == 2 ? 4
                                                                : 2)
                                             : (kVectors == 1   ? 4
                                                : kVectors == 2 ? 2
                                                                : 1);
  index_t i = 0;
  for (; i + kRows <= d; i += kRows)
    symmetric_rows<T, kRows, kVectors>(m + i * stride, stride, x, apart, i, y);
  for (; i < d; ++i) symmetric_rows<T, 1, kVectors>(m + i * stride, stride, x, apart, i, y);
}

template <class T>
void narrow_symmetric(index_t width, const T* m, index_t stride, index_t d, const T* x, T* y) {
  for_panels<T, 2>(width, [&](auto count, index_t c) {
    symmetric_panel<T, count.value>(m, stride, d, x + c, width, y + c);
  });
}

}  // namespace EIGENFEAT_TIER

EIGENFEAT_DEFINE_FAMILY(NarrowKernels<float>) = [] {
  NarrowKernels<float> table{};
  table.narrowest = EIGENFEAT_TIER::kMinColumns<float>;
  table.rows = EIGENFEAT_TIER::narrow_rows<float>;
  table.transposed = EIGENFEAT_TIER::narrow_transposed<float>;
  table.symmetric = EIGENFEAT_TIER::narrow_symmetric<float>;
  return table;
}();
EIGENFEAT_DEFINE_FAMILY(NarrowKernels<double>) = [] {
  NarrowKernels<double> table{};
  table.narrowest = EIGENFEAT_TIER::kMinColumns<double>;
  table.rows = EIGENFEAT_TIER::narrow_rows<double>;
  table.transposed = EIGENFEAT_TIER::narrow_transposed<double>;
  table.symmetric = EIGENFEAT_TIER::narrow_symmetric<double>;
  return table;
}();

}  // namespace eigenfeat
