// Minimum, or certified sign, of a quadratic over a ball (the trust-region subproblem):
//
//   q(x) = x^T A x + 2 g^T x + c,   |x| <= r,   A symmetric, indefinite or zero as may be.
//
// An ellipsoid (x - m)^T R^-1 (x - m) <= r^2 is the ball of u, x = m + R^(1/2) u (Parrish 2012,
// Appendix B). x is a global minimiser exactly where, for a multiplier mu >= max(0, -a_min),
//
//   (A + mu I) x = -g,   mu (r - |x|) = 0.
//
// mu is found by Newton's method on 1 / |x(mu)| = 1 / r (More and Sorensen 1983), from the left,
// where it is monotone; the unknown is s = mu + a_min, so that digits are kept where mu nears
// -a_min. In the hard case mu = -a_min, and a multiple of the lowest eigenvector fills the ball; so
// it does where |x(mu)| passes r within the rounding of mu, as it may beside the hard case and where
// A is singular.
//
// diagonal  A = diag(a): O(d) a step.
// dense     one matrix an item: Householder reduction to a tridiagonal matrix (4/3 d^3 flops, one
//           pass over the triangle a column; LAPACK's beyond 2,048 columns), its lowest eigenvalue
//           by multisection, then O(d) a step and O(d^2) to come back. One matrix for many items:
//           its eigendecomposition once, then as diagonal.
//
// Every result is judged with the numbers as they were given: it is called converged only if its
// residual and q(x) minus the dual bound are within (64 + 2 d) eps of their terms and x is in the
// ball. A dense item that fails by way of a tridiagonal matrix is solved by its eigenvectors.
//
// Certified sign: with P(mu) = sum_i g_i^2 / (a_i + mu) + mu r^2, every such mu shows
// q >= c - P(mu), and every point of the ball bounds the minimum from above. P is a sum of
// nonnegative terms, so that rounding changes it by a factor of 1 +- (d + 64) eps: a verdict is
// given only beyond that, and is right for the numbers as they were given. One pass without
// divisions decides most, two or three Newton steps nearly all others; where the bounds meet at
// zero to rounding it is undecided. Of a dense matrix, the minimiser and its multiplier are put into
// both bounds with A itself (regions/ball_bounds.hpp), the reduction's rounding is bounded for the
// worst of matrices (regions/tridiagonal_region.hpp), and where that leaves the sign open the same is
// tried with eigenvectors whose rounding is measured (regions/eigenbasis.hpp).
//
// Numbers are double. Threads: over items, each by itself; every count gives the same bits.
// Scratch: O(d) a thread (diagonal), d^2 (dense). Misuse throws std::invalid_argument; entries must
// be finite, which the caller checks.
#pragma once

#include "eigenfeat/status.hpp"
#include "eigenfeat/view.hpp"

namespace eigenfeat {

enum class Verdict : int { negative = -1, undecided = 0, nonnegative = 1 };

struct Certificate {
  Verdict verdict = Verdict::undecided;
  double lower = 0.0;  // certified bounds of the minimum over the ball
  double upper = 0.0;
  int passes = 0;  // over the d entries
};

// One diagonal quadratic. uncertainty: by how much q may be off anywhere in the ball, known from
// elsewhere. scratch: 2 n doubles, used only where numbers are beyond 1e+-100.
Certificate certify(const double* curvatures, const double* slopes, index_t n, double constant,
                    double radius, double uncertainty, double* scratch);

struct BallProblem {
  MatrixView<const double> curvatures;  // diagonal: (n or 1, d); dense: (n d or d, d), stacked
  MatrixView<const double> slopes;      // (n, d)
  VectorView<const double> radii;       // (n,), >= 0
  bool dense = false;
};

// Arrays that the caller owns.
struct BallMinima {
  VectorView<double> values;       // (n,): the minimum, without c
  MatrixView<double> minimisers;   // (n, d)
  VectorView<double> multipliers;  // (n,): infinite where r = 0 and g is not
  VectorView<double> gaps;         // (n,): |q(x) - dual bound| and an allowance for rounding
  VectorView<double> residuals;  // (n,): |(A + mu) x + g| / (|A| |x| + |g|), at least mu (r - |x|)
  VectorView<int> hard;          // (n,): 1 where mu = -a_min to d eps |A|
  VectorView<int> iterations;    // (n,): Newton steps
  VectorView<int> status;        // (n,): Status
};

void minimise_over_ball(const BallProblem& problem, const BallMinima& minima, int n_threads);

struct Certificates {
  VectorView<int> verdicts;  // (n,): Verdict
  VectorView<double> lower, upper;
  VectorView<int> passes;
};

void certify_over_ball(const BallProblem& problem, VectorView<const double> constants,
                       const Certificates& certificates, int n_threads);

// Quadratics of many items in m groups: x^T W V W x + 2 (W g)^T x + c, W = diag(w), where V and w
// are a group's and g, c and r an item's. A group has one eigendecomposition, of the entries with
// w > 0, and each item costs O(d^2) for its slopes and O(d) a pass.
struct SharedQuadratics {
  MatrixView<const double> forms;      // (p d, d): V, stacked
  MatrixView<const double> widths;     // (q, d), >= 0: w
  MatrixView<const index_t> groups;    // (m, 2): which form and which widths
  VectorView<const index_t> begins;    // (m + 1,): first item of each group, and n
  MatrixView<const double> slopes;     // (n, d): g
  MatrixView<const double> constants;  // (n, t): c at each of t levels
  MatrixView<const double> radii;      // (n, t), ascending
  VectorView<const index_t> limits;    // (n,): levels to look at, the first so many of the t
};

// For how many levels each item is proved to be nonnegative over the ball, by bisection: what is
// proved for a ball holds for smaller ones, with constants that are no less.
void proved_levels(const SharedQuadratics& problem, VectorView<int> levels, int n_threads);

}  // namespace eigenfeat
