// Private to local_means: where rows lie, so that their products stay in range.
#pragma once

#include "eigenfeat/vector.hpp"
#include "eigenfeat/view.hpp"

namespace eigenfeat {

struct RowUnits {
  Vector<double> mean;  // (d,) of the references
  Vector<double> peak;  // (d,) above |x - mean| of references and queries
  double scale = 1.0;   // a power of two that brings the largest peak near 1
};

// Throws std::invalid_argument for entries that are not finite, or as large as 1e150.
template <class T>
RowUnits row_units(MatrixView<const T> references, MatrixView<const T> queries, bool same,
                   int n_threads);

}  // namespace eigenfeat
