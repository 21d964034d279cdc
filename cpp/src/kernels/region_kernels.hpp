// Private to the regions: sums over the entries of diagonal quadratics. A sum consists of eight
// partial sums, which are added in a fixed order.
#pragma once

#include "kernels/family.hpp"

namespace eigenfeat {

// With b_i = (a_i - low) + shift: sum g^2/b, sum g^2/b^2 = |x|^2, sum g^2/b^3. All b_i > 0.
struct SecularSums {
  double first = 0.0;
  double second = 0.0;
  double third = 0.0;
};

// Results of one pass without divisions.
struct Survey {
  double low = 0.0;       // min a
  double size = 0.0;      // max |a|
  double steepest = 0.0;  // max |g|
  double gradient = 0.0;  // sum g^2
  double bend = 0.0;      // sum a g^2
};

// A sum, and the sum of the magnitudes of its terms.
struct SumAndSize {
  double value = 0.0;
  double magnitude = 0.0;
};

// Added to the magnitudes by which errors of widths, slopes and their sums are bounded: 8 eps of this
// number exceeds the smallest number, and thereby the underflow error of an operation.
inline constexpr double kUnderflowAllowance = 1e-300;

// The terms of two quadratic discriminants with diagonal precisions, at one point.
struct QuadraticPair {
  const double *precision_c, *mean_c, *precision_h, *mean_h;
};

struct RegionKernels {
  SecularSums (*secular_sums)(const double* a, const double* g, index_t n, double low,
                              double shift);
  Survey (*survey)(const double* a, const double* g, index_t n);
  // For each of eight shifts, 1 if T - shift has no negative pivot, else 0.
  void (*definite_at)(const double* diagonal, const double* off, index_t n, double tiny,
                      const double* shifts, int* definite);
  // P of dominance.hpp, over |u_j| <= half_width.
  double (*box_fall)(const double* curvatures, const double* slopes, double half_width, index_t n);
  SumAndSize (*dot_and_size)(const double* a, const double* b, index_t n);
  // sum of precision (x - centre)^2
  double (*weighted_square)(const double* precision, const double* x, const double* centre,
                            index_t n);
  // a and g <- curvature and slope of the quadratic parts of f_c - f_h in u; `spread` and `steepness`
  // <- sums of the magnitudes of their terms.
  void (*quadratic_difference)(const QuadraticPair& pair, const double* x, const double* width,
                               index_t n, double* a, double* g, double* spread, double* steepness);
  // g and steepness += slope of the linear parts, and sums of the magnitudes of its terms.
  void (*add_linear_difference)(const double* bc, const double* bh, const double* width, index_t n,
                                double* g, double* steepness);
};
EIGENFEAT_FAMILY(RegionKernels);

}  // namespace eigenfeat
