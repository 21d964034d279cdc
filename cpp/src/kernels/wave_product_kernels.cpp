#include "kernels/wave_product_kernels.hpp"

#include "kernels/simd.hpp"

namespace eigenfeat {
namespace EIGENFEAT_TIER {

constexpr index_t kPowers = 3;  // powers of a half wave
// Numbers of rows of scores, and of columns of the narrow matrix, whose sums stay in registers.
constexpr index_t kAtOnce = kRegisters == 32 ? 4 : kFused ? 3 : 2;
constexpr index_t kColumns = kRegisters == 32 || !kFused ? 5 : 4;
constexpr index_t kProductColumns = kRegisters == 32 ? 5 : 4;  // each has three sums
// Number of vectors of directions whose coefficients stay in the first-level cache.
constexpr index_t kInCache = 4 * kPerLine;

// Packed data consists of whole vectors.
template <class T>
EIGENFEAT_INLINE const Vec<T>* line_of(const T* numbers) {
  return reinterpret_cast<const Vec<T>*>(numbers);
}

template <class T>
EIGENFEAT_INLINE Vec<T>* line_of(T* numbers) {
  return reinterpret_cast<Vec<T>*>(numbers);
}

// The three powers of the wave of |p|, as in wave_kernels.cpp.
template <bool kShifted, class T>
EIGENFEAT_INLINE void magnitudes(const T* __restrict p, T* __restrict out) {
  T* __restrict second = out + kWidth<T>, * __restrict third = out + 2 * kWidth<T>;
  for (index_t l = 0; l < kWidth<T>; ++l) {
    const T u = magnitude(p[l]);
    const T a = kShifted ? u / (square_root(T(1) + u) + T(1)) : square_root(u);
    out[l] = a;
    second[l] = kShifted ? a * a : u;
    third[l] = kShifted ? a * a * a : a * u;
  }
}

// The waves of one line of directions, row by row: three powers of each sign.
template <bool kShifted, class T>
EIGENFEAT_INLINE void wave_line(const T* packed, index_t rows, T* __restrict waves) {
  using V = Vec<T>;
  const V zero = {};
  alignas(64) T powers[kPowers * kWidth<T>];
  for (index_t r = 0; r < rows; ++r) {
    magnitudes<kShifted>(packed + r * kWidth<T>, powers);
    const V p = line_of(packed)[r];
    V* out = line_of(waves) + r * kWaves;
    for (index_t a = 0; a < kPowers; ++a) {
      const V power = line_of(static_cast<const T*>(powers))[a];
      out[a] = p < T(0) ? zero : power;  // NaN gives NaN for both signs
      out[kPowers + a] = p > T(0) ? zero : power;
    }
  }
}

// With few registers, a mask for each row and a selection for each product cost more than products
// with the zero waves of the other sign. All six waves are then multiplied.
constexpr bool kBySign = kRegisters == 32;
constexpr index_t kStored = kBySign ? kPowers : kWaves;

// sums (kRows rows of k lines) += waves of a range of lines of directions times kCount columns
template <class T, index_t kRows, index_t kCount>
EIGENFEAT_INLINE void score_rows([[maybe_unused]] const T* packed, [[maybe_unused]] index_t apart,
                                 const T* waves, index_t lines, const T* w, index_t k, T* sums) {
  using V = Vec<T>;
  V sum[kRows][kCount];
  for (index_t r = 0; r < kRows; ++r) {
    for (index_t c = 0; c < kCount; ++c) sum[r][c] = line_of(sums)[r * k + c];
  }
  for (index_t v = 0; v < lines; ++v) {
    const V* up = line_of(w) + v * kWaves * k;
    const V* wave = line_of(waves) + v * kRows * kStored;
    if constexpr (kBySign) {
      const V* projections = line_of(packed) + v * apart;
      const V* down = up + kPowers * k;
      for (index_t a = 0; a < kPowers; ++a) {
        for (index_t c = 0; c < kCount; ++c) {
          const V positive = up[a * k + c], negative = down[a * k + c];
          for (index_t r = 0; r < kRows; ++r)
            sum[r][c] += wave[r * kPowers + a] * (projections[r] < T(0) ? negative : positive);
        }
      }
    } else {
      for (index_t q = 0; q < kWaves; ++q) {
        V of_row[kRows];
        for (index_t r = 0; r < kRows; ++r) of_row[r] = wave[r * kWaves + q];
        for (index_t c = 0; c < kCount; ++c) {
          const V coefficient = up[q * k + c];
          for (index_t r = 0; r < kRows; ++r) sum[r][c] += of_row[r] * coefficient;
        }
      }
    }
  }
  for (index_t r = 0; r < kRows; ++r) {
    for (index_t c = 0; c < kCount; ++c) line_of(sums)[r * k + c] = sum[r][c];
  }
}

template <class T, index_t kRows>
EIGENFEAT_INLINE void score_columns(index_t count, const T* packed, index_t apart, const T* waves,
                                    index_t lines, const T* w, index_t k, T* sums) {
  with_count<kColumns>(count, [&](auto c) {
    score_rows<T, kRows, c.value>(packed, apart, waves, lines, w, k, sums);
  });
}

template <bool kShifted, class T, index_t kRows>
EIGENFEAT_INLINE void scores_of_rows(const WaveTile<T>& tile, index_t r, index_t v, index_t lines,
                                     const T* w, index_t k, T* sums) {
  alignas(64) T waves[kInCache * kRows * kStored * kWidth<T>];
  const T* packed = tile.packed + (v * tile.rows + r) * kWidth<T>;
  for (index_t i = 0; i < lines; ++i) {
    const T* from = packed + i * tile.rows * kWidth<T>;
    T* to = waves + i * kRows * kStored * kWidth<T>;
    if constexpr (kBySign) {
      for (index_t row = 0; row < kRows; ++row)
        magnitudes<kShifted>(from + row * kWidth<T>, to + row * kPowers * kWidth<T>);
    } else {
      wave_line<kShifted>(from, kRows, to);
    }
  }
  for (index_t c = 0; c < k;) {
    const index_t count = even_part(k - c, kColumns);
    score_columns<T, kRows>(count, packed, tile.rows, waves, lines,
                            w + (v * kWaves * k + c) * kWidth<T>, k,
                            sums + (r * k + c) * kWidth<T>);
    c += count;
  }
}

template <bool kShifted, class T>
EIGENFEAT_INLINE void scores(const WaveTile<T>& tile, const T* w, index_t k, index_t width,
                             T* __restrict sums, T* __restrict z) {
  for (index_t i = 0; i < tile.rows * k * kWidth<T>; ++i) sums[i] = T(0);
  for (index_t v = 0; v < tile.lines; v += kInCache) {
    const index_t lines = least(kInCache, tile.lines - v);
    index_t r = 0;
    for (; r + kAtOnce <= tile.rows; r += kAtOnce)
      scores_of_rows<kShifted, T, kAtOnce>(tile, r, v, lines, w, k, sums);
    for (; r < tile.rows; ++r) scores_of_rows<kShifted, T, 1>(tile, r, v, lines, w, k, sums);
  }
  for (index_t r = 0; r < tile.rows; ++r) {
    for (index_t c = 0; c < k; ++c) {
      const T* __restrict line = sums + (r * k + c) * kWidth<T>;
      T total = T(0);
      for (index_t l = 0; l < kWidth<T>; ++l) total += line[l];
      z[r * width + c] += total;
    }
  }
}

// g (lines of one sign, kCount columns) += waves of this sign times residuals
template <class T, index_t kCount>
EIGENFEAT_INLINE void product_lines(const T* waves, index_t rows, const T* residuals, index_t width,
                                    index_t k, T* g) {
  using V = Vec<T>;
  V sum[kPowers][kCount];
  for (index_t a = 0; a < kPowers; ++a) {
    for (index_t c = 0; c < kCount; ++c) sum[a][c] = line_of(g)[a * k + c];
  }
  for (index_t r = 0; r < rows; ++r) {
    const V* wave = line_of(waves) + r * kWaves;
    V power[kPowers];
    for (index_t a = 0; a < kPowers; ++a) power[a] = wave[a];
    for (index_t c = 0; c < kCount; ++c) {
      const T residual = residuals[r * width + c];
      for (index_t a = 0; a < kPowers; ++a) sum[a][c] += power[a] * residual;
    }
  }
  for (index_t a = 0; a < kPowers; ++a) {
    for (index_t c = 0; c < kCount; ++c) line_of(g)[a * k + c] = sum[a][c];
  }
}

template <class T>
EIGENFEAT_INLINE void product_columns(index_t count, const T* waves, index_t rows,
                                      const T* residuals, index_t width, index_t k, T* g) {
  with_count<kProductColumns>(
      count, [&](auto c) { product_lines<T, c.value>(waves, rows, residuals, width, k, g); });
}

template <bool kShifted, class T>
EIGENFEAT_INLINE void products(const WaveTile<T>& tile, const T* residuals, index_t k,
                               index_t width, T* g) {
  alignas(64) T waves[kWaveRows * kWaves * kWidth<T>];
  for (index_t v = 0; v < tile.lines; ++v) {
    wave_line<kShifted>(tile.packed + v * tile.rows * kWidth<T>, tile.rows, waves);
    for (index_t sign = 0; sign < 2; ++sign) {
      for (index_t c = 0; c < k;) {
        const index_t count = even_part(k - c, kProductColumns);
        product_columns(count, waves + sign * kPowers * kWidth<T>, tile.rows, residuals + c, width,
                        k, g + ((v * 2 + sign) * kPowers * k + c) * kWidth<T>);
        c += count;
      }
    }
  }
}

// Weighted sums, over the rows, of one wave of a line of directions, and of its squares.
template <class T>
EIGENFEAT_INLINE void line_squares(const T* waves, index_t rows, const double* weights,
                                   double* __restrict sum, double* __restrict square) {
  for (index_t l = 0; l < kWidth<T>; ++l) sum[l] = square[l] = 0.0;
  for (index_t r = 0; r < rows; ++r) {
    const T* __restrict wave = waves + r * kWaves * kWidth<T>;
    const double weight = weights == nullptr ? 1.0 : weights[r];
    for (index_t l = 0; l < kWidth<T>; ++l) {
      const double value = static_cast<double>(wave[l]), weighted = weight * value;
      sum[l] += weighted;
      square[l] += weighted * value;
    }
  }
}

template <bool kShifted, class T>
EIGENFEAT_INLINE void squares(const WaveTile<T>& tile, index_t n_directions, const double* weights,
                              double* sum, double* square) {
  alignas(64) T waves[kWaveRows * kWaves * kWidth<T>];
  alignas(64) double first[kWidth<T>];
  alignas(64) double second[kWidth<T>];
  for (index_t v = 0; v < tile.lines; ++v) {
    wave_line<kShifted>(tile.packed + v * tile.rows * kWidth<T>, tile.rows, waves);
    const index_t used = least(kWidth<T>, n_directions - v * kWidth<T>);
    for (index_t q = 0; q < kWaves; ++q) {
      line_squares(waves + q * kWidth<T>, tile.rows, weights, first, second);
      const index_t at = q * n_directions + v * kWidth<T>;
      for (index_t l = 0; l < used; ++l) {
        sum[at + l] += first[l];
        square[at + l] += second[l];
      }
    }
  }
}

template <class T>
void wave_scores(const WaveTile<T>& tile, const T* w, index_t k, index_t width, T* sums, T* z) {
  if (tile.shifted) {
    scores<true>(tile, w, k, width, sums, z);
  } else {
    scores<false>(tile, w, k, width, sums, z);
  }
}

template <class T>
void lay_out(const double* from, index_t stride, index_t k, index_t n, T* __restrict out) {
  for (index_t c = 0; c < k; ++c) {
    const double* row = from + c * stride;
    T* __restrict to = out + c * kWidth<T>;
    if (n == kWidth<T>) {
      for (index_t l = 0; l < kWidth<T>; ++l) to[l] = static_cast<T>(row[l]);
    } else {
      for (index_t l = 0; l < kWidth<T>; ++l) to[l] = l < n ? static_cast<T>(row[l]) : T(0);
    }
  }
}

template <class T>
void pack(const T* __restrict row, index_t n, index_t apart, T* __restrict packed) {
  for (; n >= kWidth<T>; n -= kWidth<T>) {
    for (index_t l = 0; l < kWidth<T>; ++l) packed[l] = row[l];
    row += kWidth<T>;
    packed += apart * kWidth<T>;
  }
  for (index_t l = 0; n > 0 && l < kWidth<T>; ++l) packed[l] = l < n ? row[l] : T(0);
}

template <class T>
void wave_products(const WaveTile<T>& tile, const T* residuals, index_t k, index_t width, T* g) {
  if (tile.shifted) {
    products<true>(tile, residuals, k, width, g);
  } else {
    products<false>(tile, residuals, k, width, g);
  }
}

template <class T>
void wave_squares(const WaveTile<T>& tile, index_t n_directions, const double* weights, double* sum,
                  double* square) {
  if (tile.shifted) {
    squares<true>(tile, n_directions, weights, sum, square);
  } else {
    squares<false>(tile, n_directions, weights, sum, square);
  }
}

}  // namespace EIGENFEAT_TIER

EIGENFEAT_DEFINE_FAMILY(WaveProductKernels<float>) = [] {
  WaveProductKernels<float> table{};
  table.unit = EIGENFEAT_TIER::kWidth<float>;
  table.lay_out = EIGENFEAT_TIER::lay_out<float>;
  table.pack = EIGENFEAT_TIER::pack<float>;
  table.scores = EIGENFEAT_TIER::wave_scores<float>;
  table.products = EIGENFEAT_TIER::wave_products<float>;
  table.squares = EIGENFEAT_TIER::wave_squares<float>;
  return table;
}();
EIGENFEAT_DEFINE_FAMILY(WaveProductKernels<double>) = [] {
  WaveProductKernels<double> table{};
  table.unit = EIGENFEAT_TIER::kWidth<double>;
  table.lay_out = EIGENFEAT_TIER::lay_out<double>;
  table.pack = EIGENFEAT_TIER::pack<double>;
  table.scores = EIGENFEAT_TIER::wave_scores<double>;
  table.products = EIGENFEAT_TIER::wave_products<double>;
  table.squares = EIGENFEAT_TIER::wave_squares<double>;
  return table;
}();

}  // namespace eigenfeat
