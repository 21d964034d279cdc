#include "eigenfeat/trust_region.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <memory>
#include <string>
#include <utility>

#include "base/vectors.hpp"
#include "eigenfeat/parallel.hpp"
#include "eigenfeat/scratch.hpp"
#include "regions/ball_bounds.hpp"
#include "regions/ball_problem.hpp"
#include "regions/eigenbasis.hpp"
#include "regions/secular.hpp"
#include "regions/tridiagonal_region.hpp"

namespace eigenfeat {
namespace {

// Bound of the rounding error of a sum over d entries, relative to its terms; results with larger
// errors have not converged.
double tolerance(index_t d) {
  return static_cast<double>(64 + 2 * d) * kRound;
}

struct RegionScratch {
  AlignedBuffer<double> a, g, x, rotated, line;
  double largest = 0.0;  // largest magnitude in A
  std::unique_ptr<TridiagonalRegion> region;
};

struct Item {
  const BallProblem& problem;
  const BallMinima& minima;
  const Eigenbasis* basis;

  void run(index_t i, RegionScratch& scratch) const {
    const index_t d = problem.slopes.cols;
    const double* g = problem.slopes.row(i);
    double* x = minima.minimisers.row(i);
    minima.gaps[i] = minima.residuals[i] = minima.values[i] = 0.0;
    minima.hard[i] = minima.iterations[i] = 0;
    minima.status[i] = static_cast<int>(Status::ok);
    std::fill(x, x + d, 0.0);
    const MatrixView<const double> a = curvature_of(problem, i);
    const double size = largest_magnitude(a.data, a.rows * d), steepest = largest_magnitude(g, d);
    if (problem.radii[i] == 0.0) {
      minima.multipliers[i] =
          steepest > 0.0 ? std::numeric_limits<double>::infinity() : lowest_multiplier(a, scratch);
      return;
    }
    const BallScale scale(size, steepest, problem.radii[i]);
    scratch.largest = size;
    scratch.g.reserve(d);
    scratch.line.reserve(d);
    std::transform(g, g + d, scratch.g.data(), scale.slope);
    RegionPoint point = minimise(i, a, scale, scratch, x);
    Judgement judged = judge(a, scale, scratch, x, point);
    if (!judged.accepted && problem.dense && basis == nullptr)
      by_eigenvectors(a, scale, scratch, x, point, judged);
    minima.values[i] = scale.back(point.value);
    minima.gaps[i] = scale.back(judged.gap);
    minima.residuals[i] = judged.residual;
    minima.multipliers[i] = scale.multiplier(point.multiplier);
    minima.hard[i] = point.hard ? 1 : 0;
    minima.iterations[i] = point.iterations;
    minima.status[i] = static_cast<int>(judged.accepted ? Status::ok : Status::not_converged);
    std::transform(x, x + d, x, scale.length);
  }

 private:
  struct Judgement {
    double gap = 0.0, residual = 0.0;
    bool accepted = false;
  };

  // x: the minimiser in scaled numbers
  RegionPoint minimise(index_t i, MatrixView<const double> a, const BallScale& scale,
                       RegionScratch& scratch, double* x) const {
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

  // Tridiagonal matrices are faster, eigenvectors more reliable; the better result is kept.
  void by_eigenvectors(MatrixView<const double> a, const BallScale& scale, RegionScratch& scratch,
                       double* x, RegionPoint& point, Judgement& judged) const {
    const index_t d = problem.slopes.cols;
    scratch.a.reserve(d * d);
    std::transform(a.data, a.data + d * d, scratch.a.data(), scale.curvature);
    const Eigenbasis own(row_major<const double>(scratch.a.data(), d, d),
                         row_major<const double>(scratch.g.data(), 1, d), 1);
    if (!own.converged) return;
    scratch.rotated.reserve(d);
    scratch.x.reserve(d);
    const RegionPoint other =
        minimise_diagonal(own.values(), own.slope(0), d, scale.radius, scratch.rotated.data());
    own.back(scratch.rotated.data(), scratch.x.data());
    const Judgement found = judge(a, scale, scratch, scratch.x.data(), other);
    if (!found.accepted && !(found.residual < judged.residual)) return;
    std::copy(scratch.x.data(), scratch.x.data() + d, x);
    point = other;
    judged = found;
  }

  // Whether x and mu satisfy the conditions of a minimum to rounding, with the original numbers.
  // The method's own test of convergence does not suffice.
  Judgement judge(MatrixView<const double> a, const BallScale& scale, RegionScratch& scratch,
                  const double* x, const RegionPoint& point) const {
    const index_t d = problem.slopes.cols;
    const double mu = point.multiplier, radius = scale.radius, limit = tolerance(d);
    const double* g = scratch.g.data();
    const BallTerms at = problem.dense ? dense_terms(a, scratch.largest, scale.curvature, g, x, mu,
                                                     scratch.line.data())
                                       : diagonal_terms(a.data, scale.curvature, g, x, mu, d);
    const double terms = at.size * at.length + at.slope, whole = at.size * radius + at.slope;
    const double slack = mu * std::fabs(radius - at.length);
    const double apart = std::fabs(at.value - point.value);
    // The error of eigenvalues of a dense matrix is sqrt(d) eps |A|, for any length of x.
    const double allowance =
        problem.dense ? 4 * std::sqrt(static_cast<double>(d)) * kRound * (whole + at.slope) * radius
                      : 8 * kRound * (at.magnitude + mu * radius * radius);
    Judgement out;
    out.gap = apart + allowance;
    out.residual = terms == 0.0 ? 0.0 : std::max(at.residual / terms, slack / whole);
    out.accepted = point.converged && (basis == nullptr || basis->converged) &&
                   out.residual <= limit && apart <= limit * (whole + at.slope) * radius &&
                   at.length <= radius * (1.0 + limit);
    return out;
  }

  TridiagonalRegion& region(RegionScratch& scratch) const {
    if (!scratch.region) scratch.region = std::make_unique<TridiagonalRegion>(problem.slopes.cols);
    return *scratch.region;
  }

  // max(0, -a_min), for a radius of 0 and no slope.
  double lowest_multiplier(MatrixView<const double> a, RegionScratch& scratch) const {
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

}  // namespace

void minimise_over_ball(const BallProblem& problem, const BallMinima& minima, int n_threads) {
  check(problem);
  const index_t n = problem.slopes.rows;
  const int threads = threads_for(work_of(problem), n_threads);
  const std::unique_ptr<Eigenbasis> basis = basis_of(problem, threads);
  const Item item{problem, minima, basis.get()};
  PerThread<RegionScratch> scratch(threads);
  for_ranges(n, block_of(problem), threads, [&](index_t begin, index_t end, int thread) {
    for (index_t i = begin; i < end; ++i) item.run(i, scratch[thread]);
  });
}

}  // namespace eigenfeat
