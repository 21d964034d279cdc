// Private to the pencils: the operator of the Krylov solver, M = W A W^T with W = L^-1, on a subset
// of the coordinates.
//
// A row of B is coupled if it has an off-diagonal entry. W is the inverse of a Cholesky factor in
// coupled rows, and 1 / sqrt(diagonal) in other rows. A row of A is supported if it has an entry. A
// coordinate that is neither coupled nor supported is an eigenvector with eigenvalue 0. The
// operator has the coupled coordinates, then the other supported coordinates, then as many of the
// remaining coordinates as pairs are requested, because 0 may be among the largest eigenvalues if A
// is not positive semidefinite.
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
  // A and the factor must outlive the operator; the factor is prepared for solves. The operator has
  // at least `least` coordinates, if A has as many.
  void prepare(const CompactMatrix<T>& a, const Factor<T>& factor, index_t n_vectors,
               index_t least);

  // Prepares numerator() and denominator() only; the factor need not be prepared for solves.
  void prepare_products(MatrixView<const T> a, const Factor<T>& factor);

  index_t order() const { return coordinates_.size(); }

  // y <- M x, and v <- W^T u with v in the coordinates of A. Blocks are as in multiply_narrow, with
  // one width between calls of prepare.
  void apply(const T* x, index_t width, T* y, int n_threads);
  void back(const T* u, index_t width, T* v, int n_threads);

  // y <- W A g for a random block g, which equals M (W^-T g).
  void random_image(index_t width, std::uint64_t stream, T* y, int n_threads);

  // A v and (B + diag(shifts)) v, for v in the coordinates of A
  void numerator(const T* v, index_t width, T* av, int n_threads);
  void denominator(const T* v, index_t width, T* bv, int n_threads);

 private:
  void scale_rest(const T* x, index_t width, T* y) const;
  void product(const CompactMatrix<T>& matrix, const T* v, index_t width, T* out, int n_threads);

  const Factor<T>* factor_ = nullptr;
  CompactMatrix<T> own_;  // A for prepare_products
  const CompactMatrix<T>* a_ = nullptr;
  bool in_order_ = true;          // whether the coordinates are all coordinates of A, in order
  Vector<index_t> coordinates_;   // coordinate of A for each coordinate of the operator
  Vector<index_t> supported_at_;  // coordinate of the operator for each row of the compact A
  Vector<T> scale_;               // 1 / sqrt(diagonal) of coordinates that are not coupled
  AlignedBuffer<T> first_, second_;
};

}  // namespace eigenfeat
