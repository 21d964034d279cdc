#include "base/class_order.hpp"

namespace eigenfeat {

ClassOrder::ClassOrder(VectorView<const std::int32_t> labels, index_t n_classes)
    : rows(static_cast<std::size_t>(labels.size)),
      begin(static_cast<std::size_t>(n_classes) + 1, 0) {
  for (index_t i = 0; i < labels.size; ++i) {
    require(labels[i] >= 0 && labels[i] < n_classes, "labels",
            "class indices in [0, " + std::to_string(n_classes) + ")",
            std::to_string(labels[i]) + " in row " + std::to_string(i));
    ++begin[static_cast<std::size_t>(labels[i]) + 1];
  }
  for (std::size_t c = 1; c < begin.size(); ++c) begin[c] += begin[c - 1];
  std::vector<index_t> next(begin.begin(), begin.end() - 1);
  for (index_t i = 0; i < labels.size; ++i) {
    index_t& position = next[static_cast<std::size_t>(labels[i])];
    rows[static_cast<std::size_t>(position++)] = i;
  }
}

std::vector<RowRange> cut_classes(const ClassOrder& order, index_t width) {
  std::vector<RowRange> ranges;
  for (index_t c = 0; c + 1 < static_cast<index_t>(order.begin.size()); ++c) {
    const index_t begin = order.begin[static_cast<std::size_t>(c)], n = order.count(c);
    const index_t pieces = (n + width - 1) / width;
    for (index_t piece = 0; piece < pieces; ++piece) {
      ranges.push_back({c, begin + n * piece / pieces, begin + n * (piece + 1) / pieces});
    }
  }
  return ranges;
}

}  // namespace eigenfeat
