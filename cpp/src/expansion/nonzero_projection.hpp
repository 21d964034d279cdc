// Private to the core: projections of dense rows with mostly zero entries, such as images with an
// empty background, from their nonzero entries.
//
//   p (r, F) += x (r, d) directions (d, F)
//
// Cost: 2 F flops for every nonzero entry, at about half the rate of a product of matrices.
#pragma once

#include "eigenfeat/view.hpp"

namespace eigenfeat {

// Returns false, and leaves p unchanged, if a product of matrices is faster because too few entries
// are 0.
template <class T>
bool add_nonzeros(MatrixView<const T> x, MatrixView<const T> directions, MatrixView<T> p);

}  // namespace eigenfeat
