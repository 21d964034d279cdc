// Private to the linear models: products of half waves with narrow matrices. Waves are computed from
// projections during multiplication and never stored.
//
//   z (r, width)  += Phi w          g += Phi^T residuals (r, width)
//
// for the powers 1, 2, 3 of both signs of F projections, and up to 64 columns. Each lane has a
// direction. The sign of a projection selects the coefficients, because the wave of the other sign
// is zero: scores take half of the multiplications, and columns need no padding. Coefficients and
// gradients (p, k) are stored in vectors of the tier's width: vector v of wave q (sign and power)
// and column c is at (v 6 + q) k + c.
#pragma once

#include "eigenfeat/features.hpp"
#include "kernels/wave_product_kernels.hpp"

namespace eigenfeat {

// Whether products of these features with k columns are computed in this way.
template <class T>
bool has_wave_products(const FeatureRows<T>& features, index_t k);

template <class T>
index_t wave_unit() {
  return kernels<WaveProductKernels<T>>().unit;
}

template <class T>
index_t wave_lines(index_t n_directions) {
  return (n_directions + wave_unit<T>() - 1) / wave_unit<T>();
}

// Index of the number of feature i (not the constant) in column c of k.
template <class T>
index_t wave_index(index_t n_directions, index_t k, index_t i, index_t c) {
  const index_t unit = wave_unit<T>(), q = i / n_directions, f = i % n_directions;
  return (f / unit * kWaves + q) * k * unit + c * unit + f % unit;
}

// packed: wave_lines(F) * rows vectors, sorted by v, then by row; the last vectors are padded with
// zeros.
template <class T>
void pack_projections(MatrixView<const T> projections, T* packed);

}  // namespace eigenfeat
