#include "eigenfeat/trust_region.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <memory>
#include <string>
#include <utility>

#include "base/vectors.hpp"
#include "eigenfeat/lapack.hpp"
#include "eigenfeat/parallel.hpp"
#include "eigenfeat/scratch.hpp"
#include "regions/secular.hpp"
#include "regions/tridiagonal_region.hpp"

namespace eigenfeat {
namespace {

constexpr index_t kItemsPerBlock = 64;
constexpr index_t kWorthEigenvectors = 6;  // items of one dense matrix

double norm(const double* x, index_t n) {
  return std::sqrt(dot(x, x, n));
}

void check(const BallProblem& problem) {
  const index_t n = problem.slopes.rows, d = problem.slopes.cols;
  const index_t lines = problem.dense ? d : 1;
  require(d > 0, "g", "at least one column", "none");
  require(problem.curvatures.cols == d &&
              (problem.curvatures.rows == lines * n || problem.curvatures.rows == lines),
          "A", "one quadratic, or one an item, of " + std::to_string(d) + " variables",
          std::to_string(problem.curvatures.rows) + " rows of " +
              std::to_string(problem.curvatures.cols));
  require(problem.radii.size == n, "radius", std::to_string(n) + " entries",
          std::to_string(problem.radii.size));
  require(problem.curvatures.is_row_major() && problem.slopes.is_row_major(), "A, g",
          "row-major storage", "another layout");
}

bool shared(const BallProblem& problem) {
  return problem.slopes.rows > 1 &&
         problem.curvatures.rows == (problem.dense ? problem.slopes.cols : 1);
}

MatrixView<const double> matrix_of(const BallProblem& problem, index_t item) {
  const index_t d = problem.slopes.cols;
  return problem.curvatures.block(shared(problem) ? 0 : item * d, 0, d, d);
}

// By how much the reduction's rounding may move a dense quadratic over its ball.
double reduction_error(double frobenius, const double* g, index_t d, double radius) {
  const double slack = 10.0 * static_cast<double>(d) * kRound;
  return slack * (frobenius * radius * radius + 2.0 * norm(g, d) * radius);
}

// A quadratic as its items need it: eigenvalues, and the slopes along the eigenvectors.
class Eigenbasis {
 public:
  Eigenbasis(MatrixView<const double> a, MatrixView<const double> slopes, int n_threads)
      : d_(a.rows),
        exponent_(-BallScale(largest_magnitude(a.data, d_ * d_), 0.0, 1.0).value_exponent),
        vectors_(d_ * d_),
        values_(d_),
        slopes_(slopes.rows * d_) {
    frobenius = norm(a.data, d_ * d_);
    const PowerOfTwo scale(exponent_), back(-exponent_);
    std::transform(a.data, a.data + d_ * d_, vectors_.data(), scale);
    LapackWork<double> work;
    converged = syevd(Triangle::lower, vectors(), {values_.data(), d_}, work) == 0;
    std::transform(values_.data(), values_.data() + d_, values_.data(), back);
    constexpr index_t kRows = 64;
    for_ranges(slopes.rows, kRows, n_threads, [&](index_t begin, index_t end, int) {
      gemm<double>(Op::transpose, Op::none, 1.0, vectors(),
                   slopes.block(begin, 0, end - begin, d_).transposed(), 0.0,
                   column_major(slopes_.data() + begin * d_, d_, end - begin));
    });
  }

  bool converged = false;
  double frobenius = 0.0;
  const double* values() const { return values_.data(); }
  const double* slope(index_t item) const { return slopes_.data() + item * d_; }
  // x <- Q y
  void back(const double* y, double* x) const {
    gemm<double>(Op::none, Op::none, 1.0, vectors(), column_major(y, d_, 1), 0.0,
                 column_major(x, d_, 1));
  }

 private:
  MatrixView<double> vectors() { return column_major(vectors_.data(), d_, d_); }
  MatrixView<const double> vectors() const { return column_major(vectors_.data(), d_, d_); }

  index_t d_;
  int exponent_;
  AlignedBuffer<double> vectors_, values_, slopes_;
};

struct Scratch {
  AlignedBuffer<double> a, g, x, rotated;
  std::unique_ptr<TridiagonalRegion> region;
};

struct Item {
  const BallProblem& problem;
  const BallMinima& minima;
  const Eigenbasis* basis;

