// Private to the logit: one row's softmax.
#pragma once

#include "eigenfeat/logit.hpp"

namespace eigenfeat {

// z (k logits) becomes weight (softmax(z) - e_label + energy_weight z); adds the row's terms.
template <class T>
void softmax_residual(T* z, index_t k, index_t label, double weight, double energy_weight,
                      LogitTerms& terms);

}  // namespace eigenfeat
