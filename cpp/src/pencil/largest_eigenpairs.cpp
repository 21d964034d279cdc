#include "pencil/largest_eigenpairs.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include "base/random_block.hpp"
#include "base/vectors.hpp"
#include "base/whole_lines.hpp"
#include "kernels/line.hpp"
#include "kernels/tridiagonal_kernels.hpp"

namespace eigenfeat {
namespace {

constexpr index_t kLine = kLane<double>;
constexpr index_t kShiftsPerSweep = 32;  // with AVX-512, 32 shifts take little longer than eight
constexpr double kEpsilon = std::numeric_limits<double>::epsilon();
constexpr double kMinOffDiagonal = 1e-20;  // smallest entry of T, ||T|| < 1; below rounding errors
constexpr double kOrthogonalGap = 0.1;     // vectors of closer eigenvalues are orthogonalised
// Distance from an eigenvalue to the shift of its inverse iteration. Eigenvalues that are equal to
// rounding have about equal distances, so that different starts give different vectors of their
// eigenspace.
constexpr double kShiftDistance = 2 * kEpsilon;

}  // namespace

template <class T>
bool LargestEigenpairs::solve(MatrixView<const T> lower, VectorView<T> values,
                              MatrixView<T> vectors) {
  d_ = lower.rows;
  order_ = whole_lines<double>(d_);
  const index_t count = vectors.cols;
  double largest = 0.0;
  bool finite = true;
  matrix_.reserve(order_ * order_);
  for (index_t j = 0; j < d_; ++j) {
    double* column = matrix_.data() + j * order_;
    const index_t top = j / kLine * kLine;
    for (index_t i = top; i < d_; ++i) {
      const double entry = static_cast<double>(i < j ? lower(j, i) : lower(i, j));
      column[i] = entry;
      largest = std::max(largest, std::abs(entry));
      finite = finite && std::isfinite(entry);
    }
    std::fill(column + d_, column + order_, 0.0);
  }
  // Within these bounds the scale and its inverse are normal numbers.
  if (!finite || !(largest > 1e-250 && largest < 1e250)) return false;
  const double scale = std::ldexp(1.0, -std::ilogb(largest) - 1);
  for (index_t j = 0; j < d_; ++j) {
    double* column = matrix_.data() + j * order_;
    for (index_t i = j / kLine * kLine; i < d_; ++i) column[i] *= scale;
  }
  std::fill(matrix_.data() + d_ * order_, matrix_.data() + order_ * order_, 0.0);
  reduce();
  unit_ /= scale;
  bisect(count);
  if (!iterate(count)) return false;
  values[0] = static_cast<T>(value(-1) * unit_);
  for (index_t j = 0; j < count; ++j) values[d_ - count + j] = static_cast<T>(value(j) * unit_);
  for (index_t j = 0; j < count; ++j) {
    const double* from = lanes_.data() + j / kLine * d_ * kLine + j % kLine;
    for (index_t i = 0; i < d_; ++i) vectors(i, j) = static_cast<T>(from[i * kLine]);
  }
  return true;
}

// Scales T such that ||T|| < 1.
void LargestEigenpairs::reduce() {
  for (AlignedBuffer<double>* buffer : {&diagonal_, &off_, &tau_, &squares_}) buffer->reserve(d_);
  scratch_.reserve(4 * order_);
  kernels<TridiagonalKernels>().reduce(matrix_.data(), d_, diagonal_.data(), off_.data(),
                                       tau_.data(), scratch_.data());
  double norm = 0.0;  // largest sum of magnitudes of a row
  for (index_t i = 0; i < d_; ++i) {
    const double left = i > 0 ? std::abs(off_[i - 1]) : 0.0;
    const double right = i + 1 < d_ ? std::abs(off_[i]) : 0.0;
    norm = std::max(norm, std::abs(diagonal_[i]) + left + right);
  }
  unit_ = std::ldexp(1.0, std::ilogb(norm) + 1);
  for (index_t i = 0; i < d_; ++i) diagonal_[i] /= unit_;
  for (index_t i = 0; i + 1 < d_; ++i) {
    off_[i] = std::copysign(std::max(std::abs(off_[i] / unit_), kMinOffDiagonal), off_[i]);
    squares_[i] = off_[i] * off_[i];
  }
}

// Narrows the brackets to rounding errors.
void LargestEigenpairs::bisect(index_t count) {
  constexpr int kSweeps = 64;  // a point halves its bracket; 54 sweeps suffice
  brackets_.clear();
  brackets_.push_back({0, -1.0, 1.0});
  for (index_t j = d_ - count; j < d_; ++j) brackets_.push_back({j, -1.0, 1.0});
  for (int sweep = 0; sweep < kSweeps; ++sweep) {
    bool closed = true;
    for (const Bracket& b : brackets_) closed = closed && b.high - b.low <= 0.5 * kEpsilon;
    if (closed) return;
    narrow();
  }
}

// Points that divide every bracket evenly; equal brackets share points.
void LargestEigenpairs::narrow() {
  const index_t n = brackets_.size(), each = std::max<index_t>(1, kShiftsPerSweep / n);
  const index_t n_shifts = whole_lines<double>(n * each);
  shifts_.reserve(n_shifts);
  counts_.reserve(n_shifts);
  const auto group_end = [&](index_t first) {
    index_t last = first + 1;
    while (last < n && brackets_[last].low == brackets_[first].low &&
           brackets_[last].high == brackets_[first].high) {
      ++last;
    }
    return last;
  };
  for (index_t first = 0, last = 0; first < n; first = last) {
    last = group_end(first);
    const index_t points = (last - first) * each;
    const double low = brackets_[first].low, width = brackets_[first].high - low;
    for (index_t p = 0; p < points; ++p) {
      shifts_[first * each + p] =
          low + width * (static_cast<double>(p + 1) / static_cast<double>(points + 1));
    }
  }
  std::fill(shifts_.data() + n * each, shifts_.data() + n_shifts, 1.0);
  kernels<TridiagonalKernels>().count_below(diagonal_.data(), squares_.data(), d_, shifts_.data(),
                                            n_shifts, counts_.data());
  for (index_t first = 0, last = 0; first < n; first = last) {
    last = group_end(first);
    for (index_t b = first; b < last; ++b) {
      Bracket& bracket = brackets_[b];
      for (index_t p = first * each; p < last * each; ++p) {
        if (counts_[p] > static_cast<double>(bracket.below)) {
          bracket.high = shifts_[p];
          break;
        }
        bracket.low = shifts_[p];
      }
    }
  }
}

// Computes vectors of T, then of A, in lanes_; returns false if they are not accurate to rounding.
bool LargestEigenpairs::iterate(index_t count) {
  constexpr int kRounds = 3;  // one round suffices, except for clusters as wide as rounding errors
  const TridiagonalKernels& kernel = kernels<TridiagonalKernels>();
  const index_t groups = (count + kLine - 1) / kLine, line_block = d_ * kLine;
  factors_.reserve(line_block * kFactorLines);
  lanes_.reserve(groups * line_block);
  columns_.reserve(groups * kLine * order_);
  fill_random(lanes_.data(), groups * line_block, 1);
  bool accurate = false;
  for (int round = 0; round < kRounds && !accurate; ++round) {
    for (index_t group = 0; group < groups; ++group) {
      double shifts[kLine];
      for (index_t l = 0; l < kLine; ++l)
        shifts[l] = value(std::min(group * kLine + l, count - 1)) + kShiftDistance;
      double* const x = lanes_.data() + group * line_block;
      kernel.factorise(diagonal_.data(), off_.data(), d_, kEpsilon, shifts, factors_.data());
      if (round == 0)
        kernel.solve(factors_.data(), d_, false, x);  // the start is multiplied by P L
      kernel.solve(factors_.data(), d_, true, x);
    }
    for_columns(groups, [](double& lane, double& column) { column = lane; });
    orthogonalise(count);
    for_columns(groups, [](double& lane, double& column) { lane = column; });
    accurate = true;
    for (index_t j = 0; j < count; ++j) accurate = accurate && is_accurate(j);
  }
  if (!accurate) return false;
  for (index_t group = 0; group < groups; ++group)
    kernel.reflect(matrix_.data(), d_, tau_.data(), lanes_.data() + group * line_block);
  return true;
}

// Calls work(entry of lanes_, corresponding entry of columns_).
template <class F>
void LargestEigenpairs::for_columns(index_t groups, F&& work) {
  for (index_t group = 0; group < groups; ++group) {
    double* const x = lanes_.data() + group * d_ * kLine;
    for (index_t l = 0; l < kLine; ++l) {
      double* const column = vector(group * kLine + l);
      for (index_t i = 0; i < d_; ++i) work(x[i * kLine + l], column[i]);
    }
  }
}

// Gram-Schmidt, twice, against the vectors of close eigenvalues.
void LargestEigenpairs::orthogonalise(index_t count) {
  for (index_t j = 1, first = 0; j < count; ++j) {
    while (brackets_[1 + j].low - brackets_[1 + first].high > kOrthogonalGap) ++first;
    double* const x = vector(j);
    for (int round = 0; round < 2 && first < j; ++round) {
      for (index_t i = first; i < j; ++i) add_multiple(-dot(vector(i), x, d_), vector(i), d_, x);
      const double length = std::sqrt(dot(x, x, d_));
      for (index_t i = 0; i < d_; ++i) x[i] /= length;
    }
  }
}

// Whether |x| is 1 (squares may have overflowed) and ||T x - theta x|| is a rounding error.
bool LargestEigenpairs::is_accurate(index_t j) const {
  const double* x = columns_.data() + j * order_;
  double squares = 0.0, length = 0.0;
  for (index_t i = 0; i < d_; ++i) {
    double entry = (diagonal_[i] - value(j)) * x[i];
    if (i > 0) entry += off_[i - 1] * x[i - 1];
    if (i + 1 < d_) entry += off_[i] * x[i + 1];
    squares += entry * entry;
    length += x[i] * x[i];
  }
  const double allowed = 16.0 * std::sqrt(static_cast<double>(d_)) * kEpsilon;
  return std::sqrt(squares) <= allowed && std::abs(length - 1.0) <= 1e-8;
}

template bool LargestEigenpairs::solve<float>(MatrixView<const float>, VectorView<float>,
                                              MatrixView<float>);
template bool LargestEigenpairs::solve<double>(MatrixView<const double>, VectorView<double>,
                                               MatrixView<double>);

}  // namespace eigenfeat
