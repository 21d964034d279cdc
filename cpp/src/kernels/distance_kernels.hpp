// Private to local_means and local_affinity: the loops over columns and over a block's distances.
#pragma once

#include <cstdint>

#include "eigenfeat/view.hpp"

namespace eigenfeat {

// out = x scale - shift
void shift_and_scale(const float* x, index_t d, const float* shift, float scale, float* out);
void shift_and_scale(const double* x, index_t d, const double* shift, double scale, double* out);

// |x|^2
double squared_norm(const float* x, index_t d);
double squared_norm(const double* x, index_t d);

// sum[j] += x[j], peak[j] = max(peak[j], |x[j]|)
void add_row(const float* x, index_t d, double* sum, double* peak);
void add_row(const double* x, index_t d, double* sum, double* peak);

// |scale (x - y)|^2 in double, from the rows as they are
double exact_distance(const float* x, const float* y, index_t d, double scale);
double exact_distance(const double* x, const double* y, index_t d, double scale);

// low[j] = base[j] - 2 dot[j] - factor radius[j]; returns how many places j with low[j] <= limit
// were written to hits.
index_t lows_below(const float* dot, const float* base, const float* radius, float factor,
                   index_t n, float limit, float* low, std::int32_t* hits);
index_t lows_below(const double* dot, const double* base, const double* radius, double factor,
                   index_t n, double limit, double* low, std::int32_t* hits);

// out[j] = sum over rows r of (x[j] - r[j])
void sum_of_differences(const float* x, const float* const* rows, index_t n_rows, index_t d,
                        float* out);
void sum_of_differences(const double* x, const double* const* rows, index_t n_rows, index_t d,
                        double* out);

// t = sum over rows r of (x[j] - r[j]) times share (and scale[j], if there is a scale);
// own[j] += t, and target[j] -= t / n_rows for each of n_rows targets
void spread_difference(const float* x, const float* const* rows, index_t n_rows, index_t d,
                       const float* scale, float share, float* own, float* const* targets);
void spread_difference(const double* x, const double* const* rows, index_t n_rows, index_t d,
                       const double* scale, double share, double* own, double* const* targets);

}  // namespace eigenfeat
