#include <algorithm>
#include <cmath>
#include <limits>

#include "eigenfeat/trust_region.hpp"
#include "regions/secular.hpp"

namespace eigenfeat {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

// One quadratic, and what is known of its minimum so far.
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

  // The bounds that need no divisions.
  bool open(const Survey& of) {
    const double length = std::sqrt(of.gradient), square = radius_ * radius_;
    // |2 g^T x| <= 2 |g| r and x^T A x >= min(a_min, 0) r^2
    bound_below(2.0 * length * radius_ + std::max(-of.low, 0.0) * square);
    if (done()) return true;
    if (of.gradient > 0.0) {  // the best point along -g
      const double curvature = of.bend / of.gradient;
      const double vertex = curvature > 0.0 ? length / curvature : kInfinity;
      const double reach = std::min(vertex, inside());
      bound_above(reach * (reach * curvature - 2.0 * length),
                  reach * (reach * of.size + 2.0 * length));
    }
    if (of.low < 0.0) bound_above(of.low * inside() * inside(), -of.low * square);
    return done();
  }

  // Newton steps on the dual; each gives a bound on either side.
  void search(const Survey& of) {
    const double base = std::max(of.low, 0.0), length = std::sqrt(of.gradient);
    const double mean = of.gradient > 0.0 ? of.bend / of.gradient - of.low : 0.0;
    // |x| >= r here by Jensen's inequality, if it is not below what is allowed
    double shift = std::max(base, length / radius_ - mean);
    if (!(shift > 0.0)) shift = 1e-3 * length / radius_;
    for (int step = 0; step < 60 && shift > 0.0 && std::isfinite(shift); ++step) {
      const SecularSums sums = secular_sums(a_, g_, n_, of.low, shift);
      ++certificate.passes;
      weigh(of.low, shift, sums);
      if (done()) return;
      const double excess = (std::sqrt(sums.second) - radius_) / radius_;
      const double newton = shift + sums.second / sums.third * excess;
      const double next = std::max({newton, base, 1e-3 * shift});
      if (next == shift) return;
      shift = next;
    }
  }

 private:
  bool done() const { return certificate.verdict != Verdict::undecided; }
  double inside() const { return radius_ * (1.0 - share_); }

  // q >= c - fall over the ball; fall is a sum of nonnegative terms.
  void bound_below(double fall) {
    const double most = fall * (1.0 + share_) + uncertainty_;
    const double lower = constant_ - most;
    certificate.lower = std::max(certificate.lower, lower - kRound * std::fabs(lower));
    if (constant_ >= most) certificate.verdict = Verdict::nonnegative;
  }

  // q = c + change at a point of the ball; `size` is the sum of the magnitudes of change's terms.
  void bound_above(double change, double size) {
    const double error = share_ * (size + std::fabs(constant_)) + uncertainty_;
    const double upper = (constant_ + change) + (size == 0.0 ? uncertainty_ : error);
    certificate.upper = std::min(certificate.upper, upper);
    if (upper < 0.0) certificate.verdict = Verdict::negative;
  }

  void weigh(double low, double shift, const SecularSums& sums) {
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
      // From x to the sphere along the lowest eigenvector, on the shorter way:
      // q <= c - P(mu) + s (r^2 - |x|^2).
      bound_above(low * square - sums.first - shift * sums.second,
                  -low * square + sums.first + shift * sums.second);
    }
  }

  const double* a_;
  const double* g_;
  index_t n_;
  double constant_, radius_, uncertainty_, share_;
};

bool moderate(double x) {
  return x == 0.0 || (x > 1e-100 && x < 1e100);
}

}  // namespace

Certificate certify(const double* curvatures, const double* slopes, index_t n, double constant,
                    double radius, double uncertainty, double* scratch) {
  const Survey of = survey(curvatures, slopes, n);
  const double largest = std::max(of.size, of.steepest);
  if (radius > 0.0 && largest > 0.0 &&
      !(moderate(radius) && moderate(of.size) && moderate(of.steepest) &&
        moderate(std::fabs(constant)))) {
    const BallScale scale(of.size, of.steepest, radius);
    std::transform(curvatures, curvatures + n, scratch, scale.curvature);
    std::transform(slopes, slopes + n, scratch + n, scale.slope);
    const Survey scaled = survey(scratch, scratch + n, n);
    // What underflows here changes q by less than d 2^-1070, in units in which it may be 1/4.
    Prover prover(scratch, scratch + n, n, scale.value(constant), scale.radius,
                  scale.value(uncertainty) + 1e-290);
    if (prover.certificate.verdict == Verdict::undecided && !prover.open(scaled))
      prover.search(scaled);
    prover.certificate.lower = scale.back(prover.certificate.lower);
    prover.certificate.upper = scale.back(prover.certificate.upper);
    return prover.certificate;
  }
  Prover prover(curvatures, slopes, n, constant, radius, uncertainty);
  if (prover.certificate.verdict == Verdict::undecided && !prover.open(of)) prover.search(of);
  return prover.certificate;
}

}  // namespace eigenfeat
