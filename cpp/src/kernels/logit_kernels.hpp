// Private to the logit: one row's softmax.
#pragma once

#include "eigenfeat/logit.hpp"

namespace eigenfeat {

// z (k logits) becomes weight (softmax(z) - e_label + energy_weight z); adds the row's terms.
void softmax_residual(float* z, index_t k, index_t label, double weight, double energy_weight,
                      LogitTerms& terms);
void softmax_residual(double* z, index_t k, index_t label, double weight, double energy_weight,
                      LogitTerms& terms);

}  // namespace eigenfeat
