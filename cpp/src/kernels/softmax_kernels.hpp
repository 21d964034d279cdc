// Private to the logit: exponentials and logarithms of many numbers (see logit/softmax.hpp).
#pragma once

#include "kernels/family.hpp"

namespace eigenfeat {

// The result for a number does not depend on its index. n is a multiple of kLane<T>, or of
// kLane<double>.
template <class T>
struct SoftmaxKernels {
  // x (n) <- exp(min(x, 0)), error below 2 ulp; 0 below exp(-708), or exp(-87) in float. NaN stays
  // NaN
  void (*exponentials)(T* x, index_t n);
  // x (n) <- log(1 + x) of nonnegative numbers, error below 2 ulp; NaN stays NaN
  void (*logarithms)(double* x, index_t n);
};
EIGENFEAT_FAMILY(SoftmaxKernels<float>);
EIGENFEAT_FAMILY(SoftmaxKernels<double>);

}  // namespace eigenfeat
