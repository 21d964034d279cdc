// Private to trust_region: checks of a problem, and choice of the method for its items.
#pragma once

#include <memory>

#include "eigenfeat/trust_region.hpp"
#include "regions/eigenbasis.hpp"

namespace eigenfeat {

// Throws std::invalid_argument if shapes do not fit.
void check(const BallProblem& problem);

// Whether one quadratic serves several items.
bool shared(const BallProblem& problem);

// A of an item: (d, d), or (1, d) if it is diagonal.
MatrixView<const double> curvature_of(const BallProblem& problem, index_t item);

// The eigenvectors of the dense matrix if enough items share it; null otherwise.
std::unique_ptr<Eigenbasis> basis_of(const BallProblem& problem, int n_threads);

// Operations for all items, roughly.
double work_of(const BallProblem& problem);

// Number of items that a thread processes at a time.
index_t block_of(const BallProblem& problem);

}  // namespace eigenfeat
