// Minimum, or certified sign, of a quadratic over a ball (the trust-region subproblem):
//
//   q(x) = x^T A x + 2 g^T x + c,   |x| <= r,   A symmetric, possibly indefinite or zero.
//
// An ellipsoid (x - m)^T R^-1 (x - m) <= r^2 becomes the ball |u| <= r for x = m + R^(1/2) u (Parrish
// 2012, Appendix B). x is a global minimiser if and only if, for a multiplier mu >= max(0, -a_min),
//
//   (A + mu I) x = -g,   mu (r - |x|) = 0.
//
// mu is found by Newton's method on 1 / |x(mu)| = 1 / r (More and Sorensen 1983), from the left,
// where it is monotone. The unknown is s = mu + a_min, which keeps digits if mu is near -a_min. In
// the hard case, mu = -a_min, and a multiple of the lowest eigenvector is added to x until |x| = r.
// This multiple is also added if |x(mu)| crosses r within the rounding error of mu, as near the
// hard case and for singular A.
//
// diagonal  A = diag(a): O(d) for each step.
// dense     With one matrix for each item: Householder reduction to a tridiagonal matrix (4/3 d^3
//           flops, one pass over the triangle for each column; LAPACK above 2,048 columns), the lowest
//           eigenvalue by multisection, then O(d) for each step and O(d^2) to transform x back. With
//           one matrix for many items: one eigendecomposition, then as diagonal.
//
// Every result is checked with the original numbers: it has converged only if its residual, and q(x)
// minus the dual bound, are within (64 + 2 d) eps of their terms, and x is in the ball. A dense item
// whose solution by the tridiagonal matrix has not converged is solved by eigenvectors.
//
// Certified sign: with P(mu) = sum_i g_i^2 / (a_i + mu) + mu r^2, every mu >= max(0, -a_min) proves
// q >= c - P(mu), and every point of the ball gives an upper bound of the minimum. P is a sum of
// nonnegative terms, so that rounding changes it by a factor of 1 +- (d + 64) eps. A verdict is given
// only if it holds for all such factors, so that it is right for the original numbers. One pass without
// divisions decides most items, and two or three Newton steps nearly all others; if both bounds are
// zero to rounding, the item is undecided. For a dense matrix, both bounds use the minimiser and
// its multiplier with A itself (regions/ball_bounds.hpp), and a worst-case bound of the rounding in
// the reduction (regions/tridiagonal_region.hpp). If the sign is still undecided, eigenvectors with
// measured rounding errors are used (regions/eigenbasis.hpp).
//
// Numbers are double. Threads: over items; results are bit-for-bit identical for any number of
// threads.
// Scratch: O(d) for each thread (diagonal), d^2 (dense). Misuse throws std::invalid_argument. The
// caller checks that entries are finite.
#pragma once

#include "eigenfeat/status.hpp"
#include "eigenfeat/view.hpp"

namespace eigenfeat {

enum class Verdict : int { negative = -1, undecided = 0, nonnegative = 1 };

struct Certificate {
  Verdict verdict = Verdict::undecided;
  double lower = 0.0;  // certified bounds of the minimum over the ball
  double upper = 0.0;
  int passes = 0;  // number of passes over the d entries
};

// One diagonal quadratic. uncertainty: bound of the error of q in the ball, given by the caller.
// scratch: 2 n doubles, used only for numbers above 1e100 or below 1e-100 in magnitude.
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
  VectorView<double> multipliers;  // (n,): infinite if r = 0 and g is not 0
  VectorView<double> gaps;         // (n,): |q(x) - dual bound| and an allowance for rounding
  VectorView<double> residuals;  // (n,): |(A + mu) x + g| / (|A| |x| + |g|), at least mu (r - |x|)
  VectorView<int> hard;          // (n,): 1 if mu = -a_min to d eps |A|
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

// Quadratics x^T W V W x + 2 (W g)^T x + c, W = diag(w), of many items in m groups. The items of a
// group share V and w; each item has its own g, c and r. A group takes one eigendecomposition, of
// the entries with w > 0, and an item takes O(d^2) for its slopes and O(d) for each pass.
struct SharedQuadratics {
  MatrixView<const double> forms;      // (p d, d): V, stacked
  MatrixView<const double> widths;     // (q, d), >= 0: w
  MatrixView<const index_t> groups;    // (m, 2): indices of the form and of the widths
  VectorView<const index_t> begins;    // (m + 1,): first item of each group, and n
  MatrixView<const double> slopes;     // (n, d): g
  MatrixView<const double> constants;  // (n, t): c at each of t levels
  MatrixView<const double> radii;      // (n, t), ascending
  VectorView<const index_t> limits;    // (n,): number of levels, from the first, that are tested
};

// Number of levels at which each item is proved to be nonnegative over the ball, by bisection: a
// proof for a ball holds for all smaller balls, because their constants are no smaller.
void proved_levels(const SharedQuadratics& problem, VectorView<int> levels, int n_threads);

}  // namespace eigenfeat
