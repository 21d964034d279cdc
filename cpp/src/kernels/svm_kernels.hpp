// Private to the multiclass SVM: the loops behind SvmRows, with wider instructions where the
// machine has them. columns == nullptr means that entry j stands in column j.
#pragma once

#include <cstdint>

#include "eigenfeat/view.hpp"

namespace eigenfeat {

// out (width) <- sum_e x[e] w[column of e]
void row_scores(const float* x, const std::uint32_t* columns, index_t n, const float* w,
                index_t width, float* out);
void row_scores(const double* x, const std::uint32_t* columns, index_t n, const double* w,
                index_t width, double* out);

// The same for four dense rows.
void four_row_scores(const float* x, index_t stride, index_t n, const float* w, index_t width,
                     float* out);
void four_row_scores(const double* x, index_t stride, index_t n, const double* w, index_t width,
                     double* out);

// w[column of e] += x[e] delta
void add_row(const float* x, const std::uint32_t* columns, index_t n, const float* delta,
             index_t width, float* w);
void add_row(const float* x, const std::uint32_t* columns, index_t n, const double* delta,
             index_t width, double* w);
void add_row(const double* x, const std::uint32_t* columns, index_t n, const double* delta,
             index_t width, double* w);

// How many of x[0 .. n) are not zero, and the sum of their squares.
struct RowCount {
  index_t entries = 0;
  double square = 0.0;
};
RowCount count_row(const float* x, index_t n);
RowCount count_row(const double* x, index_t n);

// sum of x[e]^2, in double, in an order that depends on n alone.
double sum_of_squares(const float* x, index_t n);
double sum_of_squares(const double* x, index_t n);
// w[e] += factor x[e]; x[e] <- 0.
void add_and_clear(float factor, float* x, index_t n, float* w);
void add_and_clear(double factor, double* x, index_t n, double* w);

// g[c] += mask[c] for all of width; returns the greatest. mask is 0, and -infinity in the padding.
float masked_greatest(float* g, const float* mask, index_t width);
double masked_greatest(double* g, const double* mask, index_t width);

}  // namespace eigenfeat
