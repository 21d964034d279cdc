// Private to the pencils: the largest eigenpairs of the reduced operator M = W A W^T, W = L^-1, by
// block Lanczos with full reorthogonalisation and thick restart (Golub and Underwood 1977; Wu and
// Simon 2000).
//
//   M Q = Q H + X R E^T,   Q^T Q = I,   H = Q^T M Q,   X orthonormal and orthogonal to Q.
//
// Ritz pair (theta, u = Q s) has ||M u - theta u|| = ||R s_last||, s_last the last block of s:
// known without forming u. A pair counts as converged when that is below tolerance max(|theta|, max
// |Ritz value| / 1000). Pairs that are surely below the threshold (theta + residual < threshold)
// need no convergence. Each step orthogonalises against the last two blocks, which is all that M X has
// in Q but for rounding, and then against all of Q. A block that loses rank continues with random
// columns, so that an invariant subspace found early (multiple eigenvalues) does not end the search.
//
// The first block is an image of random vectors, W A G: their parts of small eigenvalues are smaller there
// than in the vectors themselves. A small random block beside it has what M maps to zero.
//
// Of an eigenvalue that is multiple beyond the block's width the space has as many eigenvectors as
// the block has columns; the others are orthogonal to it, and no residual shows them. So where as
// many wanted eigenvalues are equal, to what the tolerance can tell, the search goes on from a random
// block until that changes nothing.
// Cost: 4 d^2 flops a column for M, 4 d m for the orthogonalisation of a column against m.
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

// The basis holds at most this many columns before a restart.
inline index_t krylov_capacity(index_t n_vectors) {
  const index_t wanted = 3 * n_vectors > 160 ? 3 * n_vectors : 160;
  return (wanted + 64 + kMaxBlock - 1) / kMaxBlock * kMaxBlock;
}

// A narrow block needs fewer columns in all; a wide one reads the matrices less often, which pays
// once they are too large for the cache.
template <class T>
index_t krylov_block(index_t d) {
  const index_t bytes = d * d * static_cast<index_t>(sizeof(T));
  if (bytes <= index_t{8} << 20) return kernels<NarrowKernels<T>>().narrowest;
  return bytes <= index_t{12} << 20 ? kLane<T> : 2 * kLane<T>;
}
// The basis and a block beside it must fit; smaller problems go to a dense solver.
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
    index_t first_check;  // columns at which to look first; 0: a guess
  };

  // Starts afresh on M, which outlives the iteration. False where M is so small or large that its
  // squares leave the range of T.
  bool start(ReducedOperator<T>& reduced, const Target& target, int n_threads);

  // Advances to the next check. True: the wanted pairs look converged to slack times the tolerance.
  bool advance(double slack);

  // Whether the wanted pairs, converged, may lack eigenvectors of a multiple eigenvalue: values nearer
  // than `window`, relative to themselves, count as equal.
  bool may_have_missed(double window) const;

  // Goes on from a random block.
  void widen();

  bool exhausted() const { return columns_applied_ >= limit_; }
  index_t columns_applied() const { return columns_applied_; }

  // How many pairs are wanted, as the last check saw it, and their vectors u: those from rank
  // `first` on, `width` columns row-major (d, width), padded with zeros.
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
  index_t columns_applied_ = 0;  // columns M was applied to
  index_t n_wanted_ = 0;
  index_t next_check_ = 0;
  index_t checked_size_ = 0;
  double checked_worst_ = 0.0;
  double scale_ = 0.0;     // a norm of M from below
  bool coupled_ = false;   // M X may have parts in all of Q
  bool widened_ = false;   // M Q has parts in a block that was left behind
  Vector<double> values_;  // the wanted ones before that block
  std::uint64_t stream_ = 0;

  T* basis_view_ = nullptr;
  AlignedBuffer<T> basis_;                 // Q, row-major (d, capacity)
  AlignedBuffer<T> spare_;                 // the same, for restarts
  AlignedBuffer<T> block_, image_, half_;  // X, M X and room, row-major (d, width)
  AlignedBuffer<T> projected_;             // H, column-major (capacity, capacity), upper triangle
  AlignedBuffer<T> ritz_vectors_;          // s, column-major (size, size), the largest last
  index_t ritz_count_ = 0;                 // of them that are there
  AlignedBuffer<T> ritz_values_;           // theta, ascending: the smallest, and those vectors'
  AlignedBuffer<T> coefficients_;
  T triangle_[kMaxBlock * kMaxBlock] = {};  // R, column-major
  LargestEigenpairs largest_;
  LapackWork<T> work_;
};

}  // namespace eigenfeat
