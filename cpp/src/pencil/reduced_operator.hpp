// Private to the pencils: the operator of the Krylov solver, M = W A W^T with W = L^-1, in the
// coordinates that matter.
//
// A row of B is coupled where it has an entry beside the diagonal; there W is the inverse of a
// Cholesky factor, elsewhere 1 / sqrt(diagonal). A row of A is supported where it has any entry. A
// coordinate that is neither is an eigenvector of its own, with eigenvalue 0. So M is kept on the
// coupled coordinates, then the supported ones among the others, then as many of the rest as pairs are
// wanted: zeros may be among the largest eigenvalues, where A is not positive semidefinite.
#pragma once

#include <cstdint>

#include "eigenfeat/scratch.hpp"
#include "eigenfeat/vector.hpp"
#include "pencil/compact_matrix.hpp"
#include "pencil/factor.hpp"

namespace eigenfeat {

template <class T>
class ReducedOperator {
 public:
  // A and the factor, ready for solves, outlive the operator. At least `least` coordinates, or
  // all.
  void prepare(const CompactMatrix<T>& a, const Factor<T>& factor, index_t n_vectors,
               index_t least);

  // For the two products below alone, with any factor.
  void prepare_products(MatrixView<const T> a, const Factor<T>& factor);

  index_t order() const { return coordinates_.size(); }

  // y <- M x and v <- W^T u, v in the coordinates of A; blocks as multiply_narrow takes them, of one
  // width from prepare to prepare.
  void apply(const T* x, index_t width, T* y, int n_threads);
  void back(const T* u, index_t width, T* v, int n_threads);

  // y <- W A g, for a random block g: what M makes of W^-T g, without the first solve.
  void random_image(index_t width, std::uint64_t stream, T* y, int n_threads);

  // For v in the coordinates of A: A v and (B + diag(shifts)) v
  void numerator(const T* v, index_t width, T* av, int n_threads);
  void denominator(const T* v, index_t width, T* bv, int n_threads);

 private:
  void scale_rest(const T* x, index_t width, T* y) const;
  void product(const CompactMatrix<T>& matrix, const T* v, index_t width, T* out, int n_threads);

  const Factor<T>* factor_ = nullptr;
  CompactMatrix<T> own_;  // of prepare_products
  const CompactMatrix<T>* a_ = nullptr;
  bool in_order_ = true;          // coordinates are those of A, all of them
  Vector<index_t> coordinates_;   // of A, for each of the operator
  Vector<index_t> supported_at_;  // of the operator, for each row of the compact A
  Vector<T> scale_;               // 1 / sqrt(diagonal) of coordinates that are not coupled
  AlignedBuffer<T> first_, second_;
};

}  // namespace eigenfeat
