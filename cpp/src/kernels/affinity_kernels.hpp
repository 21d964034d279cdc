// Private to local_affinity: the loops over the entries of a tile, rows of 32 numbers each.
#pragma once

#include "kernels/family.hpp"

namespace eigenfeat {

inline constexpr index_t kTileWidth = 32;

// |x|^2 of rows and the reciprocals of their sigmas, on a line's boundary. A norm of infinity: no
// affinity to others.
struct AffinityNorms {
  const double* norms = nullptr;
  const double* inverse = nullptr;
  AffinityNorms from(index_t i) const { return {norms + i, inverse + i}; }
};

struct AffinityKernels {
  // The search for every row's k smallest values norms[j] - 2 tile[i, j], of some tiles at a time:
  // minima[i, l] <- min(minima[i, l], value of column l)
  void (*lower_minima)(const double* tile, index_t n_rows, const double* norms, double* minima);
  // limits[i] <- above the k-th smallest of minima[i, .], which is no less than that of the tiles
  void (*limits_of_minima)(const double* minima, index_t n_rows, index_t k, double* limits);
  // The k smallest values of row i so far are a heap, the largest first; those below limits[i] join.
  void (*add_to_nearest)(const double* tile, index_t n_rows, const double* norms,
                         const double* limits, index_t k, double* heaps);

  // tile[i, j] <- exp(min((2 tile[i, j] - norms[i] - norms[j]) inverse[i] inverse[j], 0)), 0 below
  // exp(-708). The exponential is off by less than 2 ulp (its argument's rounding aside); NaN stays
  // NaN.
  void (*affinities)(double* tile, index_t n_rows, AffinityNorms rows, AffinityNorms columns);

  // row_sums (and column_sums, if there are any) += those of the tile
  void (*add_tile_sums)(const double* tile, index_t n_rows, double* row_sums, double* column_sums);

  // out[j, i] = tile[i, j] for n_rows x 32 rows i and j < n_columns; out has rows of 32, too
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
