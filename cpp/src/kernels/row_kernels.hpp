// Private to moments: the two loops over rows that surround the rank-k updates.
#pragma once

#include "eigenfeat/view.hpp"

namespace eigenfeat {

// next is the row that will be read after this one (or this one again): it is prefetched.
//
// sum[j] += weight x[j];  peak[j] = max(peak[j], |x[j]|). A NaN or infinity shows up in sum.
void accumulate_row(const double* x, const double* next, index_t d, double weight, double* sum,
                    double* peak);
void accumulate_row(const float* x, const float* next, index_t d, double weight, double* sum,
                    float* peak);

// t = x - shift;  out = t root scale;  residual += weight t
void centre_row(const double* x, const double* next, index_t d, const double* shift,
                const double* scale, double root, double weight, double* out, double* residual);
void centre_row(const float* x, const float* next, index_t d, const double* shift,
                const double* scale, double root, double weight, float* out, double* residual);
void centre_row(const double* x, const double* next, index_t d, const double* shift,
                const double* scale, double root, double weight, float* out, double* residual);

// destination[j] += source[j] scale[j] factor
void add_scaled(const float* source, index_t n, const double* scale, double factor,
                double* destination);
void add_scaled(const double* source, index_t n, const double* scale, double factor,
                double* destination);

}  // namespace eigenfeat
