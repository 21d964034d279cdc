#include "base/class_order.hpp"

#include "eigenfeat/vector.hpp"

namespace eigenfeat {

ClassOrder::ClassOrder(VectorView<const std::int32_t> labels, index_t n_classes)
    : rows(labels.size), begin(n_classes + 1, 0) {
  for (index_t i = 0; i < labels.size; ++i) {
    if (!(labels[i] >= 0 && labels[i] < n_classes))
      refuse("labels", "class indices in [0, " + std::to_string(n_classes) + ")",
             std::to_string(labels[i]) + " in row " + std::to_string(i));
    ++begin[labels[i] + 1];
  }
  for (index_t c = 1; c < begin.size(); ++c) begin[c] += begin[c - 1];
  Vector<index_t> next(begin.begin(), begin.end() - 1);
  for (index_t i = 0; i < labels.size; ++i) {
    index_t& position = next[labels[i]];
    rows[position++] = i;
  }
}

Vector<RowRange> cut_classes(const ClassOrder& order, index_t width) {
  Vector<RowRange> ranges;
  for (index_t c = 0; c + 1 < order.begin.size(); ++c) {
    const index_t begin = order.begin[c], n = order.count(c);
    const index_t pieces = (n + width - 1) / width;
    for (index_t piece = 0; piece < pieces; ++piece) {
      ranges.push_back({c, begin + n * piece / pieces, begin + n * (piece + 1) / pieces});
    }
  }
  return ranges;
}

}  // namespace eigenfeat
