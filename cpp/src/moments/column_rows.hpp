// Private to moments: rows of column-major arrays.
#pragma once

#include <algorithm>

#include "base/class_order.hpp"
#include "eigenfeat/parallel.hpp"
#include "eigenfeat/scratch.hpp"
#include "eigenfeat/vector.hpp"
#include "kernels/column_kernels.hpp"

namespace eigenfeat {

// Copies of the rows in class order, so that both passes read memory sequentially.
template <class T>
class ColumnRows {
 public:
  static constexpr bool kPackable = true;

  explicit ColumnRows(MatrixView<const T> x) : x_(x) {}

  index_t rows() const { return x_.rows; }
  index_t cols() const { return x_.cols; }

  void arrange(const ClassOrder& order, int n_threads) {
    constexpr index_t width = 256;  // rows of a task
    copies_.reserve(x_.rows * x_.cols);
    place_.resize(x_.rows);
    for (index_t p = 0; p < place_.size(); ++p) {
      place_[order.rows[p]] = copies_.data() + p * x_.cols;
    }
    for_ranges(x_.rows, width, n_threads, [&](index_t begin, index_t end, int) {
      kernels<ColumnKernels<T>>().scatter_rows(x_.row(begin), x_.col_stride, end - begin, x_.cols,
                                               x_.rows - end, place_.data() + begin);
    });
  }
  void accumulate(index_t i, index_t next, double weight, double* sum, T* peak) const {
    kernels<RowKernels<T>>().accumulate(row(i), row(next), x_.cols, weight, sum, peak);
  }
  void centre(index_t i, index_t next, const ColumnRun& run, const ClassColumns& columns,
              double root, double weight, T* out, double* residual) const {
    kernels<RowKernels<T>>().centre(
        row(i) + run.full, row(next) + run.full, run.length, columns.shift.data() + run.packed,
        columns.scale.data() + run.packed, root, weight, out + run.packed, residual + run.packed);
  }
  void check_entries(double limit) const { DenseRows<T>{x_}.check_entries(limit); }

 private:
  const T* row(index_t i) const { return place_[i]; }

  MatrixView<const T> x_;
  AlignedBuffer<T> copies_;
  Vector<T*> place_;  // copy of each row
};

}  // namespace eigenfeat
