// Private to the pencils: the few largest eigenpairs of a dense symmetric matrix.
//
//   A = Q T Q^T,   eigenvalues of T by multisection with Sturm sequences,   vectors by inverse
//   iteration,   x = Q y.
//
// These are the steps of LAPACK's syevx, vectorised: the reduction in one pass for each column,
// multisection of all requested eigenvalues together, and inverse iteration for eight eigenvalues
// at a time. Computed in double for either type. Vectors of eigenvalues closer than a tenth of
// ||A|| are orthogonalised; other vectors are orthogonal up to ten times the rounding error,
// because the angle between a computed vector and its eigenspace is at most the residual over the gap
// (Parlett, The symmetric eigenvalue problem, theorem 11.7.1).
//
// Cost: 4/3 d^3 flops for T, and for each pair 2 d^2 and some hundreds of d flops.
#pragma once

#include "eigenfeat/scratch.hpp"
#include "eigenfeat/vector.hpp"
#include "eigenfeat/view.hpp"

namespace eigenfeat {

// Whether this method is used for `count` pairs of a matrix of order d: for more pairs, LAPACK is
// faster, and larger matrices are reduced faster by blocks.
inline bool few_of(index_t d, index_t count) {
  return 2 * count <= d && count <= 64 && d <= 2048;
}

class LargestEigenpairs {
 public:
  // Largest eigenpairs of the matrix with this lower triangle; few_of(lower.rows, vectors.cols)
  // must be true.
  // The last entries of `values` (rows) <- largest eigenvalues, ascending; the first entry <-
  // smallest eigenvalue; the others are unchanged. The columns of `vectors` <- eigenvectors.
  // Returns false, and writes nothing, if the largest entry is zero, not finite or near the limits
  // of the type, or if vectors are not accurate to rounding.
  template <class T>
  bool solve(MatrixView<const T> lower, VectorView<T> values, MatrixView<T> vectors);

 private:
  void reduce();
  void bisect(index_t count);
  void narrow();
  bool iterate(index_t count);
  void orthogonalise(index_t count);
  bool is_accurate(index_t j) const;
  template <class F>
  void for_columns(index_t groups, F&& work);
  // Requested eigenvalue j of T, ascending; for j = -1, the smallest of all eigenvalues.
  double value(index_t j) const { return 0.5 * (brackets_[1 + j].low + brackets_[1 + j].high); }
  double* vector(index_t j) { return columns_.data() + j * order_; }

  index_t d_ = 0, order_ = 0;
  double unit_ = 1.0;  // divisor of T
  struct Bracket {
    index_t below;  // number of eigenvalues less than the requested eigenvalue
    double low, high;
  };
  Vector<Bracket> brackets_;  // of the smallest, then of the requested eigenvalues, ascending
  AlignedBuffer<double> matrix_, scratch_, diagonal_, off_, tau_, squares_;
  AlignedBuffer<double> shifts_, counts_, factors_, lanes_, columns_;
};

}  // namespace eigenfeat
