// Feature rows phi(x) of linear models, computed tile by tile from samples of four kinds:
//
//   dense        phi(x) = x                          row-major (n, d)
//   sparse       phi(x) = x                          CSR (n, d)
//   projections  phi(x) = expansion of p             row-major (n, F), p = V^T x + offset
//   expanded     phi(x) = [x |] expansion of V^T x + offset, projections computed for every tile
//
// and, if `constant` is set, a last feature that is 1. The whole matrix Phi (n, p) of features is
// never formed: a tile of a few hundred rows is filled, used and overwritten. The products are
//
//   scores     Z = Phi W                   (n, k)
//   gradient   G = Phi^T R                 (p, k)
//   sums       sum_i w_i phi_i, sum_i w_i phi_i^2
//
// For k up to 64, kernels compute products and read each feature once; for larger k, gemm computes them. T
// is the type of the features and of the arithmetic within a tile; sums across tiles are double.
// Tiles and groups of tiles depend on n, p and k alone, and groups are merged in order: results are
// bit-for-bit identical for any number of threads. Cost of a product: 2 n p k flops and, with an
// expansion, n F square roots, plus n d F multiplications without stored projections.
// Errors: std::invalid_argument that names the argument.
#pragma once

#include <vector>

#include "eigenfeat/expansion.hpp"
#include "eigenfeat/scratch.hpp"
#include "eigenfeat/view.hpp"

namespace eigenfeat {

// Does not own its arrays, which must outlive this object.
template <class T>
struct FeatureRows {
  MatrixView<const T> dense;        // (n, d), or no data
  CsrView<T> sparse;                // (n, d), or no indptr
  MatrixView<const T> projections;  // (n, F), or no data
  MatrixView<const T> directions;   // (d, F) row-major, or no data
  VectorView<const T> offset;       // (F,), or empty
  Expansion expansion;              // of stored or computed projections
  bool expanded = false;            // whether there is an expansion
  bool constant = false;            // whether a last feature is 1

  index_t rows() const;
  index_t cols() const;  // p, the constant included
  index_t varying() const { return cols() - (constant ? 1 : 0); }

  // Throws std::invalid_argument if the parts do not fit each other.
  void check() const;
};

// Scratch of one thread.
template <class T>
struct TileScratch {
  AlignedBuffer<T> features;
  AlignedBuffer<T> projections;
  AlignedBuffer<T> scores;
  AlignedBuffer<T> packed;
  AlignedBuffer<T> lines;
};

// Features of rows [begin, end) without the constant, row-major: a view of the rows if the kind is
// dense, otherwise of the scratch.
template <class T>
MatrixView<const T> load_tile(const FeatureRows<T>& features, index_t begin, index_t end,
                              TileScratch<T>& scratch);

// out (n, k) row-major <- Phi W, with W (p, k) row-major.
template <class T>
void feature_scores(const FeatureRows<T>& features, MatrixView<const T> coefficients,
                    MatrixView<T> out, int n_threads);

// out (n, k) row-major <- Phi [W^T; c], with the weights W (k, p') of the features without the
// constant and the constants c (k,), empty if features have no constant: a linear model as it is
// stored.
template <class T>
void class_scores(const FeatureRows<T>& features, MatrixView<const double> weights,
                  VectorView<const double> constants, MatrixView<T> out, int n_threads);

// out (p, k) row-major <- Phi^T R, with R (n, k) row-major.
template <class T>
void feature_products(const FeatureRows<T>& features, MatrixView<const T> residuals,
                      MatrixView<double> out, int n_threads);

// sums, squares: p numbers each; weights: n nonnegative numbers or empty (all ones).
template <class T>
void feature_sums(const FeatureRows<T>& features, VectorView<const double> weights,
                  VectorView<double> sums, VectorView<double> squares, int n_threads);

}  // namespace eigenfeat
