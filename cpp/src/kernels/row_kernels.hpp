// Private to the core: the loops over rows before the rank-k updates.
#pragma once

#include "kernels/family.hpp"

namespace eigenfeat {

// next: the row to prefetch, which is read after x; at the end of a range, x.
template <class T>
struct RowKernels {
  // sum[j] += weight x[j];  peak[j] = max(peak[j], |x[j]|). NaN or infinity makes sum[j] not finite.
  void (*accumulate)(const T* x, const T* next, index_t d, double weight, double* sum, T* peak);
  // t = x - shift;  out = t root scale;  residual += weight t
  void (*centre)(const T* x, const T* next, index_t d, const double* shift, const double* scale,
                 double root, double weight, T* out, double* residual);
  void (*centre_to_float)(const T* x, const T* next, index_t d, const double* shift,
                          const double* scale, double root, double weight, float* out,
                          double* residual);
  // destination[j] += source[j] scale[j] factor
  void (*add_scaled)(const T* source, index_t n, const double* scale, double factor,
                     double* destination);
};
EIGENFEAT_FAMILY(RowKernels<float>);
EIGENFEAT_FAMILY(RowKernels<double>);

}  // namespace eigenfeat
