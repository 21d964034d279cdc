#include "eigenfeat/sparse_rows.hpp"

#include <algorithm>
#include <cstddef>
#include <string>

#include "base/shape_text.hpp"
#include "eigenfeat/parallel.hpp"
#include "eigenfeat/vector.hpp"
#include "kernels/sparse_kernels.hpp"

namespace eigenfeat {
namespace {

constexpr index_t kTaskEntries = index_t{1} << 15;  // entries after which a task ends
constexpr index_t kTaskRows = index_t{1} << 12;     // rows after which a task ends

// First rows of the tasks, and the end; they depend on the numbers of entries alone.
Vector<index_t> tasks_of(const index_t* indptr, index_t rows) {
  Vector<index_t> starts{0};
  index_t begin = 0;
  for (index_t row = 0; row < rows; ++row) {
    if (indptr[row + 1] - indptr[begin] >= kTaskEntries || row + 1 - begin >= kTaskRows) {
      begin = row + 1;
      starts.push_back(begin);
    }
  }
  if (starts.back() != rows) starts.push_back(rows);
  return starts;
}

}  // namespace

template <class T>
void check_rows(const CompactRows<T>& x) {
  require(x.indptr[0] == 0, "indptr", "a leading 0", std::to_string(x.indptr[0]));
  for (index_t i = 0; i < x.rows; ++i) {
    if (!(x.indptr[i] <= x.indptr[i + 1]))
      refuse("indptr", "numbers that never fall",
             std::to_string(x.indptr[i + 1]) + " after " + std::to_string(x.indptr[i]));
  }
  for (index_t p = 0; p < x.indptr[x.rows]; ++p) {
    if (!(x.indices[p] >= 0 && x.indices[p] < x.cols))
      refuse("indices", "columns in [0, " + std::to_string(x.cols) + ")",
             std::to_string(x.indices[p]));
  }
}

template <class T, class S>
void multiply_rows(const CompactRows<T>& x, MatrixView<const S> v, MatrixView<S> out, bool add,
                   int n_threads) {
  require(v.rows == x.cols, "V", std::to_string(x.cols) + " rows", std::to_string(v.rows));
  require(out.rows == x.rows && out.cols == v.cols, "out",
          "shape (" + std::to_string(x.rows) + ", " + std::to_string(v.cols) + ")",
          "(" + std::to_string(out.rows) + ", " + std::to_string(out.cols) + ")");
  require(v.is_row_major() && out.is_row_major(), "V, out", "row-major matrices",
          shape_text(v) + " and " + shape_text(out));
  const SparseBlock<S> block{v.data, v.row_stride, out.data, out.row_stride, v.cols};
  const Vector<index_t> starts = tasks_of(x.indptr, x.rows);
  const double work = 2.0 * static_cast<double>(x.indptr[x.rows]) * static_cast<double>(v.cols);
  const index_t n_tasks = starts.size() - 1;
  for_blocks(n_tasks, threads_for(work, n_threads), [&](index_t task, int) {
    kernels<SparseKernels<T, S>>().multiply(x, starts[task], starts[task + 1], block, add);
  });
}

template <class T>
void transpose_rows(const CompactRows<T>& x, VectorView<T> values, VectorView<std::int32_t> indices,
                    VectorView<index_t> indptr) {
  const index_t entries = x.indptr[x.rows];
  require(values.size == entries && indices.size == entries, "values",
          std::to_string(entries) + " entries", std::to_string(values.size));
  require(indptr.size == x.cols + 1, "indptr", std::to_string(x.cols + 1) + " entries",
          std::to_string(indptr.size));
  std::fill(indptr.data, indptr.data + indptr.size, index_t{0});
  for (index_t p = 0; p < entries; ++p) ++indptr[x.indices[p] + 1];
  for (index_t j = 0; j < x.cols; ++j) indptr[j + 1] += indptr[j];
  Vector<index_t> next(indptr.data, indptr.data + x.cols);
  for (index_t row = 0; row < x.rows; ++row) {
    for (index_t p = x.indptr[row]; p < x.indptr[row + 1]; ++p) {
      const index_t at = next[x.indices[p]]++;
      values[at] = x.values[p];
      indices[at] = static_cast<std::int32_t>(row);
    }
  }
}

template void check_rows<float>(const CompactRows<float>&);
template void check_rows<double>(const CompactRows<double>&);
template void multiply_rows<float, float>(const CompactRows<float>&, MatrixView<const float>,
                                          MatrixView<float>, bool, int);
template void multiply_rows<float, double>(const CompactRows<float>&, MatrixView<const double>,
                                           MatrixView<double>, bool, int);
template void multiply_rows<double, double>(const CompactRows<double>&, MatrixView<const double>,
                                            MatrixView<double>, bool, int);
template void transpose_rows<float>(const CompactRows<float>&, VectorView<float>,
                                    VectorView<std::int32_t>, VectorView<index_t>);
template void transpose_rows<double>(const CompactRows<double>&, VectorView<double>,
                                     VectorView<std::int32_t>, VectorView<index_t>);

}  // namespace eigenfeat
