// Private to the pencils: the largest eigenpairs of the reduced operator M = W A W^T, W = L^-1, by
// block Lanczos with full reorthogonalisation and thick restart (Golub and Underwood 1977; Wu and
// Simon 2000).
//
//   M Q = Q H + X R E^T,   Q^T Q = I,   H = Q^T M Q,   X orthonormal and orthogonal to Q.
//
// A Ritz pair (theta, u = Q s) has the residual ||M u - theta u|| = ||R s_last||, where s_last is
// the last block of s, so that u need not be formed. A pair has converged if its residual is below
// tolerance max(|theta|, max |Ritz value| / 1000). Pairs that are certainly below the threshold
// (theta + residual < threshold) need not converge. Each step orthogonalises against the last two
// blocks, in which M X has all its parts up to rounding, and then against all of Q. Columns of a
// block that loses rank are replaced by random columns, so that an invariant subspace, as of
// multiple eigenvalues, does not end the search.
//
// The first block is an image of random vectors, W A G, with smaller parts of small eigenvalues
// than random vectors. A small random block is added for the null space of M.
//
// If the multiplicity of an eigenvalue exceeds the width of the block, the space has only as many
// of its eigenvectors as the block has columns; the others are orthogonal to the space, and no
// residual shows that they are missing. Therefore, if at least as many requested eigenvalues as the
// block has columns are equal within the tolerance, the search continues from a random block until
// the eigenvalues no longer change.
//
// Cost: 4 d^2 flops for M times a column, 4 d m for the orthogonalisation of a column against m
// columns.
#pragma once

#include <cstdint>

#include "eigenfeat/lapack.hpp"
#include "eigenfeat/scratch.hpp"
#include "eigenfeat/vector.hpp"
#include "pencil/largest_eigenpairs.hpp"
#include "pencil/narrow.hpp"
#include "pencil/reduced_operator.hpp"

namespace eigenfeat {

inline constexpr index_t kMaxBlock = 32;  // columns of a block: one or two cache lines

// Maximum number of columns of the basis before a restart: three for each requested vector, at
// least 160, and two of the widest blocks, rounded up to blocks.
inline index_t krylov_capacity(index_t n_vectors) {
  const index_t wanted = 3 * n_vectors > 160 ? 3 * n_vectors : 160;
  return (wanted + 64 + kMaxBlock - 1) / kMaxBlock * kMaxBlock;
}

// Narrow blocks need fewer columns in total; wide blocks read the matrices less often, which is
// faster for matrices that exceed the cache.
template <class T>
index_t krylov_block(index_t d) {
  const index_t bytes = d * d * static_cast<index_t>(sizeof(T));
  if (bytes <= index_t{8} << 20) return kernels<NarrowKernels<T>>().narrowest;
  return bytes <= index_t{12} << 20 ? kLane<T> : 2 * kLane<T>;
}
// Smallest order for which there is room for the basis and a further block; a dense solver solves
// smaller problems.
inline bool krylov_fits(index_t d, index_t n_vectors) {
  return d >= krylov_capacity(n_vectors) + kMaxBlock;
}

template <class T>
class Krylov {
 public:
  struct Target {
    index_t n_vectors;
    double threshold;
    double tolerance;
    index_t first_check;  // number of columns at the first check; 0: estimated
  };

  // Starts a new search for M, which must outlive the iteration. Returns false if squares of M
  // overflow or vanish in T.
  bool start(ReducedOperator<T>& reduced, const Target& target, int n_threads);

  // Advances to the next check; returns whether the requested pairs have converged to slack times the
  // tolerance.
  bool advance(double slack);

  // Whether eigenvectors of a multiple eigenvalue may be missing among the converged pairs.
  // Eigenvalues with a relative difference below `window` count as equal.
  bool may_have_missed(double window) const;

  // Continues from a random block.
  void widen();

  bool exhausted() const { return columns_applied_ >= limit_; }
  index_t columns_applied() const { return columns_applied_; }

  // Number of requested pairs at the last check, and their vectors u from rank `first` on, row-major
  // (d, width), padded with zeros.
  index_t n_wanted() const { return n_wanted_; }
  void write_vectors(index_t first, index_t width, T* group) const;

 private:
  bool start_block();
  void step();
  void orthogonalise(T* block, index_t first, T* coefficients);
  void next_block();
  bool cholesky_qr();
  void careful_qr();
  void orthogonalise_column(T* column);
  void ritz(index_t count);
  double estimate(index_t rank) const;
  double value(index_t rank) const { return static_cast<double>(ritz_values_[size_ - 1 - rank]); }
  double radius() const;
  double unit_of(double theta) const;
  void plan_next_check(double excess);
  void restart();

  MatrixView<T> basis(index_t columns) const {
    return column_major(basis_view_, columns, d_, capacity_);
  }

  ReducedOperator<T>* operator_ = nullptr;
  Target target_{};
  int n_threads_ = 1;
  index_t d_ = 0, width_ = 0, capacity_ = 0, limit_ = 0;

  index_t size_ = 0;             // columns in the basis
  index_t columns_applied_ = 0;  // number of columns that M has multiplied
  index_t n_wanted_ = 0;
  index_t next_check_ = 0;
  index_t checked_size_ = 0;
  double checked_worst_ = 0.0;
  double scale_ = 0.0;     // lower bound of a norm of M
  bool coupled_ = false;   // whether M X may have parts in all of Q
  bool widened_ = false;   // whether M Q has parts in a block that was replaced by a random block
  Vector<double> values_;  // requested eigenvalues before the random block
  std::uint64_t stream_ = 0;

  T* basis_view_ = nullptr;
  AlignedBuffer<T> basis_;                 // Q, row-major (d, capacity)
  AlignedBuffer<T> spare_;                 // as basis_, for restarts
  AlignedBuffer<T> block_, image_, half_;  // X, M X and scratch, row-major (d, width)
  AlignedBuffer<T> projected_;             // H, column-major (capacity, capacity), upper triangle
  AlignedBuffer<T> ritz_vectors_;          // s, column-major (size, size), the largest last
  index_t ritz_count_ = 0;                 // number of computed Ritz vectors
  AlignedBuffer<T> ritz_values_;  // theta, ascending: the smallest, and those of the vectors
  AlignedBuffer<T> coefficients_;
  T triangle_[kMaxBlock * kMaxBlock] = {};  // R, column-major
  LargestEigenpairs largest_;
  LapackWork<T> work_;
};

}  // namespace eigenfeat
