// Private to the expansion: products of rows with few entries (see expansion/nonzero_projection.hpp).
#pragma once

#include <cstdint>

#include "kernels/family.hpp"

namespace eigenfeat {

template <class T>
struct NonzeroKernels {
  index_t unit;   // numbers in a vector
  index_t panel;  // vectors whose sums stay in registers
  // number of nonzero entries among n
  index_t (*count)(const T* x, index_t n);
  // p (vectors units) <- sum over entries of values[q] panel[columns[q]]; vectors = 1 or panel
  void (*sum)(index_t vectors, const T* values, const std::int32_t* columns, index_t count,
              const T* panel, T* p);
};
EIGENFEAT_FAMILY(NonzeroKernels<float>);
EIGENFEAT_FAMILY(NonzeroKernels<double>);

}  // namespace eigenfeat
