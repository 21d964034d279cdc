// Private to the core: the rows of a batch (dense or CSR) sorted by class, and divided into segments.
#pragma once

#include <cmath>
#include <cstdint>
#include <sstream>
#include <string>

#include "eigenfeat/status.hpp"
#include "eigenfeat/vector.hpp"
#include "eigenfeat/view.hpp"
#include "kernels/row_kernels.hpp"

namespace eigenfeat {

// Row numbers grouped by class, in their original order inside each class (a counting sort).
struct ClassOrder {
  Vector<index_t> rows;
  Vector<index_t> begin;  // n_classes + 1

  ClassOrder(VectorView<const std::int32_t> labels, index_t n_classes);
  index_t count(index_t c) const { return begin[c + 1] - begin[c]; }
};

// Positions [begin, end) of the order, all of class c.
struct RowRange {
  index_t c;
  index_t begin;
  index_t end;
};

// Divides every class into ranges of equal size, at most `width` rows.
Vector<RowRange> cut_classes(const ClassOrder& order, index_t width);

// Throws std::invalid_argument that names row and column, unless the value is finite and below the
// limit in magnitude.
inline void check_entry(double value, double limit, index_t row, index_t column) {
  if (std::abs(value) < limit) return;
  std::ostringstream got;
  const bool finite = std::isfinite(value);
  if (finite) {
    got << value;
  } else {
    got << (std::isnan(value) ? "NaN" : "infinity");
  }
  got << " in row " << row << ", column " << column;
  require(
      false, "X",
      finite ? "magnitudes below 1e150 (weighted), whose squares stay finite" : "finite numbers",
      got.str());
}

// Runs of columns with entries in a class. Panels have only these columns, packed. Images and one-hot
// tables have many zero columns, and the work grows with the square of the number of columns.
struct ColumnRun {
  index_t full;    // first column of the run in the rows
  index_t packed;  // first column of the run in the panel
  index_t length;
};
struct ClassColumns {
  Vector<ColumnRun> runs;
  index_t count = 0;
  Vector<double> shift, scale, inverse_scale;  // packed
};

template <class T>
struct DenseRows {
  static constexpr bool kPackable = true;
  MatrixView<const T> x;

  index_t rows() const { return x.rows; }
  index_t cols() const { return x.cols; }
  void arrange(const ClassOrder&, int) {}
  void accumulate(index_t i, index_t next, double weight, double* sum, T* peak) const {
    kernels<RowKernels<T>>().accumulate(x.row(i), x.row(next), x.cols, weight, sum, peak);
  }
  void centre(index_t i, index_t next, const ColumnRun& run, const ClassColumns& columns,
              double root, double weight, T* out, double* residual) const {
    kernels<RowKernels<T>>().centre(
        x.row(i) + run.full, x.row(next) + run.full, run.length, columns.shift.data() + run.packed,
        columns.scale.data() + run.packed, root, weight, out + run.packed, residual + run.packed);
  }
  // Throws for the first entry, in row order, that is not finite or not below the limit.
  void check_entries(double limit) const {
    for (index_t i = 0; i < x.rows; ++i) {
      for (index_t j = 0; j < x.cols; ++j) {
        check_entry(static_cast<double>(x(i, j)), limit, i, j);
      }
    }
  }
};

template <class T>
struct SparseRows {
  static constexpr bool kPackable = false;
  CsrView<T> x;

  index_t rows() const { return x.rows; }
  index_t cols() const { return x.cols; }
  void arrange(const ClassOrder&, int) {}
  void accumulate(index_t i, index_t, double weight, double* sum, T* peak) const {
    for (index_t p = x.indptr[i]; p < x.indptr[i + 1]; ++p) {
      const index_t j = x.indices[p];
      const T magnitude = std::abs(x.values[p]);
      sum[j] += weight * static_cast<double>(x.values[p]);
      if (magnitude > peak[j]) peak[j] = magnitude;
    }
  }
  void centre(index_t i, index_t, const ColumnRun&, const ClassColumns& columns, double root,
              double weight, T* out, double* residual) const {
    // Dense before centring, so that differences from a large mean keep all digits.
    static thread_local Vector<double> row;
    row.assign(x.cols, 0.0);
    for (index_t p = x.indptr[i]; p < x.indptr[i + 1]; ++p) {
      row[x.indices[p]] += static_cast<double>(x.values[p]);
    }
    const RowKernels<double>& kernel = kernels<RowKernels<double>>();
    if constexpr (std::is_same_v<T, float>) {
      kernel.centre_to_float(row.data(), row.data(), x.cols, columns.shift.data(),
                             columns.scale.data(), root, weight, out, residual);
    } else {
      kernel.centre(row.data(), row.data(), x.cols, columns.shift.data(), columns.scale.data(),
                    root, weight, out, residual);
    }
  }
  void check_entries(double limit) const {
    for (index_t i = 0; i < x.rows; ++i) {
      for (index_t p = x.indptr[i]; p < x.indptr[i + 1]; ++p) {
        check_entry(static_cast<double>(x.values[p]), limit, i, x.indices[p]);
      }
    }
  }
};

}  // namespace eigenfeat
