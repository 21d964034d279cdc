#include "pencil/pencil_item.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "eigenfeat/vector.hpp"

namespace eigenfeat {
namespace {

// The residual is computed when the Ritz estimate is below this multiple of the tolerance; the
// estimate exceeds the residual by a factor of up to sqrt(||B||) ||v||, often a hundred.
constexpr double kEstimateFactor = 128.0;

}  // namespace

template <class T>
void ItemSolver<T>::solve(MatrixView<const T> a, const CompactMatrix<T>* compact,
                          const Factor<T>& factor, const PencilOptions& options, int n_threads,
                          ItemResult<T>& result) {
  a_ = a;
  factor_ = &factor;
  n_threads_ = n_threads;
  group_ = krylov_block<T>(a.rows);
  const index_t room = group_count(options.n_vectors) * group_ * a.rows;
  for (AlignedBuffer<T>* buffer : {&vectors_, &av_, &bv_}) buffer->reserve(room);
  result.solver = options.solver;
  if (options.solver == Solver::krylov) {
    if (krylov_fits(a.rows, options.n_vectors) && by_krylov(compact, options, result)) return;
    result.iterations = 0;
    result.solver = Solver::tridiagonal;
  }
  operator_.prepare_products(a, factor);
  const Status status =
      result.solver == Solver::full ? by_full(options) : by_reduction(options, result);
  result.status = status;
  if (status != Status::ok) return;
  double worst = finish(options, options.n_vectors, result);
  if (worst > options.tolerance && result.solver != Solver::full)
    worst = retry_by_full(options, worst, result);
  if (std::isinf(worst))
    result.status = Status::not_converged;
  else if (worst > options.tolerance)
    result.status = Status::inaccurate;
}

// Solves by sygvd, because the reduction to L^-1 A L^-T may lose small eigenvalues of graded
// pencils. Keeps the better of both results, and returns its largest residual.
template <class T>
double ItemSolver<T>::retry_by_full(const PencilOptions& options, double worst,
                                    ItemResult<T>& result) {
  const Vector<T> before(vectors_.data(),
                         vectors_.data() + group_count(options.n_vectors) * group_ * a_.rows);
  if (by_full(options) != Status::ok) return worst;
  const double worst_of_full = finish(options, options.n_vectors, result);
  if (worst_of_full < worst) {
    result.solver = Solver::full;
    return worst_of_full;
  }
  std::copy(before.begin(), before.end(), vectors_.data());
  return finish(options, options.n_vectors, result);
}

// Returns false if the requested pairs do not reach the tolerance within the limit of the work, or
// if numbers of the search overflow or vanish in T.
template <class T>
bool ItemSolver<T>::by_krylov(const CompactMatrix<T>* compact, const PencilOptions& options,
                              ItemResult<T>& result) {
  if (compact == nullptr) {
    compact_.read(a_, Entries::all);
    compact = &compact_;
  }
  operator_.prepare(*compact, *factor_, options.n_vectors, 2 * krylov_capacity(options.n_vectors));
  const typename Krylov<T>::Target target{options.n_vectors, options.threshold, options.tolerance,
                                          expected_columns_};
  if (!krylov_.start(operator_, target, n_threads_)) return false;
  reduced_.reserve(operator_.order() * group_);
  double slack = kEstimateFactor;
  while (!krylov_.exhausted()) {
    if (!krylov_.advance(slack)) continue;
    for (index_t group = 0; group < group_count(krylov_.n_wanted()); ++group) {
      krylov_.write_vectors(group * group_, group_, reduced_.data());
      operator_.back(reduced_.data(), group_, vectors_.data() + group * group_ * a_.rows,
                     n_threads_);
    }
    result.iterations = krylov_.columns_applied();
    if (finish(options, krylov_.n_wanted(), result) > options.tolerance) {
      slack = std::max(1.0, slack / 4.0);
    } else if (krylov_.may_have_missed(2.0 * kEstimateFactor * options.tolerance)) {
      krylov_.widen();
    } else {
      result.status = Status::ok;
      return true;
    }
  }
  return false;
}

// M = L^-1 A L^-T, the lower triangle.
template <class T>
MatrixView<T> ItemSolver<T>::reduced(MatrixView<const T> lower) {
  constexpr index_t kMaxSolvedOrder = 80;  // up to this order, two solves are faster than sygst
  const index_t d = a_.rows;
  dense_.reserve(d * d);
  const MatrixView<T> m = column_major(dense_.data(), d, d);
  for (index_t j = 0; j < d; ++j) std::copy(a_.row(j), a_.row(j) + d, m.col(j));
  if (d > kMaxSolvedOrder) {
    sygst<T>(Triangle::lower, m, lower);
  } else {
    trsm<T>(Side::left, Triangle::lower, Op::none, T(1), lower, m);
    trsm<T>(Side::right, Triangle::lower, Op::transpose, T(1), lower, m);
  }
  return m;
}

// The largest eigenpairs of M by the tridiagonal kernels or, if these fail, by syevr; v = L^-T u.
template <class T>
Status ItemSolver<T>::by_reduction(const PencilOptions& options, ItemResult<T>& result) {
  const index_t d = a_.rows, m = options.n_vectors;
  dense_vectors_.reserve(d * m);
  eigenvalues_.reserve(d);
  const VectorView<T> values = {eigenvalues_.data(), d};
  const MatrixView<T> vectors = column_major(dense_vectors_.data(), d, m);
  const MatrixView<const T> lower = whole_lower();
  const MatrixView<T> matrix = reduced(lower);
  const bool few = result.solver == Solver::tridiagonal && few_of(d, m);
  if (!few || !largest_.solve<T>(matrix, values, vectors)) {
    result.solver = Solver::subset;
    if (syevr_range<T>(Triangle::lower, matrix, d - m, d - 1, values, vectors, work_) != 0)
      return by_full(options);  // syevr may fail on clusters of equal eigenvalues
  }
  trsm<T>(Side::left, Triangle::lower, Op::transpose, T(1), lower, vectors);
  take_columns(vectors, m);
  return Status::ok;
}

// L of the whole B: L of the coupled rows, and square roots of the diagonal entries of the other
// rows.
template <class T>
MatrixView<const T> ItemSolver<T>::whole_lower() {
  if (factor_->compact.is_whole()) return factor_->lower_view();
  const index_t d = a_.rows;
  dense_b_.reserve(d * d);
  const MatrixView<T> whole = column_major(dense_b_.data(), d, d);
  std::fill(whole.data, whole.data + d * d, T(0));
  for (index_t i = 0; i < d; ++i)
    whole(i, i) = std::sqrt(factor_->matrix(i, i) + factor_->shifts[i]);
  const Vector<index_t>& rows = factor_->compact.rows();
  const MatrixView<const T> lower = factor_->lower_view();
  for (index_t k = 0; k < rows.size(); ++k) {
    for (index_t i = k; i < rows.size(); ++i) whole(rows[i], rows[k]) = lower(i, k);
  }
  return whole;
}

template <class T>
Status ItemSolver<T>::by_full(const PencilOptions& options) {
  const index_t d = a_.rows, m = options.n_vectors;
  for (AlignedBuffer<T>* buffer : {&dense_, &dense_b_}) buffer->reserve(d * d);
  eigenvalues_.reserve(d);
  const MatrixView<T> a = column_major(dense_.data(), d, d),
                      b = column_major(dense_b_.data(), d, d);
  for (index_t j = 0; j < d; ++j) {
    std::copy(a_.row(j), a_.row(j) + d, a.col(j));
    std::copy(factor_->matrix.row(j), factor_->matrix.row(j) + d, b.col(j));
    b(j, j) += factor_->shifts[j];
  }
  const int info = sygvd<T>(Triangle::lower, a, b, {eigenvalues_.data(), d}, work_);
  if (info > static_cast<int>(d)) return Status::not_positive_definite;
  if (info != 0) return Status::not_converged;
  take_columns(a.block(0, d - m, d, m), m);
  return Status::ok;
}

// Copies the last columns of an ascending column-major set into groups, in descending order.
template <class T>
void ItemSolver<T>::take_columns(MatrixView<const T> ascending, index_t n_vectors) {
  const index_t d = ascending.rows;
  std::fill(vectors_.data(), vectors_.data() + group_count(n_vectors) * group_ * d, T(0));
  for (index_t rank = 0; rank < n_vectors; ++rank) {
    const T* column = ascending.col(ascending.cols - 1 - rank);
    T* out = vectors_.data() + rank / group_ * group_ * d + rank % group_;
    for (index_t i = 0; i < d; ++i) out[i * group_] = column[i];
  }
}

// max |A_ii| / ||B||, an estimate of the size of the largest eigenvalue.
template <class T>
double ItemSolver<T>::numerator_scale() const {
  // The diagonal of a positive semidefinite A, such as moments, bounds the other entries. For other
  // matrices this is an estimate, and the largest eigenvalue is used as well.
  double largest = 0.0;
  for (index_t i = 0; i < a_.rows; ++i)
    largest = std::max(largest, std::abs(static_cast<double>(a_(i, i))));
  return largest / factor_->norm;
}

// Computes Rayleigh quotients, scales vectors, and computes residuals from A and B; returns the
// largest residual of the pairs that are kept.
template <class T>
double ItemSolver<T>::finish(const PencilOptions& options, index_t count, ItemResult<T>& result) {
  const index_t d = a_.rows;
  result.found = 0;
  if (count == 0) return 0.0;
  for (index_t group = 0; group < group_count(count); ++group) {
    const index_t at = group * group_ * d;
    operator_.numerator(vectors_.data() + at, group_, av_.data() + at, n_threads_);
    operator_.denominator(vectors_.data() + at, group_, bv_.data() + at, n_threads_);
  }
  Vector<double> lambda(count), size(lambda.size()), residual(lambda.size());
  for (index_t rank = 0; rank < count; ++rank) {
    const index_t at = rank / group_ * group_ * d + rank % group_;
    const index_t r = rank;
    double va = 0.0, vb = 0.0, vv = 0.0, rr = 0.0;
    for (index_t i = at; i < at + d * group_; i += group_) {
      const double v = static_cast<double>(vectors_[i]);
      va += v * static_cast<double>(av_[i]);
      vb += v * static_cast<double>(bv_[i]);
      vv += v * v;
    }
    lambda[r] = va / vb;
    double unit = std::numeric_limits<double>::min();  // in this unit, squares do not overflow
    for (index_t i = at; i < at + d * group_; i += group_)
      unit = std::max(unit, std::abs(static_cast<double>(av_[i])));
    for (index_t i = at; i < at + d * group_; i += group_) {
      const double entry =
          (static_cast<double>(av_[i]) - lambda[r] * static_cast<double>(bv_[i])) / unit;
      rr += entry * entry;
    }
    size[r] = std::sqrt(vb);
    residual[r] = std::sqrt(rr) / (factor_->norm * std::sqrt(vv)) * unit;
    if (!std::isfinite(lambda[r]) || !std::isfinite(residual[r]))
      return std::numeric_limits<double>::infinity();
  }
  // Rayleigh quotients of nearly equal eigenvalues may be in another order than the solver's
  // eigenvalues.
  Vector<index_t> order(lambda.size());
  std::iota(order.begin(), order.end(), index_t{0});
  std::stable_sort(order.begin(), order.end(),
                   [&](index_t a, index_t b) { return lambda[a] > lambda[b]; });
  // Residuals of tiny eigenvalues are relative to the largest eigenvalue, because no solver has
  // residuals below rounding errors, which include the errors of A v if A is much larger than its
  // largest eigenvalue suggests.
  const double rounding =
      std::sqrt(static_cast<double>(d)) * static_cast<double>(std::numeric_limits<T>::epsilon());
  const double floor =
      std::max({std::max(1e-3, rounding / kDefaultTolerance<T>) * std::abs(lambda[order[0]]),
                16.0 * rounding / kDefaultTolerance<T> * numerator_scale(),
                std::numeric_limits<double>::min()});
  double worst = 0.0;
  for (const index_t r : order) {
    const double unit = std::max(std::abs(lambda[r]), floor);
    residual[r] /= unit;
    if (lambda[r] < options.threshold) continue;
    worst = std::max(worst, residual[r]);
    write_pair(r, lambda[r], residual[r], size[r], result);
    ++result.found;
  }
  return worst;
}

// Scales v to v^T B v = 1, with a positive entry of largest magnitude.
template <class T>
void ItemSolver<T>::write_pair(index_t rank, double lambda, double residual, double norm,
                               ItemResult<T>& result) const {
  const index_t d = a_.rows, at = rank / group_ * group_ * d + rank % group_, slot = result.found;
  index_t peak = 0;
  for (index_t i = 0; i < d; ++i) {
    if (std::abs(vectors_[at + i * group_]) > std::abs(vectors_[at + peak * group_])) peak = i;
  }
  const double scale = (vectors_[at + peak * group_] < T(0) ? -1.0 : 1.0) / norm;
  T* out = result.vectors.row(slot);
  for (index_t i = 0; i < d; ++i)
    out[i] = static_cast<T>(static_cast<double>(vectors_[at + i * group_]) * scale);
  result.eigenvalues[slot] = static_cast<T>(lambda);
  result.residuals[slot] = static_cast<T>(residual);
}

template class ItemSolver<float>;
template class ItemSolver<double>;

}  // namespace eigenfeat
