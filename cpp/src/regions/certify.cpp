#include <algorithm>
#include <cmath>
#include <limits>

#include "eigenfeat/trust_region.hpp"
#include "regions/ball_bounds.hpp"
#include "regions/secular.hpp"

namespace eigenfeat {
namespace {

constexpr double kUnderflow = 1e-290;  // more than all errors of underflow

// One quadratic, and the current bounds of its minimum.
//
// Rounding, with u = 2^-53. The relative error of b_i = (a_i - low) + shift is at most 3 u, because
// a_i - low and shift are nonnegative. The relative error of the terms g_i^2 / b_i and g_i^2 /
// b_i^2, and of their sums in any order, is at most (n + 16) u, and that of `fall`, a sum of
// nonnegative terms, is below share_ = (n + 64) 2 u. The error of sums of terms of both signs
// (values at points) is at most share_ times the sum of the magnitudes. mu is the number shift -
// low, with the relative error u. The sum of all underflow errors is below kUnderflow; squares of
// slopes are used only if they cannot underflow.
class Prover {
 public:
  Prover(const double* a, const double* g, index_t n, double constant, double radius,
         double uncertainty)
      : a_(a),
        g_(g),
        n_(n),
        constant_(constant),
        radius_(radius),
        uncertainty_(uncertainty),
        share_(static_cast<double>(n + 64) * kRound) {
    certificate.lower = -kInfinity;
    certificate.upper = kInfinity;
    bound_above(0.0, 0.0);
  }

  Certificate certificate;

  // Bounds from one pass over the terms; returns whether they decide.
  bool bound_from(const Survey& survey) {
    const double length = length_of(survey), square = radius_ * radius_;
    exact_ = radius_ == 0.0 || (survey.steepest == 0.0 && survey.low >= 0.0);
    // |2 g^T x| <= 2 |g| r and x^T A x >= min(a_min, 0) r^2
    bound_below(2.0 * length * radius_ + std::max(-survey.low, 0.0) * square);
    if (done()) return true;
    if (squares_are_accurate(survey)) {  // upper bound at the best point along -g
      const double curvature = survey.bend / survey.gradient;
      const double vertex = curvature > 0.0 ? length / curvature : kInfinity;
      const double reach = std::min(vertex, inside());
      bound_above(reach * (reach * curvature - 2.0 * length),
                  reach * (reach * survey.size + 2.0 * length));
    }
    if (survey.low < 0.0) bound_above(survey.low * inside() * inside(), -survey.low * square);
    return done();
  }

  // Newton steps on the dual until the bounds decide; each step gives a lower and an upper bound.
  void search(const Survey& survey) {
    const double base = std::max(survey.low, 0.0), length = length_of(survey);
    const double mean =
        squares_are_accurate(survey) ? survey.bend / survey.gradient - survey.low : 0.0;
    // At length / radius - mean, |x| >= r by Jensen's inequality.
    double shift = std::max(base, length / radius_ - mean);
    if (!(shift > 0.0)) shift = 1e-3 * length / radius_;
    for (int step = 0; step < 60 && shift > 0.0 && std::isfinite(shift); ++step) {
      const SecularSums sums = secular_sums(a_, g_, n_, survey.low, shift);
      ++certificate.passes;
      bound_at(survey.low, shift, sums);
      if (done()) return;
      const double excess = (std::sqrt(sums.second) - radius_) / radius_;
      const double newton = shift + sums.second / sums.third * excess;
      const double next = std::max({newton, base, 1e-3 * shift});
      if (next == shift) return;
      shift = next;
    }
  }

 private:
  // Squares of slopes near the smallest numbers have lost their digits.
  static bool squares_are_accurate(const Survey& survey) { return survey.gradient > 1e-280; }

  // |g|, or an upper bound if squares have lost their digits.
  double length_of(const Survey& survey) const {
    return squares_are_accurate(survey) ? std::sqrt(survey.gradient)
                                        : survey.steepest * std::sqrt(static_cast<double>(n_));
  }

