// Typed LAPACK and BLAS over column-major views.
//
// Every function checks that its views are column-major and conform, calls one routine, and returns
// LAPACK's info (0: success; > 0: the numerical outcome of the routine). A negative info is a bug
// of the core and throws std::logic_error. The size of a workspace is the maximum of the query and
// the documented minimum, because some queries return too little. Only lapack.cpp names Fortran
// symbols. T is float or double.
#pragma once

#include <vector>

#include "eigenfeat/scratch.hpp"
#include "eigenfeat/view.hpp"

namespace eigenfeat {

enum class Op : char { none = 'N', transpose = 'T' };
enum class Triangle : char { lower = 'L', upper = 'U' };
enum class Side : char { left = 'L', right = 'R' };

// Work arrays of one thread, kept between calls.
template <class T>
struct LapackWork {
  AlignedBuffer<T> work;
  AlignedBuffer<int> iwork;
  AlignedBuffer<int> support;
};

// C <- alpha op(A) op(B) + beta C
template <class T>
void gemm(Op op_a, Op op_b, T alpha, MatrixView<const T> a, MatrixView<const T> b, T beta,
          MatrixView<T> c);

// One triangle of C <- alpha A A^T + beta C (Op::none) or alpha A^T A + beta C (Op::transpose)
template <class T>
void syrk(Triangle triangle, Op op, T alpha, MatrixView<const T> a, T beta, MatrixView<T> c);

// B <- alpha op(A)^-1 B (left) or alpha B op(A)^-1 (right), A triangular
template <class T>
void trsm(Side side, Triangle triangle, Op op, T alpha, MatrixView<const T> a, MatrixView<T> b);

// A = L L^T or U^T U in place; info > 0: the leading minor of that order is not positive
template <class T>
int potrf(Triangle triangle, MatrixView<T> a);

// Triangular inverse in place; info > 0: that diagonal entry is zero
template <class T>
int trtri(Triangle triangle, MatrixView<T> a);

// A <- L^-1 A L^-T (lower) with B = L L^T
template <class T>
int sygst(Triangle triangle, MatrixView<T> a, MatrixView<const T> b_factor);

// All eigenpairs of A v = lambda B v, ascending; A becomes V with V^T B V = I, B its Cholesky
// factor. info > n: B is not positive definite
template <class T>
int sygvd(Triangle triangle, MatrixView<T> a, MatrixView<T> b, VectorView<T> eigenvalues,
          LapackWork<T>& work);

// All eigenpairs of A, ascending; A becomes V
template <class T>
int syevd(Triangle triangle, MatrixView<T> a, VectorView<T> eigenvalues, LapackWork<T>& work);

// A = Q T Q^T with T tridiagonal: the diagonal of T, its n - 1 off-diagonal entries, and the
// reflectors of Q, stored in A below (lower) or above (upper) these entries, with their n - 1
// factors tau
template <class T>
int sytrd(Triangle triangle, MatrixView<T> a, VectorView<T> diagonal, VectorView<T> off,
          VectorView<T> tau, LapackWork<T>& work);

// Eigenpairs first..last (0-based, inclusive, ascending order) of A, which is destroyed
template <class T>
int syevr_range(Triangle triangle, MatrixView<T> a, index_t first, index_t last,
                VectorView<T> eigenvalues, MatrixView<T> vectors, LapackWork<T>& work);

}  // namespace eigenfeat
