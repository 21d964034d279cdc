// Private to the multiclass SVM: the loops of SvmRows. If columns is nullptr, entry j is in column j;
// widths are multiples of `unit`.
#pragma once

#include <cstdint>

#include "kernels/family.hpp"

namespace eigenfeat {

// Number of nonzero entries of x[0 .. n), and sum of their squares.
struct RowCount {
  index_t entries = 0;
  double square = 0.0;
};

template <class T>
struct SvmKernels {
  index_t unit;  // numbers in a vector
  // out (width) <- sum_e x[e] w[column of e]
  void (*row_scores)(const T* x, const std::uint32_t* columns, index_t n, const T* w, index_t width,
                     T* out);
  // w[column of e] += x[e] delta
  void (*add_row)(const T* x, const std::uint32_t* columns, index_t n, const T* delta,
                  index_t width, T* w);
  void (*add_row_in_double)(const T* x, const std::uint32_t* columns, index_t n,
                            const double* delta, index_t width, double* w);
  RowCount (*count_row)(const T* x, index_t n);
  // sum of x[e]^2 in double; the order of summation depends on n alone.
  double (*sum_of_squares)(const T* x, index_t n);
  // w[e] += factor x[e]; x[e] <- 0.
  void (*add_and_clear)(T factor, T* x, index_t n, T* w);
  // g[c] += mask[c] for c < width; returns the largest g[c]. mask is 0, and -infinity in the padding.
  T (*masked_greatest)(T* g, const T* mask, index_t width);
};
EIGENFEAT_FAMILY(SvmKernels<float>);
EIGENFEAT_FAMILY(SvmKernels<double>);

}  // namespace eigenfeat
