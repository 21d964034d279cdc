// Private to local_affinity: loops over the entries of a tile, whose rows have 32 numbers.
#pragma once

#include "kernels/family.hpp"

namespace eigenfeat {

inline constexpr index_t kTileWidth = 32;  // columns of a tile

// |x|^2 of rows and reciprocals of their sigmas, on 64-byte boundaries. A row with an infinite norm
// has affinity 0 to all other rows.
struct AffinityNorms {
  const double* norms = nullptr;
  const double* inverse = nullptr;
  AffinityNorms from(index_t i) const { return {norms + i, inverse + i}; }
};

struct AffinityKernels {
  // Search for the k smallest values norms[j] - 2 tile[i, j] of every row, over several tiles:
  // minima[i, l] <- min(minima[i, l], value of column l)
  void (*lower_minima)(const double* tile, index_t n_rows, const double* norms, double* minima);
  // limits[i] <- upper bound of the k-th smallest of minima[i, .], which bounds the k-th smallest
  // value
  void (*limits_of_minima)(const double* minima, index_t n_rows, index_t k, double* limits);
  // The k smallest values of row i are a heap, the largest first; values below limits[i] are added.
  void (*add_to_nearest)(const double* tile, index_t n_rows, const double* norms,
                         const double* limits, index_t k, double* heaps);

  // tile[i, j] <- exp(min((2 tile[i, j] - norms[i] - norms[j]) inverse[i] inverse[j], 0)), 0 below
  // exp(-708). The exponential is off by less than 2 ulp (its argument's rounding aside); NaN stays
  // NaN.
  void (*affinities)(double* tile, index_t n_rows, AffinityNorms rows, AffinityNorms columns);

  // row_sums, and column_sums if not null, += sums of the tile
  void (*add_tile_sums)(const double* tile, index_t n_rows, double* row_sums, double* column_sums);

  // out[j, i] = tile[i, j] for n_rows x 32 rows i and j < n_columns; rows of out have 32 numbers
  void (*transpose_tile)(const double* tile, index_t n_columns, double* out);

  // out[j, l] = rows[l][j] for l < n_rows and 0 else; j < d; out (d, 32)
  void (*pack_transposed)(const double* x, index_t stride, index_t n_rows, index_t d, double* out);

  // z = degrees[i] x - z for rows of width numbers
  void (*laplacian_rows)(const double* x, const double* degrees, index_t n_rows, index_t width,
                         double* z);

  // out = a z + b x
  void (*weighted_sum)(double a, const double* z, double b, const double* x, index_t n,
                       double* out);
};
EIGENFEAT_FAMILY(AffinityKernels);

}  // namespace eigenfeat
