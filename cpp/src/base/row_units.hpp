// Private to local_means: origin and unit of rows, with which products neither overflow nor vanish.
#pragma once

#include "eigenfeat/vector.hpp"
#include "eigenfeat/view.hpp"

namespace eigenfeat {

struct RowUnits {
  Vector<double> mean;  // (d,) of the references
  Vector<double> peak;  // (d,) upper bounds of |x - mean| of references and queries
  double scale = 1.0;   // power of two that multiplies the largest peak to about 1
};

// same: whether the queries are the references. Throws std::invalid_argument for entries that are not
// finite, or 1e150 or larger in magnitude.
template <class T>
RowUnits row_units(MatrixView<const T> references, MatrixView<const T> queries, bool same,
                   int n_threads);

}  // namespace eigenfeat
