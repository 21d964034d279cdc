// Private to the multiclass SVM: rows in the layout of its steps, and the two products of a row.
//
// Weights W are row-major (p, width): the classes of a feature are adjacent, in whole vectors of
// the tier with zero padding. The scores of a row are sum_j x_j W_j, and a step is W_j += x_j
// delta; both take one or a few vector operations for each nonzero entry. Passes over many dense
// rows, in which W is constant, use weights sorted by class instead if much of a vector would be
// padding.
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

// The dense rows of the caller, or compressed rows with 32-bit columns.
template <class T>
class SvmRows {
 public:
  SvmRows(MatrixView<const T> rows, double constant, int n_threads);
  SvmRows(const CsrView<T>& rows, double constant, int n_threads);

  index_t rows() const { return n_; }
  index_t cols() const { return d_ + (constant_ != 0.0 ? 1 : 0); }
  bool dense() const { return dense_.data != nullptr; }
  double square(index_t i) const { return squares_[i]; }
  // Approximate cost of a pass: the number of entries of all rows.
  double entries() const { return entries_; }
  void prefetch(index_t i) const;

  // out (width) <- W^T x_i
  void scores(index_t i, const T* w, index_t width, T* out) const;
  // out (4, width) <- scores of the dense rows i .. i + 3, up to a number for each row that is
  // common to all classes. by_class: the weights w from sort_by_class.
  void scores_of_four(index_t i, const T* w, const T* by_class, index_t k, index_t width,
                      T* out) const;
  // Weights sorted by class, without the constant; for two classes only their difference, and empty
  // if classes fill vectors.
  void sort_by_class(const T* w, index_t k, index_t width, int n_threads,
                     AlignedBuffer<T>& by_class) const;
  // W += x_i delta^T, delta (width); changed: classes with nonzero delta.
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