  void run(index_t i, Scratch& scratch) const {
    const index_t d = problem.slopes.cols;
    const double* g = problem.slopes.row(i);
    double* x = minima.minimisers.row(i);
    minima.gaps[i] = minima.residuals[i] = minima.values[i] = 0.0;
    minima.hard[i] = minima.iterations[i] = 0;
    minima.status[i] = static_cast<int>(Status::ok);
    std::fill(x, x + d, 0.0);
    const MatrixView<const double> a =
        problem.dense ? matrix_of(problem, i)
                      : problem.curvatures.block(shared(problem) ? 0 : i, 0, 1, d);
    const double size = largest_magnitude(a.data, a.rows * d), steepest = largest_magnitude(g, d);
    if (problem.radii[i] == 0.0) {
      minima.multipliers[i] =
          steepest > 0.0 ? std::numeric_limits<double>::infinity() : lowest_multiplier(a, scratch);
      return;
    }
    const BallScale scale(size, steepest, problem.radii[i]);
    scratch.g.reserve(d);
    std::transform(g, g + d, scratch.g.data(), scale.slope);
    const RegionPoint point = minimise(i, a, scale, scratch, x);
    const auto [gap, residual] = judge(a, scale, scratch.g.data(), x, point);
    minima.values[i] = scale.back(point.value);
    minima.gaps[i] = scale.back(gap);
    minima.residuals[i] = residual;
    minima.multipliers[i] = scale.multiplier(point.multiplier);
    minima.hard[i] = point.hard ? 1 : 0;
    minima.iterations[i] = point.iterations;
    const bool found = point.converged && (basis == nullptr || basis->converged);
    minima.status[i] = static_cast<int>(found ? Status::ok : Status::not_converged);
    std::transform(x, x + d, x, scale.length);
  }

 private:
  // x: the minimiser in scaled numbers
  RegionPoint minimise(index_t i, MatrixView<const double> a, const BallScale& scale,
                       Scratch& scratch, double* x) const {
    const index_t d = problem.slopes.cols;
    if (problem.dense && basis == nullptr)
      return region(scratch).minimise(a, scale.curvature, scratch.g.data(), scale.radius, x);
    const double* values = basis == nullptr ? a.data : basis->values();
    scratch.a.reserve(d);
    std::transform(values, values + d, scratch.a.data(), scale.curvature);
    if (basis == nullptr)
      return minimise_diagonal(scratch.a.data(), scratch.g.data(), d, scale.radius, x);
    scratch.rotated.reserve(d);
    scratch.x.reserve(d);
    std::transform(basis->slope(i), basis->slope(i) + d, scratch.rotated.data(), scale.slope);
    const RegionPoint point = minimise_diagonal(scratch.a.data(), scratch.rotated.data(), d,
                                                scale.radius, scratch.x.data());
    basis->back(scratch.x.data(), x);
    return point;
  }

  // The gap between q(x) and the dual bound, and how far x and mu are from the conditions; with
  // the numbers as they were given.
  std::pair<double, double> judge(MatrixView<const double> a, const BallScale& scale,
                                  const double* g, const double* x,
                                  const RegionPoint& point) const {
    const index_t d = problem.slopes.cols;
    double primal = 0.0, square = 0.0, frobenius = 0.0;
    const auto product = [&](index_t i) {
      if (!problem.dense) return scale.curvature(a.data[i]) * x[i];
      const double* line = a.row(i);
      frobenius += dot(line, line, d);
      const double sum = dot(line, x, d);
      return scale.curvature(sum);
    };
    const double mu = point.multiplier;
    for (index_t i = 0; i < d; ++i) {
      const double ax = product(i), term = ax + mu * x[i] + g[i];
      primal += x[i] * (ax + 2.0 * g[i]);
      square += term * term;
      if (!problem.dense) frobenius += a.data[i] * a.data[i];
    }
    const double size = scale.curvature(std::sqrt(frobenius)) * scale.radius + norm(g, d);
    const double slack = mu * std::fabs(scale.radius - norm(x, d));
    const double residual = size == 0.0 ? 0.0 : std::max(std::sqrt(square), slack) / size;
    return {primal - point.value, residual};
  }

  TridiagonalRegion& region(Scratch& scratch) const {
    if (!scratch.region) scratch.region = std::make_unique<TridiagonalRegion>(problem.slopes.cols);
    return *scratch.region;
  }

