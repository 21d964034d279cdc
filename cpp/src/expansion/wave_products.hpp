// Private to the linear models: products of half waves with narrow matrices, the waves of a few
// projections made where they are multiplied, in the first-level cache, and never stored.
//
//   z (r, width)  += Phi w          g += Phi^T residuals (r, width)
//
// for the powers 1, 2, 3 of both signs of F projections, and up to 64 columns. A lane is a
// direction: a projection is of one sign only, which picks the coefficients, so that a row's scores
// cost half the multiplications, and no column is padded. Coefficients and gradients (p, k) lie by
// vectors of the tier's width: vector v of wave q (sign and power) and column c at ((v 6 + q) k + c).
#pragma once

#include "eigenfeat/features.hpp"
#include "kernels/wave_product_kernels.hpp"

namespace eigenfeat {

// Whether these features have such products with k columns.
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

// Where feature i (without the constant) and column c of k lie.
template <class T>
index_t wave_index(index_t n_directions, index_t k, index_t i, index_t c) {
  const index_t unit = wave_unit<T>(), q = i / n_directions, f = i % n_directions;
  return (f / unit * kWaves + q) * k * unit + c * unit + f % unit;
}

// packed: wave_lines(F) * rows vectors, by v and then by row, the last ones padded with zeros.
template <class T>
void pack_projections(MatrixView<const T> projections, T* packed);

}  // namespace eigenfeat
