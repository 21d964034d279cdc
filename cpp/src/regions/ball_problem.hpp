// Private to trust_region: the parts of a problem, and which way its items go.
#pragma once

#include <memory>

#include "eigenfeat/trust_region.hpp"
#include "regions/eigenbasis.hpp"

namespace eigenfeat {

// Throws std::invalid_argument where shapes do not fit.
void check(const BallProblem& problem);

// Whether one quadratic serves several items.
bool shared(const BallProblem& problem);

// A of an item: (d, d), or (1, d) where it is diagonal.
MatrixView<const double> curvature_of(const BallProblem& problem, index_t item);

// Where a dense matrix serves items enough to be worth its eigenvectors; else none.
std::unique_ptr<Eigenbasis> basis_of(const BallProblem& problem, int n_threads);

double work_of(const BallProblem& problem);

// Items that one thread takes at a time.
index_t block_of(const BallProblem& problem);

}  // namespace eigenfeat
