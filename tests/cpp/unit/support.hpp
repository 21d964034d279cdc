// Helpers of all C++ tests: storage for views, seeded random data, and pencils with a known
// spectrum.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <initializer_list>
#include <limits>
#include <random>
#include <stdexcept>
#include <string>

#include "eigenfeat/vector.hpp"
#include "eigenfeat/view.hpp"

namespace eigenfeat::support {

enum class Order { rows, columns };

// A matrix that owns its entries, row-major or column-major. `padding` NaN follow each line:
// results of a kernel that reads them are NaN.
template <class T>
class Matrix {
 public:
  Matrix(index_t rows, index_t cols, Order order = Order::rows, index_t padding = 0)
      : rows_(rows),
        cols_(cols),
        order_(order),
        leading_((order == Order::rows ? cols : rows) + padding),
        entries_(leading_ * (order == Order::rows ? rows : cols),
                 std::numeric_limits<T>::quiet_NaN()) {
    for (index_t i = 0; i < rows; ++i) {
      for (index_t j = 0; j < cols; ++j) (*this)(i, j) = T(0);
    }
  }
  Matrix(index_t rows, index_t cols, std::initializer_list<double> by_rows,
         Order order = Order::rows)
      : Matrix(rows, cols, order) {
    if (static_cast<index_t>(by_rows.size()) != rows * cols)
      throw std::logic_error("Matrix: wrong size");
    index_t k = 0;
    for (const double value : by_rows) {
      (*this)(k / cols, k % cols) = static_cast<T>(value);
      ++k;
    }
  }

  MatrixView<T> view() {
    return order_ == Order::rows ? row_major(entries_.data(), rows_, cols_, leading_)
                                 : column_major(entries_.data(), rows_, cols_, leading_);
  }
  MatrixView<const T> view() const {
    return order_ == Order::rows ? row_major(entries_.data(), rows_, cols_, leading_)
                                 : column_major(entries_.data(), rows_, cols_, leading_);
  }
  MatrixView<const T> read() const { return view(); }
  T& operator()(index_t i, index_t j) { return view()(i, j); }
  const T& operator()(index_t i, index_t j) const { return view()(i, j); }
  index_t rows() const { return rows_; }
  index_t cols() const { return cols_; }
  bool padding_untouched() const {
    const index_t used = order_ == Order::rows ? cols_ : rows_;
    for (index_t k = 0; k < entries_.size(); ++k) {
      if (k % leading_ >= used && !std::isnan(entries_[k])) return false;
    }
    return true;
  }

 private:
  index_t rows_;
  index_t cols_;
  Order order_;
  index_t leading_;
  Vector<T> entries_;
};

template <class T>
VectorView<const T> read(const Vector<T>& values) {
  return {values.data(), values.size()};
}

template <class T>
VectorView<T> write(Vector<T>& values) {
  return {values.data(), values.size()};
}

// Whether all bits agree, also those of NaN and of the sign of zero.
template <class T>
bool same_bits(const Vector<T>& a, const Vector<T>& b) {
  return a.size() == b.size() &&
         (a.empty() ||
          std::memcmp(a.data(), b.data(), sizeof(T) * static_cast<std::size_t>(a.size())) == 0);
}

template <class T>
long double epsilon() {
  return static_cast<long double>(std::numeric_limits<T>::epsilon());
}

// Seeded standard normal numbers.
class Random {
 public:
  explicit Random(std::uint64_t seed) : engine_(seed) {}
  double normal() { return normal_(engine_); }
  double uniform() { return uniform_(engine_); }
  index_t below(index_t n) {
    return std::min(n - 1, static_cast<index_t>(uniform() * static_cast<double>(n)));
  }

  template <class T>
  Matrix<T> normal_matrix(index_t rows, index_t cols, Order order = Order::rows,
                          index_t padding = 0) {
    Matrix<T> result(rows, cols, order, padding);
    for (index_t i = 0; i < rows; ++i) {
      for (index_t j = 0; j < cols; ++j) result(i, j) = static_cast<T>(normal());
    }
    return result;
  }
  Vector<std::int32_t> labels(index_t n, index_t n_classes) {
    Vector<std::int32_t> result(n);
    for (auto& label : result) label = static_cast<std::int32_t>(below(n_classes));
    return result;
  }
  // G G^T / d + floor I with G normal: condition number about 4 / floor + 1.
  template <class T>
  Matrix<T> positive_definite(index_t d, double floor, Order order = Order::rows) {
    const Matrix<double> g = normal_matrix<double>(d, d);
    Matrix<T> result(d, d, order);
    for (index_t i = 0; i < d; ++i) {
      for (index_t j = 0; j <= i; ++j) {
        double sum = i == j ? floor : 0.0;
        for (index_t k = 0; k < d; ++k) sum += g(i, k) * g(j, k) / static_cast<double>(d);
        result(i, j) = result(j, i) = static_cast<T>(sum);
      }
    }
    return result;
  }
  template <class T>
  Matrix<T> symmetric(index_t d, Order order = Order::rows) {
    Matrix<T> result(d, d, order);
    for (index_t i = 0; i < d; ++i) {
      for (index_t j = 0; j <= i; ++j) result(i, j) = result(j, i) = static_cast<T>(normal());
    }
    return result;
  }

 private:
  std::mt19937_64 engine_;
  std::normal_distribution<double> normal_{0.0, 1.0};
  std::uniform_real_distribution<double> uniform_{0.0, 1.0};
};

// CSR rows that own their arrays.
template <class T>
struct SparseRows {
  index_t cols = 0;
  Vector<T> values;
  Vector<index_t> indices;
  Vector<index_t> indptr{0};

  void add(index_t column, double value) {
    indices.push_back(column);
    values.push_back(static_cast<T>(value));
  }
  void end_row() { indptr.push_back(values.size()); }
  CsrView<T> view() const {
    return {values.data(), indices.data(), indptr.data(), indptr.size() - 1, cols};
  }
  Matrix<T> dense() const {
    Matrix<T> result(indptr.size() - 1, cols);
    for (index_t i = 0; i < result.rows(); ++i) {
      for (index_t k = indptr[i]; k < indptr[i + 1]; ++k) {
        result(i, indices[k]) += values[k];
      }
    }
    return result;
  }
};

// About density * cols entries in each row, in random order; some rows stay empty.
template <class T>
SparseRows<T> random_sparse(Random& random, index_t rows, index_t cols, double density) {
  SparseRows<T> result;
  result.cols = cols;
  Vector<index_t> columns(cols);
  for (index_t i = 0; i < rows; ++i) {
    for (index_t j = 0; j < cols; ++j) columns[j] = j;
    for (index_t j = cols - 1; j > 0; --j) std::swap(columns[j], columns[random.below(j + 1)]);
    for (index_t j = 0; j < cols && i % 17 != 3; ++j) {
      if (random.uniform() < density) result.add(columns[j], random.normal());
    }
    result.end_row();
  }
  return result;
}

// The message of the exception that f throws, or "" if it throws none of this type.
template <class Exception, class F>
std::string message_of(F&& f) {
  try {
    f();
  } catch (const Exception& exception) {
    return exception.what();
  }
  return "";
}

inline bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

inline bool starts_with(const std::string& text, const std::string& part) {
  return text.rfind(part, 0) == 0;
}

}  // namespace eigenfeat::support
