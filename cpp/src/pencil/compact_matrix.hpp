// Private to the pencils: a symmetric matrix without zero rows and columns.
//
// A column of the data that is zero in all samples of a class (a pixel at the edge of an image, a
// word) gives a zero row and column of the moments of the class. The cost of a product is
// proportional to the square of the share of nonzero rows.
#pragma once

#include <algorithm>

#include "eigenfeat/scratch.hpp"
#include "eigenfeat/vector.hpp"
#include "eigenfeat/view.hpp"

namespace eigenfeat {

// Entries that make a row nonzero.
enum class Entries { all, beside_diagonal };

template <class T>
class CompactMatrix {
 public:
  // Copies the nonzero rows and columns if they are few enough; otherwise refers to `matrix`, which
  // must outlive this object.
  void read(MatrixView<const T> matrix, Entries entries) {
    const index_t d = matrix.rows;
    matrix_ = matrix;
    rows_.clear();
    for (index_t i = 0; i < d; ++i) {
      if (stays(matrix, i, entries)) rows_.push_back(i);
    }
    if (rows_.empty()) rows_.push_back(0);  // avoids products of order zero
    whole_ = !worthwhile(rows_.size(), d);
    if (whole_) {
      rows_.resize(d);
      for (index_t i = 0; i < d; ++i) rows_[i] = i;
      return;
    }
    const index_t n = rows_.size();
    copy_.reserve(n * n);
    // Runs of adjacent rows, such as the used pixels of an image, are copied together.
    Vector<index_t> begins;  // first index of each run, among the nonzero rows
    for (index_t k = 0; k < n; ++k) {
      if (k == 0 || rows_[k] != rows_[k - 1] + 1) begins.push_back(k);
    }
    begins.push_back(n);
    for (index_t i = 0; i < n; ++i) {
      const T* from = matrix.row(rows_[i]);
      T* to = copy_.data() + i * n;
      for (index_t run = 0; run + 1 < begins.size(); ++run) {
        const index_t first = begins[run];
        std::copy_n(from + rows_[first], begins[run + 1] - first, to + first);
      }
    }
  }
  void read_whole(MatrixView<const T> matrix) {
    matrix_ = matrix;
    rows_.resize(matrix.rows);
    for (index_t i = 0; i < matrix.rows; ++i) rows_[i] = i;
    whole_ = true;
  }

  bool is_whole() const { return whole_; }
  MatrixView<const T> matrix() const { return matrix_; }  // the original matrix
  MatrixView<const T> view() const {
    return whole_ ? matrix_ : row_major<const T>(copy_.data(), order(), order());
  }
  const Vector<index_t>& rows() const { return rows_; }  // nonzero rows, ascending
  index_t order() const { return rows_.size(); }

 private:
  // Below this share, products cost less than two thirds.
  static bool worthwhile(index_t n, index_t d) { return 5 * n <= 4 * d; }

  // NaN counts as nonzero. Entries are tested block by block, without a branch for each entry.
  static bool any_entry(const T* begin, const T* end) {
    constexpr index_t kBlock = 32;
    for (; begin < end; begin += std::min<index_t>(kBlock, end - begin)) {
      const index_t n = std::min<index_t>(kBlock, end - begin);
      int entries = 0;
      for (index_t k = 0; k < n; ++k) entries += begin[k] == T(0) ? 0 : 1;
      if (entries > 0) return true;
    }
    return false;
  }
  static bool stays(MatrixView<const T> matrix, index_t i, Entries entries) {
    const T *row = matrix.row(i), *end = row + matrix.cols;
    if (entries == Entries::all) return any_entry(row, end);
    return any_entry(row, row + i) || any_entry(row + i + 1, end);
  }

  bool whole_ = true;
  MatrixView<const T> matrix_;
  Vector<index_t> rows_;
  AlignedBuffer<T> copy_;
};

// Row k of out <- row rows[k] of x; rows have `width` numbers.
template <class T>
void gather_rows(const Vector<index_t>& rows, const T* x, index_t width, T* out) {
  for (index_t k = 0; k < rows.size(); ++k) {
    std::copy(x + rows[k] * width, x + (rows[k] + 1) * width, out + k * width);
  }
}

// Row rows[k] of out <- row k of x; the other rows of out (n_rows) become zero.
template <class T>
void scatter_rows(const Vector<index_t>& rows, const T* x, index_t width, index_t n_rows, T* out) {
  std::fill(out, out + n_rows * width, T(0));
  for (index_t k = 0; k < rows.size(); ++k) {
    std::copy(x + k * width, x + (k + 1) * width, out + rows[k] * width);
  }
}

}  // namespace eigenfeat
