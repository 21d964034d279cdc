#include "kernels/wave_products.hpp"

#include <algorithm>
#include <cmath>

#include "kernels/wide.hpp"

namespace eigenfeat {
namespace {
constexpr index_t kMostColumns = 64;
}

template <class T>
bool has_wave_products(const FeatureRows<T>& features, index_t k) {
  const Expansion& expansion = features.expansion;
  const bool waves = expansion.wave == Wave::half_wave || expansion.wave == Wave::shifted;
  const index_t directions =
      features.projections.data != nullptr ? features.projections.cols : features.directions.cols;
  return has_wide() && features.expanded && waves && !expansion.include_input &&
         expansion.powers == std::vector<int>{1, 2, 3} && directions >= kLane<T> &&
         k <= kMostColumns;
}

template <class T>
void pack_projections(MatrixView<const T> projections, T* packed) {
  const index_t rows = projections.rows, n = projections.cols;
  for (index_t r = 0; r < rows; ++r) {
    const T* from = projections.row(r);
    for (index_t first = 0; first < n; first += kLane<T>) {
      T* to = packed + (first / kLane<T> * rows + r) * kLane<T>;
      const index_t count = std::min(kLane<T>, n - first);
      if (count == kLane<T>) {
        std::copy(from + first, from + first + kLane<T>, to);
      } else {
        std::copy(from + first, from + n, to);
        std::fill(to + count, to + kLane<T>, T(0));
      }
    }
  }
}

template bool has_wave_products<float>(const FeatureRows<float>&, index_t);
template bool has_wave_products<double>(const FeatureRows<double>&, index_t);
template void pack_projections<float>(MatrixView<const float>, float*);
template void pack_projections<double>(MatrixView<const double>, double*);

#ifdef EIGENFEAT_WIDE

namespace {

constexpr index_t kPowers = 3;
constexpr index_t kAtOnce = 4;   // rows of scores, whose sums stay in registers
constexpr index_t kInCache = 4;  // lines of directions whose coefficients stay in the first cache
constexpr index_t kColumns = 5;  // of the narrow matrix, likewise

template <class T>
using LineOf = typename Line<T>::type;

template <class T>
EIGENFEAT_INLINE const LineOf<T>* line_of(const T* numbers) {
  return reinterpret_cast<const LineOf<T>*>(numbers);
}

template <class T>
EIGENFEAT_INLINE LineOf<T>* line_of(T* numbers) {
  return reinterpret_cast<LineOf<T>*>(numbers);
}

// The three powers of the wave of |p|, as in wave_kernels.cpp.
template <bool kShifted, class T>
EIGENFEAT_INLINE void magnitudes(const T* __restrict p, T* __restrict out) {
  T* __restrict second = out + kLane<T>, * __restrict third = out + 2 * kLane<T>;
  for (index_t l = 0; l < kLane<T>; ++l) {
    const T u = std::abs(p[l]);
    const T a = kShifted ? u / (std::sqrt(T(1) + u) + T(1)) : std::sqrt(u);
    out[l] = a;
    second[l] = kShifted ? a * a : u;
    third[l] = kShifted ? a * a * a : a * u;
  }
}

// sums (kRows rows of k lines) += waves of some lines of directions times kCount columns
template <class T, index_t kRows, index_t kCount>
EIGENFEAT_INLINE void score_rows(const T* packed, index_t apart, const T* waves, index_t lines,
                                 const T* w, index_t k, T* sums) {
  using V = LineOf<T>;
  V sum[static_cast<std::size_t>(kRows)][static_cast<std::size_t>(kCount)];
  for (index_t r = 0; r < kRows; ++r) {
    for (index_t c = 0; c < kCount; ++c) sum[r][c] = line_of(sums)[r * k + c];
  }
  for (index_t v = 0; v < lines; ++v) {
    const V* projections = line_of(packed) + v * apart;
    const V* up = line_of(w) + v * kWaves * k;
    const V* down = up + kPowers * k;
    const V* wave = line_of(waves) + v * kRows * kPowers;
    for (index_t a = 0; a < kPowers; ++a) {
      for (index_t c = 0; c < kCount; ++c) {
        const V positive = up[a * k + c], negative = down[a * k + c];
        for (index_t r = 0; r < kRows; ++r)
          sum[r][c] += wave[r * kPowers + a] * (projections[r] < T(0) ? negative : positive);
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
  if (count == 1) score_rows<T, kRows, 1>(packed, apart, waves, lines, w, k, sums);
  if (count == 2) score_rows<T, kRows, 2>(packed, apart, waves, lines, w, k, sums);
  if (count == 3) score_rows<T, kRows, 3>(packed, apart, waves, lines, w, k, sums);
  if (count == 4) score_rows<T, kRows, 4>(packed, apart, waves, lines, w, k, sums);
  if (count == 5) score_rows<T, kRows, 5>(packed, apart, waves, lines, w, k, sums);
}

// Columns from c on to be taken together: what is left in even parts.
EIGENFEAT_INLINE index_t next_columns(index_t c, index_t k) {
  const index_t parts = (k - c + kColumns - 1) / kColumns;
  return (k - c + parts - 1) / parts;
}

template <bool kShifted, class T, index_t kRows>
EIGENFEAT_INLINE void scores_of_rows(const WaveTile<T>& tile, index_t r, index_t v, index_t lines,
                                     const T* w, index_t k, T* sums) {
  alignas(64) T waves[static_cast<std::size_t>(kInCache * kRows * kPowers * kLane<T>)];
  const T* packed = tile.packed + (v * tile.rows + r) * kLane<T>;
  for (index_t i = 0; i < lines; ++i) {
    for (index_t row = 0; row < kRows; ++row)
      magnitudes<kShifted>(packed + (i * tile.rows + row) * kLane<T>,
                           waves + (i * kRows + row) * kPowers * kLane<T>);
  }
  for (index_t c = 0; c < k;) {
    const index_t count = next_columns(c, k);
    score_columns<T, kRows>(count, packed, tile.rows, waves, lines,
                            w + (v * kWaves * k + c) * kLane<T>, k, sums + (r * k + c) * kLane<T>);
    c += count;
  }
}

template <bool kShifted, class T>
EIGENFEAT_INLINE void scores(const WaveTile<T>& tile, const T* w, index_t k, index_t width,
                             T* __restrict sums, T* __restrict z) {
  std::fill(sums, sums + tile.rows * k * kLane<T>, T(0));
  for (index_t v = 0; v < tile.lines; v += kInCache) {
    const index_t lines = std::min(kInCache, tile.lines - v);
    index_t r = 0;
    for (; r + kAtOnce <= tile.rows; r += kAtOnce)
      scores_of_rows<kShifted, T, kAtOnce>(tile, r, v, lines, w, k, sums);
    for (; r < tile.rows; ++r) scores_of_rows<kShifted, T, 1>(tile, r, v, lines, w, k, sums);
  }
  for (index_t r = 0; r < tile.rows; ++r) {
    for (index_t c = 0; c < k; ++c) {
      const T* __restrict line = sums + (r * k + c) * kLane<T>;
      T total = T(0);
      for (index_t l = 0; l < kLane<T>; ++l) total += line[l];
      z[r * width + c] += total;
    }
  }
}

// The waves of one line of directions, by row: three powers of each sign.
template <bool kShifted, class T>
EIGENFEAT_INLINE void wave_line(const T* packed, index_t rows, T* __restrict waves) {
  using V = LineOf<T>;
  const V zero = {};
  alignas(64) T powers[static_cast<std::size_t>(kPowers * kLane<T>)];
  for (index_t r = 0; r < rows; ++r) {
    magnitudes<kShifted>(packed + r * kLane<T>, powers);
    const V p = line_of(packed)[r];
    V* out = line_of(waves) + r * kWaves;
    for (index_t a = 0; a < kPowers; ++a) {
      const V power = line_of(static_cast<const T*>(powers))[a];
      out[a] = p < T(0) ? zero : power;  // of a NaN both are one
      out[kPowers + a] = p > T(0) ? zero : power;
    }
  }
}

// g (one sign's lines of kCount columns) += its waves times residuals
template <class T, index_t kCount>
EIGENFEAT_INLINE void product_lines(const T* waves, index_t rows, const T* residuals, index_t width,
                                    index_t k, T* g) {
  using V = LineOf<T>;
  V sum[static_cast<std::size_t>(kPowers)][static_cast<std::size_t>(kCount)];
  for (index_t a = 0; a < kPowers; ++a) {
    for (index_t c = 0; c < kCount; ++c) sum[a][c] = line_of(g)[a * k + c];
  }
  for (index_t r = 0; r < rows; ++r) {
    const V* wave = line_of(waves) + r * kWaves;
    V power[static_cast<std::size_t>(kPowers)];
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
  if (count == 1) product_lines<T, 1>(waves, rows, residuals, width, k, g);
  if (count == 2) product_lines<T, 2>(waves, rows, residuals, width, k, g);
  if (count == 3) product_lines<T, 3>(waves, rows, residuals, width, k, g);
  if (count == 4) product_lines<T, 4>(waves, rows, residuals, width, k, g);
  if (count == 5) product_lines<T, 5>(waves, rows, residuals, width, k, g);
}

template <bool kShifted, class T>
EIGENFEAT_INLINE void products(const WaveTile<T>& tile, const T* residuals, index_t k,
                               index_t width, T* g) {
  alignas(64) T waves[static_cast<std::size_t>(kWaveRows * kWaves * kLane<T>)];
  for (index_t v = 0; v < tile.lines; ++v) {
    wave_line<kShifted>(tile.packed + v * tile.rows * kLane<T>, tile.rows, waves);
    for (index_t sign = 0; sign < 2; ++sign) {
      for (index_t c = 0; c < k;) {
        const index_t count = next_columns(c, k);
        product_columns(count, waves + sign * kPowers * kLane<T>, tile.rows, residuals + c, width,
                        k, g + ((v * 2 + sign) * kPowers * k + c) * kLane<T>);
        c += count;
      }
    }
  }
}

// One wave's moments over the rows, of a line of directions.
template <class T>
EIGENFEAT_INLINE void line_squares(const T* waves, index_t rows, const double* weights,
                                   double* __restrict sum, double* __restrict square) {
  for (index_t l = 0; l < kLane<T>; ++l) sum[l] = square[l] = 0.0;
  for (index_t r = 0; r < rows; ++r) {
    const T* __restrict wave = waves + r * kWaves * kLane<T>;
    const double weight = weights == nullptr ? 1.0 : weights[r];
    for (index_t l = 0; l < kLane<T>; ++l) {
      const double value = static_cast<double>(wave[l]), weighted = weight * value;
      sum[l] += weighted;
      square[l] += weighted * value;
    }
  }
}

template <bool kShifted, class T>
EIGENFEAT_INLINE void squares(const WaveTile<T>& tile, index_t n_directions, const double* weights,
                              double* sum, double* square) {
  alignas(64) T waves[static_cast<std::size_t>(kWaveRows * kWaves * kLane<T>)];
  alignas(64) double first[static_cast<std::size_t>(kLane<T>)];
  alignas(64) double second[static_cast<std::size_t>(kLane<T>)];
  for (index_t v = 0; v < tile.lines; ++v) {
    wave_line<kShifted>(tile.packed + v * tile.rows * kLane<T>, tile.rows, waves);
    const index_t used = std::min(kLane<T>, n_directions - v * kLane<T>);
    for (index_t q = 0; q < kWaves; ++q) {
      line_squares(waves + q * kLane<T>, tile.rows, weights, first, second);
      const index_t at = q * n_directions + v * kLane<T>;
      for (index_t l = 0; l < used; ++l) {
        sum[at + l] += first[l];
        square[at + l] += second[l];
      }
    }
  }
}

}  // namespace

EIGENFEAT_WIDE
void add_wave_scores(const WaveTile<float>& tile, const float* w, index_t k, index_t width,
                     float* lines, float* z) {
  if (tile.shifted) {
    scores<true>(tile, w, k, width, lines, z);
  } else {
    scores<false>(tile, w, k, width, lines, z);
  }
}
EIGENFEAT_WIDE
void add_wave_scores(const WaveTile<double>& tile, const double* w, index_t k, index_t width,
                     double* lines, double* z) {
  if (tile.shifted) {
    scores<true>(tile, w, k, width, lines, z);
  } else {
    scores<false>(tile, w, k, width, lines, z);
  }
}
EIGENFEAT_WIDE
void add_wave_products(const WaveTile<float>& tile, const float* residuals, index_t k,
                       index_t width, float* g) {
  if (tile.shifted) {
    products<true>(tile, residuals, k, width, g);
  } else {
    products<false>(tile, residuals, k, width, g);
  }
}
EIGENFEAT_WIDE
void add_wave_products(const WaveTile<double>& tile, const double* residuals, index_t k,
                       index_t width, double* g) {
  if (tile.shifted) {
    products<true>(tile, residuals, k, width, g);
  } else {
    products<false>(tile, residuals, k, width, g);
  }
}
EIGENFEAT_WIDE
void add_wave_squares(const WaveTile<float>& tile, index_t n_directions, const double* weights,
                      double* sum, double* square) {
  if (tile.shifted) {
    squares<true>(tile, n_directions, weights, sum, square);
  } else {
    squares<false>(tile, n_directions, weights, sum, square);
  }
}
EIGENFEAT_WIDE
void add_wave_squares(const WaveTile<double>& tile, index_t n_directions, const double* weights,
                      double* sum, double* square) {
  if (tile.shifted) {
    squares<true>(tile, n_directions, weights, sum, square);
  } else {
    squares<false>(tile, n_directions, weights, sum, square);
  }
}

#else  // never called

void add_wave_scores(const WaveTile<float>&, const float*, index_t, index_t, float*, float*) {}
void add_wave_scores(const WaveTile<double>&, const double*, index_t, index_t, double*, double*) {}
void add_wave_products(const WaveTile<float>&, const float*, index_t, index_t, float*) {}
void add_wave_products(const WaveTile<double>&, const double*, index_t, index_t, double*) {}
void add_wave_squares(const WaveTile<float>&, index_t, const double*, double*, double*) {}
void add_wave_squares(const WaveTile<double>&, index_t, const double*, double*, double*) {}

#endif

}  // namespace eigenfeat
