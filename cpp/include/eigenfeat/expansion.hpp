// Expansion: powers of the half waves of projections (Karampatziakis and Mineiro 2014, Algorithm 1,
// lines 6-7), fused with the projection and computed by tiles.
//
//   p = X V + offset                                              (n, F)
//   half_wave:  psi = max(0, s p)^(a/2)                           for s in {+, -}, a in powers
//   shifted:    psi = (sqrt(1 + max(0, s p)) - 1)^a               smoother at 0
//   polynomial: psi = p^a                                         for a in powers, no s
//   none:       psi = p
//
// Columns of the result: [input (d, if included) | for s in (+, -): for a in powers: F columns].
// Each task processes a tile of rows of fixed size: one gemm projects the tile into scratch that
// stays in cache, then every output column is written once. There is no full-size temporary.
// T is float or double; the result has the type of the rows. Error: a few eps relative to |X| |V|,
// as of gemm.
#pragma once

#include "eigenfeat/vector.hpp"
#include "eigenfeat/view.hpp"

namespace eigenfeat {

enum class Wave { none, half_wave, shifted, polynomial };

struct Expansion {
  Wave wave = Wave::half_wave;
  Vector<int> powers{1, 2, 3};  // each in 1..3, distinct
  bool include_input = false;
};

// Number of columns of the expansion of n_directions projections of n_features inputs.
index_t expanded_columns(const Expansion& expansion, index_t n_features, index_t n_directions);

// Throws std::invalid_argument unless powers are distinct and in 1..3, and given if the wave needs
// them.
void check_powers(const Expansion& expansion);

// rows: row-major (n, d); directions: row-major (d, F); offset: F numbers or empty;
// out: row-major (n, expanded_columns). Throws std::invalid_argument that names an argument of
// another shape.
template <class T>
void expand(MatrixView<const T> rows, MatrixView<const T> directions, VectorView<const T> offset,
            const Expansion& expansion, MatrixView<T> out, int n_threads);

template <class T>
void expand(const CsrView<T>& rows, MatrixView<const T> directions, VectorView<const T> offset,
            const Expansion& expansion, MatrixView<T> out, int n_threads);

}  // namespace eigenfeat