  bool done() const { return certificate.verdict != Verdict::undecided; }
  double inside() const { return radius_ * (1.0 - share_); }

  // q >= c - fall over the ball; fall is a sum of nonnegative terms.
  void bound_below(double fall) {
    const double most = fall * (1.0 + share_) + uncertainty_ + (exact_ ? 0.0 : kUnderflow);
    const double lower = constant_ - most;
    certificate.lower = std::max(certificate.lower, lower - kRound * std::fabs(lower));
    if (constant_ >= most) certificate.verdict = Verdict::nonnegative;
  }

  // q = c + change at a point of the ball; `size` is the sum of the magnitudes of the terms of
  // `change`.
  void bound_above(double change, double size) {
    const double error = share_ * (size + std::fabs(constant_)) + uncertainty_;
    const double upper = (constant_ + change) + (size == 0.0 ? uncertainty_ : error + kUnderflow);
    certificate.upper = std::min(certificate.upper, upper);
    if (upper < 0.0) certificate.verdict = Verdict::negative;
  }

  // Bounds at the point x of this shift, moved into the ball or to its sphere.
  void bound_at(double low, double shift, const SecularSums& sums) {
    const double mu = shift - low, square = radius_ * radius_;
    bound_below(sums.first + mu * square);
    if (done()) return;
    const double bent = sums.first + std::fabs(mu) * sums.second;
    if (sums.second > square * (1.0 - share_)) {  // x scaled back to the sphere
      const double t = inside() / std::sqrt(sums.second);
      bound_above(t * (t * (sums.first - mu * sums.second) - 2.0 * sums.first),
                  t * (t * bent + 2.0 * sums.first));
    } else if (low >= 0.0) {
      bound_above(-sums.first - mu * sums.second, bent);
    } else {
      // From x to the nearer point of the sphere along the lowest eigenvector:
      // q <= c - P(mu) + s (r^2 - |x|^2).
      bound_above(low * square - sums.first - shift * sums.second,
                  -low * square + sums.first + shift * sums.second);
    }
  }

  const double* a_;
  const double* g_;
  index_t n_;
  double constant_, radius_, uncertainty_, share_;
  bool exact_ = false;  // whether the minimum is the constant
};

// Whether products of a few such numbers neither overflow nor vanish.
bool moderate(double x) {
  return x == 0.0 || (x > 1e-100 && x < 1e100);
}

}  // namespace

Certificate certify(const double* curvatures, const double* slopes, index_t n, double constant,
                    double radius, double uncertainty, double* scratch) {
  if (!std::isfinite(constant)) {  // after an overflow there are no bounds
    Certificate open;
    open.lower = -kInfinity;
    open.upper = kInfinity;
    return open;
  }
  const Survey original = survey(curvatures, slopes, n);
  const double largest = std::max(original.size, original.steepest);
  if (radius > 0.0 && largest > 0.0 &&
      !(moderate(radius) && moderate(original.size) && moderate(original.steepest) &&
        moderate(std::fabs(constant)))) {
    const BallScale scale(original.size, original.steepest, radius);
    std::transform(curvatures, curvatures + n, scratch, scale.curvature);
    std::transform(slopes, slopes + n, scratch + n, scale.slope);
    const Survey scaled = survey(scratch, scratch + n, n);
    const double in_units = scale.value(constant);
    if (!std::isfinite(in_units)) return beyond_scale(constant, uncertainty);
    // Scaled numbers are about 1, and underflow changes q by less than d 2^-1070 < kUnderflow.
    Prover prover(scratch, scratch + n, n, in_units, scale.radius,
                  scale.value(uncertainty) + kUnderflow);
    if (prover.certificate.verdict == Verdict::undecided && !prover.bound_from(scaled))
      prover.search(scaled);
    bring_back(scale, prover.certificate);
    return prover.certificate;
  }
  Prover prover(curvatures, slopes, n, constant, radius, uncertainty);
  if (prover.certificate.verdict == Verdict::undecided && !prover.bound_from(original))
    prover.search(original);
  return prover.certificate;
}

}  // namespace eigenfeat
