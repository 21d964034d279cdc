// Private to the core: loops over one or two vectors. A sum consists of eight partial sums, which
// are added in a fixed order.
#pragma once

#include "kernels/family.hpp"

namespace eigenfeat {

template <class T>
struct VectorKernels {
  // y += factor x
  void (*add_multiple)(T factor, const T* x, index_t n, T* y);
  // sum += weight x, square += weight x^2
  void (*add_weighted_squares)(const T* x, index_t n, double weight, double* sum, double* square);
  // sum += part; part <- 0
  void (*flush)(T* part, index_t n, double* sum);
};
EIGENFEAT_FAMILY(VectorKernels<float>);
EIGENFEAT_FAMILY(VectorKernels<double>);

struct SumKernels {
  double (*dot)(const double* a, const double* b, index_t n);
  // max |x_i|; 0 if n is 0
  double (*largest_magnitude)(const double* x, index_t n);
  // y += x^2
  void (*add_squares)(const double* x, index_t n, double* y);
};
EIGENFEAT_FAMILY(SumKernels);

}  // namespace eigenfeat
