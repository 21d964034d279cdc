// Private to the core: softmax of logits.
#pragma once

#include "eigenfeat/logit.hpp"

namespace eigenfeat {

// Replaces row i of z, k logits, by weight_i (softmax(z_i) - e_label + energy_weight z_i), and
// returns the sums of the terms. z is row-major. Null weights mean ones.
//
// The loss of a sample, log(sum exp(z - top)) + top - z_label, is accurate to a few ulps of its
// terms. A small loss is log1p of the share of the other classes, which keeps its digits.
template <class T>
LogitTerms softmax_residuals(MatrixView<T> z, const std::int32_t* labels, const double* weights,
                             double energy_weight);

}  // namespace eigenfeat
