// Private to the core: sums over vectors in eight parts, of which the order is always the same.
#pragma once

#include "eigenfeat/view.hpp"

namespace eigenfeat {

double dot(const double* a, const double* b, index_t n);

// max |x_i|, 0 of none
double largest_magnitude(const double* x, index_t n);

}  // namespace eigenfeat
