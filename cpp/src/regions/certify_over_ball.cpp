// Certified signs of a batch of quadratics over balls: see trust_region.hpp.
#include <algorithm>
#include <cmath>
#include <limits>
#include <memory>
#include <string>

#include "base/vectors.hpp"
#include "eigenfeat/parallel.hpp"
#include "eigenfeat/scratch.hpp"
#include "eigenfeat/trust_region.hpp"
#include "regions/ball_bounds.hpp"
#include "regions/ball_problem.hpp"
#include "regions/eigenbasis.hpp"
#include "regions/secular.hpp"
#include "regions/tridiagonal_region.hpp"

namespace eigenfeat {
namespace {

struct CertificateScratch {
  AlignedBuffer<double> a, g, x, line;
  std::unique_ptr<TridiagonalRegion> region;
};

void settle(Certificate& certificate) {
  certificate.verdict = Verdict::undecided;
  if (certificate.lower >= 0.0) certificate.verdict = Verdict::nonnegative;
  if (certificate.upper < 0.0) certificate.verdict = Verdict::negative;
}

Certificate exactly(double constant) {
  Certificate out;
  out.lower = out.upper = constant;
  settle(out);
  return out;
}

// A dense matrix of few items. Numbers are scaled, except `a`, which is scaled when it is read.
class DenseItem {
 public:
  // largest: largest magnitude in a
  DenseItem(MatrixView<const double> a, double largest, const double* slopes,
            const BallScale& scale, CertificateScratch& scratch)
      : d_(a.rows), a_(a), largest_(largest), scale_(scale), scratch_(scratch) {
    scratch.g.reserve(d_);
    scratch.x.reserve(d_);
    scratch.line.reserve(3 * d_);
    std::transform(slopes, slopes + d_, scratch.g.data(), scale.slope);
    if (!scratch.region) scratch.region = std::make_unique<TridiagonalRegion>(d_);
  }

  Certificate certify_one(double constant) {
    Certificate out;
    from_minimum(constant, out);
    if (out.verdict == Verdict::undecided) from_eigenvectors(constant, out);
    return out;
  }

 private:
  // The minimiser and its multiplier need not be accurate: bounds are computed with A itself. A +
  // (mu + defect) I is positive semidefinite by the pivots of T + mu I, and by a bound of the
  // rounding in the reduction that holds for every A.
  void from_minimum(double constant, Certificate& out) {
    const double *g = scratch_.g.data(), radius = scale_.radius;
    double* x = scratch_.x.data();
    const RegionPoint point = scratch_.region->minimise(a_, scale_.curvature, g, radius, x);
    const double mu = std::max(point.multiplier, 0.0);
    const BallTerms at =
        dense_terms(a_, largest_, scale_.curvature, g, x, mu, scratch_.line.data());
    const double defect = point.defect + 1.01 * reduction_error(d_) * at.size;
    const BallBounds bounds = bounds_from(at, mu, defect, radius, constant, d_);
    out.passes = point.iterations + 1;
    // NaN certifies nothing.
    out.lower =
        std::isfinite(bounds.lower) ? bounds.lower : -std::numeric_limits<double>::infinity();
    out.upper = std::isfinite(bounds.upper) ? bounds.upper : constant;
    settle(out);
  }

  // Much slower, and rarely needed: the rounding error of eigenvectors is measured instead of
  // bounded.
  void from_eigenvectors(double constant, Certificate& out) {
    scratch_.a.reserve(d_ * d_);
    std::transform(a_.data, a_.data + d_ * d_, scratch_.a.data(), scale_.curvature);
    const double* g = scratch_.g.data();
    Eigenbasis basis(row_major<const double>(scratch_.a.data(), d_, d_),
                     row_major<const double>(g, 1, d_), 1);
    basis.measure();
    const double error = basis.error(std::sqrt(dot(g, g, d_)), scale_.radius);
    if (!basis.converged || !std::isfinite(error)) return;
    const Certificate found = certify(basis.values(), basis.slope(0), d_, constant, scale_.radius,
                                      error, scratch_.line.data() + d_);
    out.lower = std::max(out.lower, found.lower);
    out.upper = std::min(out.upper, found.upper);
    out.passes += found.passes;
    settle(out);
  }

  index_t d_;
  MatrixView<const double> a_;
  double largest_;
  const BallScale& scale_;
  CertificateScratch& scratch_;
};

Certificate certify_dense(MatrixView<const double> a, const double* g, double constant,
                          double radius, CertificateScratch& scratch) {
  const index_t d = a.rows;
  const double size = largest_magnitude(a.data, d * d), steepest = largest_magnitude(g, d);
  if (radius == 0.0 || (size == 0.0 && steepest == 0.0)) return exactly(constant);
  const BallScale scale(size, steepest, radius);
  const double scaled = scale.value(constant);
  if (!std::isfinite(scaled)) return beyond_scale(constant, 0.0);
  Certificate out = DenseItem(a, size, g, scale, scratch).certify_one(scaled);
  bring_back(scale, out);
  out.upper = std::min(out.upper, constant);
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
  if (basis) basis->measure();
  PerThread<CertificateScratch> scratch(threads);
  const auto one = [&](index_t i, CertificateScratch& mine) {
    const double* g = problem.slopes.row(i);
    const double radius = problem.radii[i];
    if (problem.dense && basis == nullptr)
      return certify_dense(curvature_of(problem, i), g, constants[i], radius, mine);
    mine.a.reserve(2 * d);
    if (basis == nullptr)
      return certify(problem.curvatures.row(shared(problem) ? 0 : i), g, d, constants[i], radius,
                     0.0, mine.a.data());
    const double error = basis->error(length_above(g, d), radius);
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