  // max(0, -a_min), for a ball that is a point and no slope.
  double lowest_multiplier(MatrixView<const double> a, Scratch& scratch) const {
    const index_t d = problem.slopes.cols;
    if (!problem.dense || basis != nullptr) {
      const double* values = basis == nullptr ? a.data : basis->values();
      return std::max(0.0, -*std::min_element(values, values + d));
    }
    const BallScale scale(largest_magnitude(a.data, d * d), 0.0, 1.0);
    scratch.g.reserve(d);
    scratch.x.reserve(d);
    std::fill(scratch.g.data(), scratch.g.data() + d, 0.0);
    return scale.multiplier(
        region(scratch)
            .minimise(a, scale.curvature, scratch.g.data(), scale.radius, scratch.x.data())
            .multiplier);
  }
};

double work_of(const BallProblem& problem) {
  const double n = static_cast<double>(problem.slopes.rows);
  const double d = static_cast<double>(problem.slopes.cols);
  return problem.dense && !shared(problem) ? n * (2 * d * d * d + 300 * d) : n * 100 * d;
}

// Dense matrices of their own are work for a block each.
index_t block_of(const BallProblem& problem) {
  return problem.dense && !shared(problem) ? 1 : kItemsPerBlock;
}

std::unique_ptr<Eigenbasis> basis_of(const BallProblem& problem, int n_threads) {
  if (!problem.dense || !shared(problem) || problem.slopes.rows < kWorthEigenvectors)
    return nullptr;
  return std::make_unique<Eigenbasis>(matrix_of(problem, 0), problem.slopes, n_threads);
}

}  // namespace

void minimise_over_ball(const BallProblem& problem, const BallMinima& minima, int n_threads) {
  check(problem);
  const index_t n = problem.slopes.rows;
  const int threads = threads_for(work_of(problem), n_threads);
  const std::unique_ptr<Eigenbasis> basis = basis_of(problem, threads);
  const Item item{problem, minima, basis.get()};
  PerThread<Scratch> scratch(threads);
  for_ranges(n, block_of(problem), threads, [&](index_t begin, index_t end, int thread) {
    for (index_t i = begin; i < end; ++i) item.run(i, scratch[thread]);
  });
}

namespace {

// From the minimum itself, where a dense matrix serves few items.
Certificate certify_dense(MatrixView<const double> a, const double* g, double constant,
                          double radius, Scratch& scratch) {
  const index_t d = a.rows;
  Certificate out;
  const double error = reduction_error(norm(a.data, d * d), g, d, radius);
  double value = 0.0;
  if (radius > 0.0) {
    const BallScale scale(largest_magnitude(a.data, d * d), largest_magnitude(g, d), radius);
    scratch.g.reserve(d);
    scratch.x.reserve(d);
    std::transform(g, g + d, scratch.g.data(), scale.slope);
    const RegionPoint point = scratch.region->minimise(a, scale.curvature, scratch.g.data(),
                                                       scale.radius, scratch.x.data());
    if (!point.converged) {
      out.lower = -std::numeric_limits<double>::infinity();
      out.upper = constant;
      return out;
    }
    value = scale.back(point.value);
    out.passes = point.iterations + 1;
  }
  const double reach = error + 4 * kRound * (std::fabs(value) + std::fabs(constant));
  const bool exact = radius == 0.0;
  out.lower = (constant + value) - (exact ? 0.0 : reach);
  out.upper = std::min(constant, (constant + value) + (exact ? 0.0 : reach));
  if (out.lower >= 0.0) out.verdict = Verdict::nonnegative;
  if (out.upper < 0.0) out.verdict = Verdict::negative;
  return out;
}

}  // namespace

void certify_over_ball(const BallProblem& problem, VectorView<const double> constants,
                       const Certificates& certificates, int n_threads) {
  check(problem);
  const index_t n = problem.slopes.rows, d = problem.slopes.cols;
  require(constants.size == n, "constant", std::to_string(n) + " entries",
          std::to_string(constants.size));
  const int threads = threads_for(work_of(problem), n_threads);
  const std::unique_ptr<Eigenbasis> basis = basis_of(problem, threads);
  const bool by_minimum = problem.dense && basis == nullptr;
  PerThread<Scratch> scratch(threads);
  const auto one = [&](index_t i, Scratch& mine) {
    const double* g = problem.slopes.row(i);
    const double radius = problem.radii[i];
    if (by_minimum) {
      if (!mine.region) mine.region = std::make_unique<TridiagonalRegion>(d);
      return certify_dense(matrix_of(problem, i), g, constants[i], radius, mine);
    }
    mine.a.reserve(2 * d);
    if (basis == nullptr)
      return certify(problem.curvatures.row(shared(problem) ? 0 : i), g, d, constants[i], radius,
                     0.0, mine.a.data());
    const double error = basis->converged ? reduction_error(basis->frobenius, g, d, radius)
                                          : std::numeric_limits<double>::infinity();
    return certify(basis->values(), basis->slope(i), d, constants[i], radius, error, mine.a.data());
  };
  for_ranges(n, block_of(problem), threads, [&](index_t begin, index_t end, int thread) {
    for (index_t i = begin; i < end; ++i) {
      const Certificate found = one(i, scratch[thread]);
      certificates.verdicts[i] = static_cast<int>(found.verdict);
      certificates.lower[i] = found.lower;
      certificates.upper[i] = found.upper;
      certificates.passes[i] = found.passes;
    }
  });
}

}  // namespace eigenfeat
