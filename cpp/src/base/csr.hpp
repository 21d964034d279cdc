// Private to the core: check of CSR matrices.
#pragma once

#include <string>

#include "eigenfeat/status.hpp"
#include "eigenfeat/view.hpp"

namespace eigenfeat {

// Throws std::invalid_argument that names X, unless indptr never decreases and columns are in
// range. The first entry of indptr may be positive, as in a slice of rows.
template <class T>
void check_csr(const CsrView<T>& x) {
  require(x.indptr[0] >= 0, "X", "indptr to start at 0 or above", std::to_string(x.indptr[0]));
  for (index_t i = 0; i < x.rows; ++i) {
    if (!(x.indptr[i] <= x.indptr[i + 1]))
      refuse("X", "indptr that never falls",
             std::to_string(x.indptr[i + 1]) + " after " + std::to_string(x.indptr[i]));
  }
  for (index_t p = x.indptr[0]; p < x.indptr[x.rows]; ++p) {
    if (!(x.indices[p] >= 0 && x.indices[p] < x.cols))
      refuse("X", "column indices in [0, " + std::to_string(x.cols) + ")",
             std::to_string(x.indices[p]));
  }
}

}  // namespace eigenfeat
