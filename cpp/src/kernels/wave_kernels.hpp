// Private to the expansion: half waves of one row of projections.
#pragma once

#include "eigenfeat/expansion.hpp"
#include "eigenfeat/view.hpp"

namespace eigenfeat {

// out[sign * n_powers * n + k * n + f] = wave of (+p, -p)[sign] at powers[k], for n projections p;
// polynomial has one sign. Not for Wave::none.
void expand_row(Wave wave, const int* powers, index_t n_powers, const float* p, index_t n,
                float* out);
void expand_row(Wave wave, const int* powers, index_t n_powers, const double* p, index_t n,
                double* out);

// y += factor x
void add_multiple(float factor, const float* x, index_t n, float* y);
void add_multiple(double factor, const double* x, index_t n, double* y);

}  // namespace eigenfeat
