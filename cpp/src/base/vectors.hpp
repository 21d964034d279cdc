// Private to the core: short names of the vector kernels.
#pragma once

#include "kernels/vector_kernels.hpp"

namespace eigenfeat {

inline double dot(const double* a, const double* b, index_t n) {
  return kernels<SumKernels>().dot(a, b, n);
}

inline double largest_magnitude(const double* x, index_t n) {
  return kernels<SumKernels>().largest_magnitude(x, n);
}

// y += factor x
template <class T>
void add_multiple(T factor, const T* x, index_t n, T* y) {
  kernels<VectorKernels<T>>().add_multiple(factor, x, n, y);
}

}  // namespace eigenfeat
