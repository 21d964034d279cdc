// Private to the core: projections of dense rows most of whose entries are 0, as of images with an
// empty ground, by their other entries alone.
//
//   p (r, F) += x (r, d) directions (d, F)
//
// Cost: 2 F flops for every entry that is not 0, at about half the rate of a product of matrices.
#pragma once

#include "eigenfeat/view.hpp"

namespace eigenfeat {

// False, and nothing done, where so many entries are not 0 that a product of matrices is
// faster.
template <class T>
bool add_nonzeros(MatrixView<const T> x, MatrixView<const T> directions, MatrixView<T> p);

}  // namespace eigenfeat
