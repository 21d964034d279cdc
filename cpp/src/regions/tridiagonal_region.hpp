// Private to trust_region: the minimum of x^T A x + 2 g^T x over a ball for one dense A, by a
// tridiagonal matrix (see trust_region.hpp).
#pragma once

#include "eigenfeat/lapack.hpp"
#include "eigenfeat/scratch.hpp"
#include "regions/secular.hpp"

namespace eigenfeat {

// Bound of the rounding in the reduction to tridiagonal form: T is similar to A + E, with |E|_2 at
// most this number times |A|_F. Let u = 2^-53 and m be the order of the trailing matrix of a step.
// With the reflection I - tau v v^T, a step subtracts V = v w^T + w v^T from A, where y = A v and
// w = tau (y - tau / 2 (y^T v) v). The error of y is m u |A|_F |v| for any order of summation;
// tau |v|^2 = 2, so that this error changes V by 4 m u |A|_F. The error of y^T v changes V by
// 4 m u |A|_F, and the rounding of the reflection, with relative errors of (m + 10) u in its length
// and factor, by 4 (m + 10) u |A|_F (Higham, Accuracy and Stability of Numerical Algorithms, 2nd
// ed., Lemmas 19.1 to 19.3). The subtraction adds 6 u |A|_F: at most 16 (m + 10) u |A|_F for each
// step. The sum over m < d is (8 d^2 + 160 d) u.
//
// LAPACK's blocked code, which is used above kPassEach, does not apply the updates of up to 31
// columns to A, but subtracts v_j (w_j^T v) + w_j (v_j^T v) for each of them from the product. As
// |v_j| |w_j| <= 4 |A|, the error of each of these products is 4 m u |A|_F |v|: the error of y is
// up to 249 times as large, and the change by a step, half of which comes from y, up to 125 times.
constexpr index_t kPassEach = 2048;  // for larger orders, LAPACK's blocked code is faster

inline double reduction_error(index_t d) {
  const double order = static_cast<double>(d), blocks = d > kPassEach ? 128.0 : 1.0;
  return blocks * (4.0 * order * order + 80.0 * order) * kRound;
}

// Scratch of one thread for matrices of order d, reused for every item.
class TridiagonalRegion {
 public:
  explicit TridiagonalRegion(index_t d);

  // Numbers are scaled, 1/2 <= radius < 1; `factor` multiplies the entries of `a` when they are
  // read. x: d numbers.
  RegionPoint minimise(MatrixView<const double> a, const PowerOfTwo& factor, const double* g,
                       double radius, double* x);

 private:
  struct Solve {
    double first = 0.0, second = 0.0, third = 0.0;  // as SecularSums
    bool positive = false;
  };

  struct Bracket {  // bracket of the lowest eigenvalue
    double low = 0.0, high = 0.0;
    bool closed = false;  // whether its width is the rounding error of T
  };

  void reduce(MatrixView<const double> a, const PowerOfTwo& factor);
  void reflect(index_t i, double* x) const;
  Solve solve(const double* right, double low, double shift);
  double defect(double low, double shift) const;
  void narrow(Bracket& bracket, int rounds) const;
  void lowest_eigenvector(double low, double shift);
  RegionPoint minimise_tridiagonal(const double* g, double radius);
  RegionPoint minimise_indefinite(const double* g, double radius);
  void newton(const double* g, double low, double base, double radius, Solve at,
              RegionPoint& point);
  void fill(const double* g, double low, double shift, double radius);

  index_t d_, order_;  // order_: d rounded up to whole lines
  double norm_ = 0.0;  // Gershgorin's bound of |T|
  LapackWork<double> work_;
  AlignedBuffer<double> matrix_, steps_, diagonal_, off_, tau_, pivots_, ratios_, forward_, point_,
      vector_, slope_;
};

}  // namespace eigenfeat
