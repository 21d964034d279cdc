// Private to the regions: sums over the entries of diagonal quadratics. Sums are in eight parts, of
// which the order is always the same.
#pragma once

#include "kernels/family.hpp"

namespace eigenfeat {

// With b_i = (a_i - low) + shift: sum g^2/b, sum g^2/b^2 = |x|^2, sum g^2/b^3. All b_i > 0.
struct SecularSums {
  double first = 0.0;
  double second = 0.0;
  double third = 0.0;
};

// What one pass without divisions tells.
struct Survey {
  double low = 0.0;       // min a
  double size = 0.0;      // max |a|
  double steepest = 0.0;  // max |g|
  double gradient = 0.0;  // sum g^2
  double bend = 0.0;      // sum a g^2
};

// A value and the sum of the magnitudes that it was added up from.
struct SumAndSize {
  double value = 0.0;
  double magnitude = 0.0;
};

// Added to what widths, slopes and their sums are measured by: a share of it, 8 eps, is above the
// smallest number, and so above all that an operation beside it can lose by underflow.
inline constexpr double kUnderflowAllowance = 1e-300;

// Of two quadratic discriminants with diagonal precisions, at one point.
struct QuadraticPair {
  const double *precision_c, *mean_c, *precision_h, *mean_h;
};

struct RegionKernels {
  SecularSums (*secular_sums)(const double* a, const double* g, index_t n, double low,
                              double shift);
  Survey (*survey)(const double* a, const double* g, index_t n);
  // Which of eight shifts leave T - shift without a negative pivot, as 1 or 0.
  void (*definite_at)(const double* diagonal, const double* off, index_t n, double tiny,
                      const double* shifts, int* definite);
  // P of dominance.hpp, over |u_j| <= half_width.
  double (*box_fall)(const double* curvatures, const double* slopes, double half_width, index_t n);
  SumAndSize (*dot_and_size)(const double* a, const double* b, index_t n);
  // sum of precision (x - centre)^2
  double (*weighted_square)(const double* precision, const double* x, const double* centre,
                            index_t n);
  // a and g of f_c - f_h in u, from the quadratic parts; `spread` and `steepness` take the sums of
  // the magnitudes of their terms.
  void (*quadratic_difference)(const QuadraticPair& pair, const double* x, const double* width,
                               index_t n, double* a, double* g, double* spread, double* steepness);
  // What the linear parts add to g and its steepness.
  void (*add_linear_difference)(const double* bc, const double* bh, const double* width, index_t n,
                                double* g, double* steepness);
};
EIGENFEAT_FAMILY(RegionKernels);

}  // namespace eigenfeat
