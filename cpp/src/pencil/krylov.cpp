#include "pencil/krylov.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include "base/random_block.hpp"
#include "eigenfeat/parallel.hpp"
#include "kernels/tile_kernels.hpp"
#include "pencil/narrow.hpp"

namespace eigenfeat {
namespace {

// x <- x R^-1 for a small upper triangular R and row-major x (d, n). R is inverted, because a solve
// with many right-hand sides is much slower than a product. room: d n numbers of scratch.
template <class T>
void apply_inverse(MatrixView<const T> r, index_t d, T* x, T* room) {
  const index_t n = std::min(r.rows, kMaxBlock);
  T inverse[kMaxBlock * kMaxBlock];  // row-major
  std::fill(inverse, inverse + n * n, T(0));
  for (index_t c = 0; c < n; ++c) {
    inverse[c * n + c] = T(1) / r(c, c);
    for (index_t i = c; i-- > 0;) {
      T sum = 0;
      for (index_t k = i + 1; k <= c; ++k) sum += r(i, k) * inverse[k * n + c];
      inverse[i * n + c] = -sum / r(i, i);
    }
  }
  std::copy(x, x + d * n, room);
  std::fill(x, x + d * n, T(0));
  kernels<TileKernels<T>>().scores(room, n, d, n, inverse, n, n, x);
}

constexpr index_t kMaxSweeps = 6;  // limit of the work, in bases of full capacity
// Blocks after a random block that reveal missing eigenvectors.
constexpr index_t kBlocksToWiden = 10;

}  // namespace

template <class T>
bool Krylov<T>::start(ReducedOperator<T>& reduced, const Target& target, int n_threads) {
  operator_ = &reduced;
  target_ = target;
  n_threads_ = n_threads;
  d_ = reduced.order();
  capacity_ = krylov_capacity(target.n_vectors);
  // At most as many columns as cost less than a dense solver.
  limit_ = std::min(kMaxSweeps * capacity_, capacity_ + d_ / 2);
  size_ = columns_applied_ = n_wanted_ = checked_size_ = 0;
  checked_worst_ = scale_ = 0.0;
  coupled_ = widened_ = false;
  values_.clear();
  width_ = krylov_block<T>(d_);
  next_check_ = target.first_check > 0
                    ? target.first_check
                    : std::max(target.n_vectors + 6 * width_, 4 * target.n_vectors);
  basis_.reserve(d_ * capacity_);
  basis_view_ = basis_.data();
  for (AlignedBuffer<T>* buffer : {&block_, &image_, &half_}) buffer->reserve(d_ * width_);
  projected_.reserve(capacity_ * capacity_);
  ritz_vectors_.reserve(capacity_ * capacity_);
  ritz_values_.reserve(capacity_);
  coefficients_.reserve(capacity_ * width_);
  stream_ = 1;
  if (!start_block()) return false;
  next_block();
  return true;
}

// image = W A G + G' for random G and G', G' much smaller. This costs less than M times a random
// block, and has a part in the null space of M, because eigenvalues 0 may be requested. Returns
// false if squares of the image, or of numbers that are small relative to it, overflow or vanish in
// T.
template <class T>
bool Krylov<T>::start_block() {
  constexpr double kShare = 1e-3;  // of G', relative to W A G
  const double precision = static_cast<double>(std::numeric_limits<T>::epsilon());
  const double least = std::sqrt(static_cast<double>(std::numeric_limits<T>::min()));
  operator_->random_image(width_, stream_, image_.data(), n_threads_);
  double size = 0.0;
  for (index_t i = 0; i < d_ * width_; ++i)
    size = std::max(size, std::abs(static_cast<double>(image_[i])));
  if (size > 0.0 && !(precision * size > least && least * size < precision)) return false;
  fill_random(block_.data(), d_ * width_, ++stream_);
  const T share = static_cast<T>(size > 0.0 ? kShare * size : 1.0);
  for (index_t i = 0; i < d_ * width_; ++i) image_[i] += share * block_[i];
  return true;
}

template <class T>
bool Krylov<T>::advance(double slack) {
  if (size_ + width_ > capacity_) restart();
  do {
    step();
  } while (size_ < next_check_ && size_ + width_ <= capacity_ && !exhausted());
  ritz(target_.n_vectors);
  const index_t available = std::min(target_.n_vectors, size_);
  n_wanted_ = 0;
  double worst = 0.0;
  bool complete = available == target_.n_vectors;
  for (index_t rank = 0; rank < available; ++rank) {
    const double theta = value(rank), residual = estimate(rank);
    if (theta + residual < target_.threshold) {
      complete = true;
      break;
    }
    worst = std::max(worst, residual / unit_of(theta));
    ++n_wanted_;
  }
  if (complete && worst <= slack * target_.tolerance) {
    next_check_ = size_ + width_;
    return true;
  }
  plan_next_check(worst / (slack * target_.tolerance));
  return false;
}

// Adds X to the basis, and splits M X into its part in the basis, a block column of H, and the next
// block.
template <class T>
void Krylov<T>::step() {
  check_interrupt();  // products on one thread have no regions, which check for interrupts
  const MatrixView<T> target = basis(capacity_).block(size_, 0, width_, d_);
  for (index_t i = 0; i < d_; ++i) {
    std::copy(block_.data() + i * width_, block_.data() + (i + 1) * width_, target.col(i));
  }
  size_ += width_;
  operator_->apply(block_.data(), width_, image_.data(), n_threads_);
  columns_applied_ += width_;

  T* column = projected_.data() + (size_ - width_) * capacity_;
  const index_t first = coupled_ ? 0 : std::max<index_t>(size_ - 2 * width_, 0);
  coupled_ = widened_;
  orthogonalise(image_.data(), first, column);
  for (index_t c = 0; c < width_; ++c) {
    const double own = static_cast<double>(column[c * capacity_ + size_ - width_ + c]);
    scale_ = std::max(scale_, std::abs(own));
  }
  next_block();
}

// block <- (I - Q Q^T) (I - P P^T) block, where P has the columns of Q from `first` on;
// coefficients (size, width_), with leading dimension capacity, <- Q^T block. Without BLAS, which
// would pack Q for each of the four products and take twice as long.
template <class T>
void Krylov<T>::orthogonalise(T* block, index_t first, T* coefficients) {
  constexpr index_t kRows = 128;  // rows of Q at a time, which fit the second-level cache
  const TileKernels<T>& kernel = kernels<TileKernels<T>>();
  T* part = coefficients_.data();  // (size, width_), row-major
  for (index_t c = 0; c < width_; ++c) {
    std::fill(coefficients + c * capacity_, coefficients + c * capacity_ + size_, T(0));
  }
  for (const index_t from : {first, index_t{0}}) {
    const index_t count = size_ - from;
    std::fill(part, part + count * width_, T(0));
    for (index_t i = 0; i < d_; i += kRows) {
      kernel.products(basis_view_ + i * capacity_ + from, capacity_, std::min(kRows, d_ - i), count,
                      block + i * width_, width_, width_, part);
    }
    for (index_t i = 0; i < count; ++i) {
      for (index_t c = 0; c < width_; ++c) {
        coefficients[from + i + c * capacity_] += part[i * width_ + c];
        part[i * width_ + c] = -part[i * width_ + c];
      }
    }
    kernel.scores(basis_view_ + from, capacity_, d_, count, part, width_, width_, block);
  }
}

// image = block R with orthonormal columns in block.
template <class T>
void Krylov<T>::next_block() {
  std::copy(image_.data(), image_.data() + d_ * width_, block_.data());
  if (!cholesky_qr()) careful_qr();
}

// Two rounds of Cholesky QR; returns false if the block is too close to rank deficiency.
template <class T>
bool Krylov<T>::cholesky_qr() {
  T gram[kMaxBlock * kMaxBlock], total[kMaxBlock * kMaxBlock];
  const T trusted = std::sqrt(std::numeric_limits<T>::epsilon()) * T(64);
  const MatrixView<T> x = column_major(block_.data(), width_, d_);
  for (int round = 0; round < 2; ++round) {
    const MatrixView<T> r = column_major(gram, width_, width_);
    syrk<T>(Triangle::upper, Op::none, T(1), x, T(0), r);
    if (potrf(Triangle::upper, r) != 0) return false;
    T smallest = r(0, 0), largest = r(0, 0);
    for (index_t c = 1; c < width_; ++c) {
      smallest = std::min(smallest, r(c, c));
      largest = std::max(largest, r(c, c));
    }
    const T floor = std::max(largest, static_cast<T>(scale_)) * trusted;
    if (!(smallest > (round == 0 ? floor : T(0.5)))) return false;
    apply_inverse<T>(r, d_, block_.data(), half_.data());
    if (round == 0) {
      std::copy(gram, gram + width_ * width_, total);
      continue;
    }
    // R = R_2 R_1, both upper triangular.
    for (index_t c = 0; c < width_; ++c) {
      for (index_t i = 0; i < width_; ++i) {
        T sum = 0;
        for (index_t k = i; k <= c; ++k) sum += gram[i + k * width_] * total[k + c * width_];
        triangle_[i + c * width_] = i <= c ? sum : T(0);
      }
    }
  }
  return true;
}

// Gram-Schmidt column by column, twice; a column that vanishes is replaced by a random column, with
// R(c, c) = 0.
template <class T>
void Krylov<T>::careful_qr() {
  std::copy(image_.data(), image_.data() + d_ * width_, block_.data());
  std::fill(triangle_, triangle_ + width_ * width_, T(0));
  const double negligible = 16.0 * std::sqrt(static_cast<double>(d_)) *
                            static_cast<double>(std::numeric_limits<T>::epsilon());
  for (index_t c = 0; c < width_; ++c) {
    bool replaced = false;
    for (int attempt = 0; attempt < 8; ++attempt) {
      double before = 0.0, norm = 0.0;
      for (index_t i = 0; i < d_; ++i)
        before += std::pow(static_cast<double>(block_[i * width_ + c]), 2);
      for (int round = 0; round < 2; ++round) {
        for (index_t p = 0; p < c; ++p) {
          double dot = 0.0;
          for (index_t i = 0; i < d_; ++i) {
            dot += static_cast<double>(block_[i * width_ + p]) *
                   static_cast<double>(block_[i * width_ + c]);
          }
          if (!replaced) triangle_[p + c * width_] += static_cast<T>(dot);
          for (index_t i = 0; i < d_; ++i)
            block_[i * width_ + c] -= static_cast<T>(dot) * block_[i * width_ + p];
        }
        orthogonalise_column(block_.data() + c);
      }
      for (index_t i = 0; i < d_; ++i)
        norm += std::pow(static_cast<double>(block_[i * width_ + c]), 2);
      norm = std::sqrt(norm);
      const double reference =
          replaced ? std::sqrt(before) : std::max(scale_, std::sqrt(before) * 1e-3);
      if (norm > negligible * reference && norm > 0.0) {
        if (!replaced) triangle_[c + c * width_] = static_cast<T>(norm);
        for (index_t i = 0; i < d_; ++i)
          block_[i * width_ + c] =
              static_cast<T>(static_cast<double>(block_[i * width_ + c]) / norm);
        break;
      }
      replaced = true;
      ++stream_;
      for (index_t i = 0; i < d_; ++i) {
        block_[i * width_ + c] =
            static_cast<T>(random_entry(stream_, static_cast<std::uint64_t>(i)));
      }
    }
  }
}

// column (stride width_) <- (I - Q Q^T) column
template <class T>
void Krylov<T>::orthogonalise_column(T* column) {
  if (size_ == 0) return;
  AlignedBuffer<T>& coefficients = coefficients_;
  std::fill(coefficients.data(), coefficients.data() + size_, T(0));
  for (index_t i = 0; i < d_; ++i) {
    const T* row = basis_view_ + i * capacity_;
    const T entry = column[i * width_];
    for (index_t k = 0; k < size_; ++k) coefficients[k] += entry * row[k];
  }
  for (index_t i = 0; i < d_; ++i) {
    const T* row = basis_view_ + i * capacity_;
    T sum = 0;
    for (index_t k = 0; k < size_; ++k) sum += row[k] * coefficients[k];
    column[i * width_] -= sum;
  }
}

// The extreme eigenvalues of H and at least the vectors of the largest `count`.
template <class T>
void Krylov<T>::ritz(index_t count) {
  const MatrixView<const T> h = column_major(projected_.data(), size_, size_, capacity_);
  const MatrixView<T> s = column_major(ritz_vectors_.data(), size_, size_);
  const VectorView<T> values = {ritz_values_.data(), size_};
  ritz_count_ = std::min(count, size_);
  const MatrixView<T> last = s.block(0, size_ - ritz_count_, size_, ritz_count_);
  if (!few_of(size_, ritz_count_) || !largest_.solve(h.transposed(), values, last)) {
    ritz_count_ = size_;
    for (index_t j = 0; j < size_; ++j) std::copy(h.col(j), h.col(j) + j + 1, s.col(j));
    // After a failure, estimates are NaN, which does not count as converged.
    const int info = syevd<T>(Triangle::upper, s, values, work_);
    if (info != 0) std::fill(s.data, s.data + size_ * size_, std::numeric_limits<T>::quiet_NaN());
  }
  scale_ = std::max({scale_, std::abs(static_cast<double>(ritz_values_[0])),
                     std::abs(static_cast<double>(ritz_values_[size_ - 1]))});
}

// ||R s_last|| of the Ritz pair of this rank.
template <class T>
double Krylov<T>::estimate(index_t rank) const {
  const T* s = ritz_vectors_.data() + (size_ - 1 - rank) * size_ + size_ - width_;
  double sum = 0.0;
  for (index_t i = 0; i < width_; ++i) {
    double entry = 0.0;
    for (index_t k = i; k < width_; ++k) {
      entry += static_cast<double>(triangle_[i + k * width_]) * static_cast<double>(s[k]);
    }
    sum += entry * entry;
  }
  return std::sqrt(sum);
}

// Residuals decrease about geometrically with the number of columns. The next check is one block
// before the line through the last two residuals reaches the goal, because the decrease
// accelerates. After the first check, a block is assumed to reduce residuals by a factor of ten.
template <class T>
void Krylov<T>::plan_next_check(double excess) {
  const double now = std::log10(std::max(excess, 1.0));
  const index_t line = std::max(width_, kLane<T>);
  index_t columns =
      std::min(2 * line, width_ * std::max<index_t>(1, static_cast<index_t>(std::ceil(now))));
  if (checked_size_ > 0 && checked_size_ < size_ && checked_worst_ > now) {
    const double slope = (checked_worst_ - now) / static_cast<double>(size_ - checked_size_);
    columns = width_ * static_cast<index_t>(now / slope / static_cast<double>(width_) + 0.5);
  }
  next_check_ = size_ + std::clamp(columns, width_, 6 * line);
  checked_size_ = size_;
  checked_worst_ = now;
}

// Restarts with the best Ritz vectors and the next block.
template <class T>
void Krylov<T>::restart() {
  const index_t line = std::max(width_, kLane<T>);
  const index_t kept = std::min(target_.n_vectors + 2 * line, size_ - width_);
  if (ritz_count_ < kept) ritz(kept);
  spare_.reserve(d_ * capacity_);
  const MatrixView<T> s =
      column_major(ritz_vectors_.data(), size_, size_).block(0, size_ - kept, size_, kept);
  const MatrixView<T> fresh = column_major(spare_.data(), kept, d_, capacity_);
  gemm<T>(Op::transpose, Op::none, T(1), s, basis(size_), T(0), fresh);
  for (index_t j = 0; j < kept; ++j) {
    T* column = projected_.data() + j * capacity_;
    std::fill(column, column + j, T(0));
    column[j] = ritz_values_[size_ - kept + j];
  }
  basis_.swap(spare_);
  basis_view_ = basis_.data();
  size_ = kept;
  next_check_ = std::min(size_ + 4 * line, capacity_);
  checked_size_ = 0;
  coupled_ = true;
}

template <class T>
double Krylov<T>::radius() const {
  return std::max(std::abs(value(0)), std::abs(value(size_ - 1)));
}

// Unit for the residual of this Ritz value.
template <class T>
double Krylov<T>::unit_of(double theta) const {
  return std::max({std::abs(theta), 1e-3 * radius(), std::numeric_limits<double>::min()});
}

template <class T>
bool Krylov<T>::may_have_missed(double window) const {
  const auto equal = [&](double a, double b) { return std::abs(a - b) <= window * unit_of(a); };
  bool as_before = values_.size() == n_wanted_;
  for (index_t rank = 0; as_before && rank < n_wanted_; ++rank)
    as_before = equal(values_[rank], value(rank));
  if (as_before) return false;
  // An eigenvalue that equals the smallest requested one may be missing without effect.
  for (index_t first = 0, end = 0; first < n_wanted_; first = end) {
    while (end < n_wanted_ && equal(value(first), value(end))) ++end;
    if (end - first >= width_ && end < target_.n_vectors) return true;
  }
  return false;
}

template <class T>
void Krylov<T>::widen() {
  values_.clear();
  for (index_t rank = 0; rank < n_wanted_; ++rank) values_.push_back(value(rank));
  if (size_ + kBlocksToWiden * width_ > capacity_) restart();
  fill_random(image_.data(), d_ * width_, ++stream_);
  orthogonalise(image_.data(), 0, projected_.data() + size_ * capacity_);
  next_block();
  coupled_ = widened_ = true;
  next_check_ = std::min(size_ + kBlocksToWiden * width_, capacity_);
  checked_size_ = 0;
}

template <class T>
void Krylov<T>::write_vectors(index_t first, index_t width, T* group) const {
  const index_t count = std::min(width, n_wanted_ - first);
  std::fill(group, group + width * d_, T(0));
  // Ranks are in descending and Ritz vectors in ascending order, so that columns of s are read
  // backwards.
  AlignedBuffer<T> chosen(size_ * count);
  for (index_t c = 0; c < count; ++c) {
    const T* s = ritz_vectors_.data() + (size_ - 1 - first - c) * size_;
    std::copy(s, s + size_, chosen.data() + c * size_);
  }
  gemm<T>(Op::transpose, Op::none, T(1), column_major<const T>(chosen.data(), size_, count),
          basis(size_), T(0), column_major(group, count, d_, width));
}

template class Krylov<float>;
template class Krylov<double>;

}  // namespace eigenfeat
