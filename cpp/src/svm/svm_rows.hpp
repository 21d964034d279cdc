// Private to the multiclass SVM: rows as its steps read them, and the two products of a row.
//
// Weights W are row-major (p, width): all classes of a feature beside each other, in whole vectors
// of the tier, the padding zero. A row's scores are then sum_j x_j W_j, a step is W_j += x_j delta, and
// both cost one or a few vector operations for each entry that is not zero. Passes over all of many
// dense rows, between which W stays as it is, read it by class instead where much would be padding.
#pragma once

#include <cstdint>

#include "eigenfeat/scratch.hpp"
#include "eigenfeat/vector.hpp"
#include "eigenfeat/view.hpp"
#include "kernels/line.hpp"
#include "kernels/svm_kernels.hpp"

namespace eigenfeat {

template <class T>
index_t svm_width(index_t k) {
  const index_t unit = kernels<SvmKernels<T>>().unit;
  return (k + unit - 1) / unit * unit;
}

// Dense rows as they are, or compressed ones with 32-bit columns.
template <class T>
class SvmRows {
 public:
  SvmRows(MatrixView<const T> rows, double constant, int n_threads);
  SvmRows(const CsrView<T>& rows, double constant, int n_threads);

  index_t rows() const { return n_; }
  index_t cols() const { return d_ + (constant_ != 0.0 ? 1 : 0); }
  bool dense() const { return dense_.data != nullptr; }
  double square(index_t i) const { return squares_[i]; }
  // Entries of all rows, about: what a pass over them costs.
  double entries() const { return entries_; }
  void prefetch(index_t i) const;

  // out (width) <- W^T x_i
  void scores(index_t i, const T* w, index_t width, T* out) const;
  // out (4, width) likewise, for rows i .. i + 3 of dense ones, up to a number for each row that all
  // of its classes have in common; by_class: of the same w, as sort_by_class gives it.
  void scores_of_four(index_t i, const T* w, const T* by_class, index_t k, index_t width,
                      T* out) const;
  // The weights of each of k classes beside each other, without the constant's; of two classes only
  // their difference, and nothing where classes fill vectors.
  void sort_by_class(const T* w, index_t k, index_t width, int n_threads,
                     AlignedBuffer<T>& by_class) const;
  // W += x_i delta^T, delta (width); changed: the classes where delta is not 0.
  template <class U>
  void add(index_t i, const U* delta, const Vector<index_t>& changed, index_t width, U* w) const;

 private:
  void compress(MatrixView<const T> rows, int n_threads);

  index_t n_ = 0, d_ = 0;
  double constant_ = 0.0;
  double entries_ = 0.0;
  MatrixView<const T> dense_;
  const T* values_ = nullptr;
  AlignedBuffer<T> own_values_;
  AlignedBuffer<std::uint32_t> columns_;
  Vector<index_t> starts_;
  AlignedBuffer<double> squares_;
};

}  // namespace eigenfeat
