// Private to the linear models: products of half waves with narrow matrices.
// expansion/wave_products.hpp defines the layout of coefficients and projections.
#pragma once

#include "kernels/family.hpp"

namespace eigenfeat {

inline constexpr index_t kWaves = 6;  // features of a direction: three powers of two half waves
// Rows of a tile, whose packed projections fit into the second-level cache.
inline constexpr index_t kWaveRows = 64;

// One tile of packed projections, sorted by vector of directions, then by row.
template <class T>
struct WaveTile {
  const T* packed = nullptr;
  index_t rows = 0;
  index_t lines = 0;  // vectors of directions
  bool shifted = false;
};

template <class T>
struct WaveProductKernels {
  index_t unit;  // directions in a vector
  // out (k, unit) <- from (k, n) with rows `stride` apart, padded with zeros
  void (*lay_out)(const double* from, index_t stride, index_t k, index_t n, T* out);
  // Copies a row (n) as vectors, the last one padded with zeros; in `packed`, the stride of the
  // vectors is `apart` vectors.
  void (*pack)(const T* row, index_t n, index_t apart, T* packed);
  // z (rows, width) += Phi w for k columns; sums: rows * k vectors of scratch
  void (*scores)(const WaveTile<T>& tile, const T* w, index_t k, index_t width, T* sums, T* z);
  // g += Phi^T residuals (rows, width)
  void (*products)(const WaveTile<T>& tile, const T* residuals, index_t k, index_t width, T* g);
  // sum, square (6 F) += weight wave, weight wave^2, in double, in the order of the features.
  // weights: one for each row, or null for weights of 1.
  void (*squares)(const WaveTile<T>& tile, index_t n_directions, const double* weights, double* sum,
                  double* square);
};
EIGENFEAT_FAMILY(WaveProductKernels<float>);
EIGENFEAT_FAMILY(WaveProductKernels<double>);

}  // namespace eigenfeat
