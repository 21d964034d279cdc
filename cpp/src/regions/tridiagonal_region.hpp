// Private to trust_region: the minimum of x^T A x + 2 g^T x over a ball for one dense A, by way of
// a tridiagonal matrix. See trust_region.hpp.
#pragma once

#include "eigenfeat/lapack.hpp"
#include "eigenfeat/scratch.hpp"
#include "regions/secular.hpp"

namespace eigenfeat {

// What rounding may do to a matrix that is reduced to tridiagonal form: T is similar to A + E, with
// |E|_2 at most this times |A|_F. Let u = 2^-53 and m be the order of what is left in a step. The
// product y = A v has an error of m u |A|_F |v| whatever the order of its sums; tau |v|^2 = 2, so
// that it moves v w^T + w v^T by 4 m u |A|_F; y^T v moves it by 4 m u |A|_F, the reflection's own
// rounding, relative m + 10 in its length and factor, by 4 (m + 10) u |A|_F (Higham, Accuracy and
// Stability of Numerical Algorithms, 2nd ed., Lemmas 19.1 to 19.3), the update by 6 u |A|_F:
// no more than 16 (m + 10) u |A|_F a step. Summed over m < d that is (8 d^2 + 160 d) u.
//
// LAPACK's blocks, which take over beyond kPassEach, leave the update of up to 31 columns out of A and
// subtract v_j (w_j^T v) + w_j (v_j^T v) for each from the product instead. As |v_j| |w_j| <= 4 |A|,
// each of these products has an error of 4 m u |A|_F |v|: that of y is up to 249 times as large,
// and what a step moves, of which half comes from y, up to 125 times.
constexpr index_t kPassEach = 2048;  // beyond, a pass a column is worth less than LAPACK's blocks

inline double reduction_error(index_t d) {
  const double order = static_cast<double>(d), blocks = d > kPassEach ? 128.0 : 1.0;
  return blocks * (4.0 * order * order + 80.0 * order) * kRound;
}

// Scratch of one thread for matrices of order d, reused for every item.
class TridiagonalRegion {
 public:
  explicit TridiagonalRegion(index_t d);

  // Scaled numbers, 1/2 <= radius < 1; `factor` is applied to the entries of `a` as they are read.
  // x: d numbers.
  RegionPoint minimise(MatrixView<const double> a, const PowerOfTwo& factor, const double* g,
                       double radius, double* x);

 private:
  struct Solve {
    double first = 0.0, second = 0.0, third = 0.0;  // as SecularSums
    bool positive = false;
  };

  struct Bracket {  // of the lowest eigenvalue
    double low = 0.0, high = 0.0;
    bool closed = false;  // to rounding of T
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

  index_t d_, order_;  // order_: d in whole lines
  double norm_ = 0.0;  // Gershgorin's bound of |T|
  LapackWork<double> work_;
  AlignedBuffer<double> matrix_, steps_, diagonal_, off_, tau_, pivots_, ratios_, forward_, point_,
      vector_, slope_;
};

}  // namespace eigenfeat
