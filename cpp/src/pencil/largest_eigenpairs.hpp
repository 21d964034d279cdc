// Private to the pencils: the few largest eigenpairs of a dense symmetric matrix.
//
//   A = Q T Q^T,   eigenvalues of T by multisection with Sturm sequences,   vectors by inverse
//   iteration,   x = Q y.
//
// As LAPACK's syevx, with all its parts vectorised: the reduction in one pass a column, multisection
// of all wanted eigenvalues at once, and inverse iteration for eight of them at a time. In double for
// either type. Vectors of eigenvalues nearer than a tenth of ||A|| are made orthogonal; others are to ten
// times rounding by themselves, since the angle between a computed vector and its eigenspace is at
// most the residual over the gap (Parlett, The symmetric eigenvalue problem, theorem 11.7.1).
//
// Cost: 4/3 d^3 flops for T, and for each pair 2 d^2 and some hundreds of d.
#pragma once

#include "eigenfeat/scratch.hpp"
#include "eigenfeat/vector.hpp"
#include "eigenfeat/view.hpp"

namespace eigenfeat {

// Whether this is the way to `count` pairs of a matrix of order d: more of them cost more than
// LAPACK's routines take, and larger matrices are reduced faster by blocks.
inline bool few_of(index_t d, index_t count) {
  return 2 * count <= d && count <= 64 && d <= 2048;
}

class LargestEigenpairs {
 public:
  // Of the matrix whose lower triangle this is, with few_of(lower.rows, vectors.cols): the last of
  // `values` (rows) get the largest eigenvalues, ascending, the first the smallest, the others stay; and
  // the columns of `vectors` the largest ones' vectors. False, with nothing written, where the largest
  // entry is zero, not finite or near the ends of the range, or vectors are not right to rounding.
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
  // The j-th of the wanted eigenvalues of T, ascending; of -1 the smallest of all.
  double value(index_t j) const { return 0.5 * (brackets_[1 + j].low + brackets_[1 + j].high); }
  double* vector(index_t j) { return columns_.data() + j * order_; }

  index_t d_ = 0, order_ = 0;
  double unit_ = 1.0;  // of T
  struct Bracket {
    index_t below;  // of all eigenvalues, those that are less than the wanted one
    double low, high;
  };
  Vector<Bracket> brackets_;  // the smallest, and the wanted ones ascending
  AlignedBuffer<double> matrix_, scratch_, diagonal_, off_, tau_, squares_;
  AlignedBuffer<double> shifts_, counts_, factors_, lanes_, columns_;
};

}  // namespace eigenfeat
