#include "regions/tridiagonal_region.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include "base/vectors.hpp"
#include "base/whole_lines.hpp"
#include "kernels/line.hpp"
#include "kernels/tridiagonal_kernels.hpp"

namespace eigenfeat {
namespace {

constexpr index_t kLanes = kLane<double>;

}  // namespace

TridiagonalRegion::TridiagonalRegion(index_t d)
    : d_(d),
      order_(whole_lines<double>(d)),
      matrix_(order_ * order_),
      steps_(4 * order_),
      diagonal_(d),
      off_(d),
      tau_(d),
      pivots_(d),
      ratios_(d),
      forward_(d),
      point_(d),
      vector_(d),
      slope_(d) {}

RegionPoint TridiagonalRegion::minimise(MatrixView<const double> a, const PowerOfTwo& factor,
                                        const double* g, double radius, double* x) {
  reduce(a, factor);
  std::copy(g, g + d_, slope_.data());
  for (index_t i = 0; i + 1 < d_; ++i) reflect(i, slope_.data());
  const RegionPoint point = minimise_tridiagonal(slope_.data(), radius);
  std::copy(point_.data(), point_.data() + d_, x);
  for (index_t i = d_ - 2; i >= 0; --i) reflect(i, x);
  return point;
}

void TridiagonalRegion::reduce(MatrixView<const double> a, const PowerOfTwo& factor) {
  const MatrixView<double> copy = column_major(matrix_.data(), order_, order_);
  for (index_t j = 0; j < d_; ++j) {
    const double* from = a.row(j);  // symmetric: a row is a column
    const index_t top = j / kLanes * kLanes;
    std::transform(from + top, from + d_, copy.col(j) + top, factor);
    std::fill(copy.col(j) + d_, copy.col(j) + order_, 0.0);
  }
  if (d_ <= kPassEach) {
    for (index_t j = d_; j < order_; ++j) std::fill(copy.col(j), copy.col(j) + order_, 0.0);
    kernels<TridiagonalKernels>().reduce(matrix_.data(), d_, diagonal_.data(), off_.data(),
                                         tau_.data(), steps_.data());
  } else {
    sytrd(Triangle::lower, copy.block(0, 0, d_, d_), {diagonal_.data(), d_}, {off_.data(), d_},
          {tau_.data(), d_}, work_);
  }
  norm_ = 0.0;
  for (index_t i = 0; i < d_; ++i) {
    const double left = i > 0 ? std::fabs(off_[i - 1]) : 0.0;
    const double right = i + 1 < d_ ? std::fabs(off_[i]) : 0.0;
    norm_ = std::max(norm_, std::fabs(diagonal_[i]) + left + right);
  }
}

// x <- (I - tau v v^T) x, v = (0, ..., 0, 1, entries below the subdiagonal of column i)
void TridiagonalRegion::reflect(index_t i, double* x) const {
  const double* v = matrix_.data() + i * order_;
  const index_t rest = d_ - i - 2;
  const double along = tau_[i] * (x[i + 1] + dot(v + i + 2, x + i + 2, rest));
  x[i + 1] -= along;
  add_multiple(-along, v + i + 2, rest, x + i + 2);
}

// point = -(T - low + shift)^-1 right by L D L^T, and the sums of the secular equation.
TridiagonalRegion::Solve TridiagonalRegion::solve(const double* right, double low, double shift) {
  Solve out;
  double pivot = (diagonal_[0] - low) + shift, y = right[0];
  for (index_t i = 0;; ++i) {
    if (!(pivot > 0.0)) return out;
    pivots_[i] = pivot;
    forward_[i] = y / pivot;
    out.first += y * forward_[i];
    if (i + 1 == d_) break;
    ratios_[i] = off_[i] / pivot;
    y = right[i + 1] - ratios_[i] * y;
    pivot = (diagonal_[i + 1] - low) + shift - off_[i] * ratios_[i];
  }
  point_[d_ - 1] = -forward_[d_ - 1];
  for (index_t i = d_ - 2; i >= 0; --i) point_[i] = -forward_[i] - ratios_[i] * point_[i + 1];
  double w = 0.0;
  for (index_t i = 0; i < d_; ++i) {
    w = i == 0 ? point_[0] : point_[i] - ratios_[i - 1] * w;
    out.second += point_[i] * point_[i];
    out.third += w * w / pivots_[i];
  }
  out.positive = true;
  return out;
}

// Lower bound -defect of the eigenvalues of T - low + shift, if solve() had positive pivots only.
// With u = 2^-53, a computed pivot is the exact pivot of a matrix whose diagonal differs by 3 u
// (pivot + off ratio), for three roundings, and by 2 u (|diagonal| + |low| + shift), for the
// diagonal itself: together at most 8 u (|T| + |low| + shift), which is doubled here. Underflow
// errors are below 1e-300.
double TridiagonalRegion::defect(double low, double shift) const {
  return 8 * kRound * (norm_ + std::fabs(low) + shift) + 1e-300;
}

// Multisection, eight shifts at a time: no eigenvalue is below `low`, and at least one is below
// `high`.
void TridiagonalRegion::narrow(Bracket& bracket, int rounds) const {
  const double tiny = std::numeric_limits<double>::min() + norm_ * norm_ * 1e-290;
  for (int round = 0; round < rounds; ++round) {
    double shifts[kLanes];
    int definite[kLanes];
    const double step = (bracket.high - bracket.low) / static_cast<double>(kLanes + 1);
    for (index_t k = 0; k < kLanes; ++k)
      shifts[k] = bracket.low + step * static_cast<double>(k + 1);
    kernels<RegionKernels>().definite_at(diagonal_.data(), off_.data(), d_, tiny, shifts, definite);
    index_t k = 0;
    while (k < kLanes && definite[k] == 1) ++k;
    if (k < kLanes) bracket.high = shifts[k];
    if (k > 0) bracket.low = shifts[k - 1];
    bracket.closed = bracket.high - bracket.low <= 0.5 * kRound * norm_;
    if (bracket.closed) return;
  }
}

// vector_ <- unit lowest eigenvector, by inverse iteration from an arbitrary start.
void TridiagonalRegion::lowest_eigenvector(double low, double shift) {
  for (index_t i = 0; i < d_; ++i)
    vector_[i] = 1.0 + 0.5 * std::sin(static_cast<double>(3 * i + 1) * 1.7);
  for (int step = 0; step < 3; ++step) {
    const double size = std::sqrt(dot(vector_.data(), vector_.data(), d_));
    for (index_t i = 0; i < d_; ++i) vector_[i] /= size;
    if (step == 2 || !solve(vector_.data(), low, shift).positive) return;
    std::copy(point_.data(), point_.data() + d_, vector_.data());
  }
}

RegionPoint TridiagonalRegion::minimise_tridiagonal(const double* g, double radius) {
  RegionPoint point;
  const Solve free = solve(g, 0.0, 0.0);
  if (!free.positive) return minimise_indefinite(g, radius);
  if (free.second <= radius * radius) {
    point.defect = defect(0.0, 0.0);
    point.value = -free.first;
    return point;
  }
  newton(g, 0.0, 0.0, radius, free, point);
  return point;
}

// If |x| > radius at a lower bound of the lowest eigenvalue, the root is to its right, and the
// bound is accurate enough.
RegionPoint TridiagonalRegion::minimise_indefinite(const double* g, double radius) {
  RegionPoint point;
  const double length = std::sqrt(dot(g, g, d_));
  Bracket bracket{-norm_ * (1.0 + 8 * kRound), norm_, false};
  for (int stage = 0;; ++stage) {
    constexpr int kRounds = 4;  // of narrowing, before each attempt to solve
    constexpr int kStages = 8;  // after which an open bracket is used
    narrow(bracket, kRounds);
    // A matrix that is singular to rounding may be positive semidefinite; the multiplier then
    // starts at 0.
    const double low = std::min(bracket.low, 0.0);
    double base = 4 * kRound * norm_ + 1e-150;
    Solve at = solve(g, low, base);
    while (!at.positive) at = solve(g, low, base *= 2);
    point.shift = base;
    if (at.second > radius * radius) {
      // |x| >= |g| / (|T| - low + shift)
      const double left = length / radius * (1.0 - 1e-12) - (norm_ - low);
      if (left > base) at = solve(g, low, point.shift = left);
      newton(g, low, base, radius, at, point);
      point.hard = low < 0.0 && point.shift <= static_cast<double>(d_) * kRound * norm_;
      return point;
    }
    if (!bracket.closed && stage < kStages) continue;
    point.hard = low < 0.0;
    point.multiplier = point.hard ? base - low : 0.0;
    point.defect = defect(low, base) + (point.hard ? 0.0 : base);
    point.value = -(at.first + point.multiplier * radius * radius);
    if (point.hard) fill(g, low, base, radius);
    return point;
  }
}

// Solves |x| = radius from the left of the root, where Newton's method on 1 / |x| is monotone. A
// small step does not imply that the root is near: if a component along a nearly singular direction
// dominates, |x| decreases from far above to far below the radius within the rounding error of T,
// which moves the root by `reach`. Therefore steps are at least `reach`. The search ends if |x|
// equals the radius within the error of the equation, or if the root is between two shifts with
// distance `reach`; a multiple of the lowest eigenvector is then added to x until |x| = radius.
void TridiagonalRegion::newton(const double* g, double low, double base, double radius, Solve at,
                               RegionPoint& point) {
  const double length = std::sqrt(dot(g, g, d_));
  const double negligible = 4 * kRound * (norm_ * radius + length);
  double shift = point.shift, left = base, right = std::numeric_limits<double>::infinity();
  bool between = false;
  point.converged = false;
  for (constexpr int kMax = 200; point.iterations < kMax; ++point.iterations) {
    const double excess = (std::sqrt(at.second) - radius) / radius;
    const double step = at.second / at.third * excess;
    const double reach = 2 * kRound * (shift + norm_);
    point.converged = std::fabs(excess) <= 4 * kRound ||
                      (std::fabs(step) <= reach && std::fabs(excess) * length <= negligible);
    if (point.converged) break;
    (excess > 0.0 ? left : right) = shift;
    between = right - left <= 2 * reach;
    if (between) break;
    double next = shift + (excess > 0.0 && !(step > reach) ? reach : step);
    if (!(next > left && next < right)) next = left + 0.5 * (right - left);
    if (!std::isfinite(next)) break;
    at = solve(g, low, next);
    while (!at.positive && next < right && std::isfinite(next))
      at = solve(g, low, next = shift + 2.0 * (next - shift));
    if (!at.positive) break;
    shift = next;
  }
  if (between && shift != right) at = solve(g, low, shift = right);
  if (at.positive) point.defect = defect(low, shift);
  point.shift = shift;
  point.multiplier = shift - low;
  point.value = -(at.first + point.multiplier * radius * radius);
  if (between && at.positive) {
    fill(g, low, shift, radius);
    point.converged = true;
    return;
  }
  const double scale = radius / std::sqrt(at.second);
  for (index_t i = 0; i < d_; ++i) point_[i] *= scale;
}

// point + t vector on the sphere, on the side with the smaller value.
void TridiagonalRegion::fill(const double* g, double low, double shift, double radius) {
  lowest_eigenvector(low, shift);
  solve(g, low, shift);
  const double along = dot(point_.data(), vector_.data(), d_);
  const double inner = dot(point_.data(), point_.data(), d_);
  const double slope = dot(g, vector_.data(), d_);
  const double rest = std::max(radius * radius - inner, 0.0);
  const double root = std::sqrt(along * along + rest);
  const double step = slope > 0.0 ? -root - along : root - along;
  for (index_t i = 0; i < d_; ++i) point_[i] += step * vector_[i];
}

}  // namespace eigenfeat
