// Shapes in messages about misuse.
#pragma once

#include <string>

#include "eigenfeat/view.hpp"

namespace eigenfeat {

inline std::string shape_text(index_t rows, index_t cols) {
  return "(" + std::to_string(rows) + ", " + std::to_string(cols) + ")";
}

// The shape and, if the layout is not row-major, the strides.
template <class T>
std::string shape_text(MatrixView<T> m) {
  std::string text = shape_text(m.rows, m.cols);
  if (!m.is_row_major()) text += " with strides " + shape_text(m.row_stride, m.col_stride);
  return text;
}

}  // namespace eigenfeat
