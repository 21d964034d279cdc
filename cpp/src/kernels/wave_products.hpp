// Private to the linear models: products of half waves with narrow matrices, the waves of a few
// projections made where they are multiplied, in the first-level cache, and never stored.
//
//   z (r, width)  += Phi w          g += Phi^T residuals (r, width)
//
// for the powers 1, 2, 3 of both signs of F projections, and up to 64 columns. A lane is a
// direction: a projection is of one sign only, which picks the coefficients, so that a row's scores
// cost half the multiplications, and no column is padded. Coefficients and gradients (p, k) lie by
// lines of directions: line v of wave q (sign and power) and column c at ((v 6 + q) k + c) lanes.
#pragma once

#include "eigenfeat/features.hpp"
#include "eigenfeat/view.hpp"
#include "kernels/line.hpp"

namespace eigenfeat {

inline constexpr index_t kWaves = 6;
inline constexpr index_t kWaveRows = 64;  // of a tile: packed projections stay in the second cache

// Whether these features have such products with k columns. Only on machines with AVX-512: without
// its masks, to choose coefficients by sign costs more than it saves.
template <class T>
bool has_wave_products(const FeatureRows<T>& features, index_t k);

template <class T>
index_t wave_lines(index_t n_directions) {
  return (n_directions + kLane<T> - 1) / kLane<T>;
}

// Where feature i (without the constant) and column c of k lie.
template <class T>
index_t wave_index(index_t n_directions, index_t k, index_t i, index_t c) {
  const index_t q = i / n_directions, f = i % n_directions;
  return (f / kLane<T> * kWaves + q) * k * kLane<T> + c * kLane<T> + f % kLane<T>;
}

// packed: lines by v and then by row, wave_lines(F) * rows of them, the last ones padded with zeros.
template <class T>
void pack_projections(MatrixView<const T> projections, T* packed);

// One tile of packed projections.
template <class T>
struct WaveTile {
  const T* packed = nullptr;
  index_t rows = 0;
  index_t lines = 0;
  bool shifted = false;
};

// lines: rows * k lines of scratch
void add_wave_scores(const WaveTile<float>& tile, const float* w, index_t k, index_t width,
                     float* lines, float* z);
void add_wave_scores(const WaveTile<double>& tile, const double* w, index_t k, index_t width,
                     double* lines, double* z);
void add_wave_products(const WaveTile<float>& tile, const float* residuals, index_t k,
                       index_t width, float* g);
void add_wave_products(const WaveTile<double>& tile, const double* residuals, index_t k,
                       index_t width, double* g);

// sum, square (6 F) += weight wave, weight wave^2, in double and in the features' own order;
// weights: one a row, or null for ones.
void add_wave_squares(const WaveTile<float>& tile, index_t n_directions, const double* weights,
                      double* sum, double* square);
void add_wave_squares(const WaveTile<double>& tile, index_t n_directions, const double* weights,
                      double* sum, double* square);

}  // namespace eigenfeat
