// Private to moments: class sums and products of CSR rows without densifying them.
//
// sum w x and sum w x x^T are computed from nonzero entries, O(nnz^2) for each row. Subtracting W
// mu mu^T loses digits if a mean is much larger than its standard deviation; worthwhile() is false
// for such batches and for dense batches, which use centred panels.
#pragma once

#include <cstdint>

#include "base/class_order.hpp"
#include "eigenfeat/vector.hpp"
#include "eigenfeat/view.hpp"

namespace eigenfeat {

template <class T>
class SparseBatch {
 public:
  SparseBatch(const CsrView<T>& rows, VectorView<const std::int32_t> labels,
              VectorView<const double> weights, index_t n_classes, int n_threads);

  bool worthwhile() const { return worthwhile_; }
  double weight(index_t c) const { return weight_[c]; }
  const double* mean(index_t c) const { return mean_.data() + c * rows_.cols; }
  const double* zeros() const { return zeros_.data(); }

  // Adds sum w x x^T over class c to the lower triangle of a row-major (d, d) matrix.
  void add_products(index_t c, double* lower) const;

 private:
  double row_weight(index_t i) const { return weights_.empty() ? 1.0 : weights_[i]; }
  void reduce();
  bool well_centred(index_t c, const Vector<double>& squares) const;

  CsrView<T> rows_;
  VectorView<const double> weights_;
  int n_threads_;
  bool worthwhile_ = false;
  ClassOrder order_;
  Vector<double> weight_;
  Vector<double> mean_;
  Vector<double> zeros_;
};

}  // namespace eigenfeat
