#include "kernels/tile_kernels.hpp"

#include "kernels/simd.hpp"

namespace eigenfeat {
namespace EIGENFEAT_TIER {

// Columns of the tile that are processed together; the corresponding rows of the narrow matrix stay
// in the first-level cache.
constexpr index_t kColumns = 256;

// Number of outputs whose sums stay in registers, for a panel of the given number of vectors.
constexpr index_t outputs_for(index_t vectors) {
  if (kRegisters == 32) return vectors == 1 ? 12 : vectors == 2 ? 8 : 6;
  return vectors == 1 ? 12 : vectors == 2 ? 6 : 4;
}

// Number of vectors of the next panel if `left` remain.
EIGENFEAT_INLINE index_t next_panel(index_t left) {
  if (kRegisters == 32) return left < 4 ? left : 4;
  return left <= 3 ? left : left == 4 ? 2 : 3;
}

// out[o] += sum over s of tile[o out_step + s sum_step] other[s]; rows of out and other have
// `width` numbers.
template <class T, index_t kOutputs, index_t kVectors>
EIGENFEAT_INLINE void sum_outputs(const T* __restrict tile, index_t out_step, index_t sum_step,
                                  index_t n_sum, const T* __restrict other, index_t width,
                                  T* __restrict out) {
  Vec<T> sum[kOutputs][kVectors];
  for (index_t o = 0; o < kOutputs; ++o) {
    for (index_t v = 0; v < kVectors; ++v) sum[o][v] = load(out + o * width + v * kWidth<T>);
  }
  for (index_t s = 0; s < n_sum; ++s) {
    Vec<T> line[kVectors];
    for (index_t v = 0; v < kVectors; ++v) line[v] = load(other + s * width + v * kWidth<T>);
    for (index_t o = 0; o < kOutputs; ++o) {
      const T entry = tile[o * out_step + s * sum_step];
      for (index_t v = 0; v < kVectors; ++v) sum[o][v] += entry * line[v];
    }
  }
  for (index_t o = 0; o < kOutputs; ++o) {
    for (index_t v = 0; v < kVectors; ++v) store<T>(sum[o][v], out + o * width + v * kWidth<T>);
  }
}

template <class T, index_t kVectors>
EIGENFEAT_INLINE void sum_panel(const T* tile, index_t out_step, index_t sum_step, index_t n_out,
                                index_t n_sum, const T* other, index_t width, T* out) {
  constexpr index_t kOutputs = outputs_for(kVectors);
  index_t o = 0;
  for (; o + kOutputs <= n_out; o += kOutputs)
    sum_outputs<T, kOutputs, kVectors>(tile + o * out_step, out_step, sum_step, n_sum, other, width,
                                       out + o * width);
  for (; o < n_out; ++o)
    sum_outputs<T, 1, kVectors>(tile + o * out_step, out_step, sum_step, n_sum, other, width,
                                out + o * width);
}

template <class T>
void sum_all(const T* tile, index_t out_step, index_t sum_step, index_t n_out, index_t n_sum,
             const T* other, index_t columns, index_t width, T* out) {
  for (index_t left = columns / kWidth<T>; left > 0;) {
    const index_t vectors = next_panel(left);
    with_count<kMaxVectors>(vectors, [&](auto c) {
      sum_panel<T, c.value>(tile, out_step, sum_step, n_out, n_sum, other, width, out);
    });
    other += vectors * kWidth<T>;
    out += vectors * kWidth<T>;
    left -= vectors;
  }
}

// The tail of a narrow matrix, its last columns after whole vectors, would cost as much as a
// vector. For the tail, vectors consist of columns of the tile instead. Their data is in the
// first-level cache, because the panels have just read it.
constexpr index_t kTailColumns = 5;  // columns of the tail that are processed together
// Narrow matrices of up to this width are processed as a tail.
constexpr index_t kMaxTailProducts = 12;
constexpr index_t kMinTailRows = 48;  // with fewer, packing the tail takes longer than it saves
// Rows of scores: a multiple of the outputs of every panel.
constexpr index_t kRowsAtOnce = kRegisters == 32 ? 24 : 12;
// Bytes of columns of products: a multiple of the outputs of every panel.
constexpr index_t kAtOnceBytes = 192;
constexpr index_t kPackedBytes = 4096;  // bytes of a packed column

template <class T>
inline constexpr index_t kPackedStride = kPackedBytes / static_cast<index_t>(sizeof(T)) + kLane<T>;

// Number of columns of the tail; 0 if panels are faster.
template <class T>
index_t tail_of(index_t used, index_t rows, index_t columns) {
  const index_t tail = used % kWidth<T>;
  // Vectors of four doubles with AVX2 gain nothing: there is less padding, and reading the tile
  // from memory takes longer.
  const bool serves = (kWidth<T> >= 8 || !kFused) && 4 * tail <= 3 * kWidth<T> &&
                      rows >= kMinTailRows && columns >= kWidth<T>;
  return serves ? tail : 0;
}

// The sum of kBytes of numbers; halves are added first.
template <class T, std::size_t kBytes>
EIGENFEAT_INLINE T sum_of(const T* numbers) {
  if constexpr (kBytes == sizeof(T)) {
    return *numbers;
  } else {
    constexpr std::size_t half = kBytes / 2, count = half / sizeof(T);
    if constexpr (count == 1) {
      return numbers[0] + numbers[1];
    } else {
      typedef T Half __attribute__((vector_size(half)));
      Half low, high;
      __builtin_memcpy(&low, numbers, half);
      __builtin_memcpy(&high, numbers + count, half);
      low += high;
      T parts[count];
      __builtin_memcpy(parts, &low, half);
      return sum_of<T, half>(parts);
    }
  }
}

// z (kRows, kColumns) += sums of the vectors. If this function is inlined, compilers keep none of
// the vectors in registers.
template <class T, index_t kRows, index_t kColumns>
EIGENFEAT_OUT_OF_LINE void add_sums(const T* __restrict parts, index_t width, T* __restrict z) {
  for (index_t r = 0; r < kRows; ++r) {
    for (index_t c = 0; c < kColumns; ++c)
      z[r * width + c] += sum_of<T, EIGENFEAT_VECTOR_BYTES>(parts + (r * kColumns + c) * kWidth<T>);
  }
}

// z (kRows, kColumns) += tile times packed columns: the first `vectors` vectors, and another vector
// at `last` unless `last` is negative.
template <class T, index_t kRows, index_t kColumns>
EIGENFEAT_INLINE void dot_rows(const T* __restrict tile, index_t stride, index_t vectors,
                               index_t last, const T* __restrict packed, index_t width,
                               T* __restrict z) {
  Vec<T> sum[kRows][kColumns] = {};
  const index_t all = vectors + (last < 0 ? 0 : 1);
  for (index_t v = 0; v < all; ++v) {
    const index_t at = v < vectors ? v * kWidth<T> : last;
    Vec<T> x[kRows];
    for (index_t r = 0; r < kRows; ++r) x[r] = load(tile + r * stride + at);
    for (index_t c = 0; c < kColumns; ++c) {
      const Vec<T> line = load(packed + c * kPackedStride<T> + v * kWidth<T>);
      for (index_t r = 0; r < kRows; ++r) sum[r][c] += x[r] * line;
    }
  }
  alignas(64) T parts[kRows * kColumns * kWidth<T>];
  for (index_t r = 0; r < kRows; ++r) {
    for (index_t c = 0; c < kColumns; ++c)
      store<T>(sum[r][c], parts + (r * kColumns + c) * kWidth<T>);
  }
  add_sums<T, kRows, kColumns>(parts, width, z);
}

// A range of columns of the tile, and the corresponding rows of the narrow matrix, packed by columns.
template <class T>
struct PackedTail {
  index_t vectors = 0;  // whole vectors
  index_t last = -1;    // begin of another vector, which overlaps the previous one, or -1
  alignas(64) T columns[kTailColumns * kPackedStride<T>];
};

template <class T, index_t kColumns>
EIGENFEAT_INLINE void pack_rows(const T* __restrict w, index_t width, index_t n,
                                T* __restrict columns) {
  for (index_t j = 0; j < n; ++j) {
    for (index_t c = 0; c < kColumns; ++c) columns[c * kPackedStride<T> + j] = w[j * width + c];
  }
}

template <class T>
void pack_tail(const T* w, index_t width, index_t count, index_t n, PackedTail<T>& out) {
  out.vectors = n / kWidth<T>;
  const index_t whole = out.vectors * kWidth<T>;
  out.last = whole < n ? n - kWidth<T> : -1;
  with_count<kTailColumns>(count,
                           [&](auto c) { pack_rows<T, c.value>(w, width, whole, out.columns); });
  if (out.last < 0) return;
  // Numbers that earlier vectors have are zero in the last vector.
  for (index_t c = 0; c < count; ++c) {
    for (index_t l = 0; l < kWidth<T>; ++l) {
      const index_t j = out.last + l;
      out.columns[c * kPackedStride<T> + whole + l] = j < whole ? T(0) : w[j * width + c];
    }
  }
}

template <class T, index_t kColumns>
EIGENFEAT_INLINE void add_dots(const T* tile, index_t stride, index_t rows,
                               const PackedTail<T>& tail, index_t width, T* z) {
  // Rows whose sums stay in registers.
  constexpr index_t kRows = (kColumns <= 2 ? 4 : 2) * (kRegisters == 32 ? 2 : 1);
  index_t r = 0;
  for (; r + kRows <= rows; r += kRows)
    dot_rows<T, kRows, kColumns>(tile + r * stride, stride, tail.vectors, tail.last, tail.columns,
                                 width, z + r * width);
  for (; r < rows; ++r)
    dot_rows<T, 1, kColumns>(tile + r * stride, stride, tail.vectors, tail.last, tail.columns,
                             width, z + r * width);
}

template <class T>
EIGENFEAT_INLINE void add_tail(index_t count, const T* tile, index_t stride, index_t rows,
                               const PackedTail<T>& tail, index_t width, T* z) {
  with_count<kTailColumns>(
      count, [&](auto c) { add_dots<T, c.value>(tile, stride, rows, tail, width, z); });
}

// g (kVectors vectors of rows from row `seen` on, kColumns) += tile^T residuals
template <class T, index_t kVectors, index_t kColumns>
EIGENFEAT_INLINE void product_vectors(const T* __restrict tile, index_t stride, index_t rows,
                                      const T* __restrict residuals, index_t width, index_t seen,
                                      T* __restrict g) {
  constexpr index_t apart = kVectors * kWidth<T>;
  Vec<T> sum[kVectors][kColumns] = {};
  for (index_t r = 0; r < rows; ++r) {
    if constexpr (kColumns < kVectors) {
      Vec<T> residual[kColumns];
      for (index_t c = 0; c < kColumns; ++c) residual[c] = Vec<T>{} + residuals[r * width + c];
      for (index_t v = 0; v < kVectors; ++v) {
        const Vec<T> x = load(tile + r * stride + v * kWidth<T>);
        for (index_t c = 0; c < kColumns; ++c) sum[v][c] += x * residual[c];
      }
    } else {
      Vec<T> x[kVectors];
      for (index_t v = 0; v < kVectors; ++v) x[v] = load(tile + r * stride + v * kWidth<T>);
      for (index_t c = 0; c < kColumns; ++c) {
        const T residual = residuals[r * width + c];
        for (index_t v = 0; v < kVectors; ++v) sum[v][c] += x[v] * residual;
      }
    }
  }
  alignas(64) T lines[kColumns * apart];
  for (index_t c = 0; c < kColumns; ++c) {
    for (index_t v = 0; v < kVectors; ++v) store<T>(sum[v][c], lines + c * apart + v * kWidth<T>);
  }
  for (index_t l = seen; l < apart; ++l) {
    for (index_t c = 0; c < kColumns; ++c) g[l * width + c] += lines[c * apart + l];
  }
}

// Columns [begin, end) of the `all` columns of the tile.
template <class T, index_t kColumns>
EIGENFEAT_INLINE void tail_products(const T* tile, index_t stride, index_t rows, index_t begin,
                                    index_t end, const T* residuals, index_t width, T* g) {
  constexpr index_t kVectors = kRegisters == 32 ? 3 : kColumns <= 2 ? 6 : 2;
  constexpr index_t step = kVectors * kWidth<T>;
  index_t j = begin;
  for (; j + step <= end; j += step)
    product_vectors<T, kVectors, kColumns>(tile + j, stride, rows, residuals, width, 0,
                                           g + j * width);
  for (; j < end; j += kWidth<T>) {
    // The last vector may overlap the previous one.
    const index_t first = least(j, end - kWidth<T>);
    product_vectors<T, 1, kColumns>(tile + first, stride, rows, residuals, width, j - first,
                                    g + first * width);
  }
}

template <class T>
EIGENFEAT_INLINE void tail_products(index_t count, const T* tile, index_t stride, index_t rows,
                                    index_t begin, index_t end, const T* residuals, index_t width,
                                    T* g) {
  with_count<kTailColumns>(count, [&](auto c) {
    tail_products<T, c.value>(tile, stride, rows, begin, end, residuals, width, g);
  });
}

// Rows are divided into parts that stay in the first-level cache for panels and tail.
template <class T>
EIGENFEAT_INLINE void scores_of_columns(const T* tile, index_t stride, index_t rows, index_t count,
                                        const T* w, index_t width, index_t whole, index_t used,
                                        T* z) {
  PackedTail<T> packed;
  for (index_t c = whole; c < used;) {
    const index_t taken = even_part(used - c, kTailColumns);
    pack_tail(w + c, width, taken, count, packed);
    for (index_t r = 0; r < rows; r += kRowsAtOnce) {
      const T* at = tile + r * stride;
      const index_t some = least(kRowsAtOnce, rows - r);
      if (c == whole) sum_all<T>(at, stride, 1, some, count, w, whole, width, z + r * width);
      add_tail(taken, at, stride, some, packed, width, z + r * width + c);
    }
    c += taken;
  }
}

template <class T>
void tile_scores(const T* tile, index_t stride, index_t rows, index_t columns, const T* w,
                 index_t width, index_t used, T* z) {
  const index_t tail = tail_of<T>(used, rows, columns);
  // Every block loads its sums, and packs and sums a tail. Blocks are longer if there are few
  // columns.
  const bool few = tail > 0 && used <= kMaxTailProducts;
  const index_t most = few ? kPackedBytes / static_cast<index_t>(sizeof(T)) : kColumns;
  for (index_t first = 0; first < columns;) {
    // Blocks have at least the width of a vector.
    const index_t left = columns - first;
    const index_t count = left <= most ? left : least(most, left - kWidth<T>);
    const T* at = tile + first;
    if (tail > 0) {
      scores_of_columns(at, stride, rows, count, w + first * width, width, used - tail, used, z);
    } else {
      sum_all<T>(at, stride, 1, rows, count, w + first * width, width, width, z);
    }
    first += count;
  }
}

template <class T>
void tile_products(const T* tile, index_t stride, index_t rows, index_t columns, const T* residuals,
                   index_t width, index_t used, T* g) {
  const index_t tail = tail_of<T>(used, rows, columns);
  if (tail == 0) {
    sum_all<T>(tile, 1, stride, columns, rows, residuals, width, width, g);
    return;
  }
  const index_t whole = used <= kMaxTailProducts ? 0 : used - tail;
  constexpr index_t step = kAtOnceBytes / static_cast<index_t>(sizeof(T));
  for (index_t begin = 0; begin < columns; begin += step) {
    const index_t end = least(columns, begin + step);
    sum_all<T>(tile + begin, 1, stride, end - begin, rows, residuals, whole, width,
               g + begin * width);
    // The last vector of a block may overlap the previous block.
    for (index_t c = whole; c < used;) {
      const index_t count = even_part(used - c, kTailColumns);
      tail_products<T>(count, tile, stride, rows, begin, end, residuals + c, width, g + c);
      c += count;
    }
  }
}

}  // namespace EIGENFEAT_TIER

EIGENFEAT_DEFINE_FAMILY(TileKernels<float>) = [] {
  TileKernels<float> table{};
  table.unit = EIGENFEAT_TIER::kWidth<float>;
  table.scores = EIGENFEAT_TIER::tile_scores<float>;
  table.products = EIGENFEAT_TIER::tile_products<float>;
  return table;
}();
EIGENFEAT_DEFINE_FAMILY(TileKernels<double>) = [] {
  TileKernels<double> table{};
  table.unit = EIGENFEAT_TIER::kWidth<double>;
  table.scores = EIGENFEAT_TIER::tile_scores<double>;
  table.products = EIGENFEAT_TIER::tile_products<double>;
  return table;
}();

}  // namespace eigenfeat
