// Private to the logit: softmax of samples' logits.
#pragma once

#include "eigenfeat/logit.hpp"

namespace eigenfeat {

// Row i of z, k logits, becomes weight_i (softmax(z_i) - e_label + energy_weight z_i); returns the sums of
// the terms. weights may be null, all ones then. z is row-major.
//
// The loss of a sample, log(sum exp(z - top)) + top - z_label, is exact to some ulps of its terms also where
// it is tiny: then it is log1p of the others' share.
template <class T>
LogitTerms softmax_residuals(MatrixView<T> z, const std::int32_t* labels, const double* weights,
                             double energy_weight);

}  // namespace eigenfeat
