#include "expansion/nonzero_projection.hpp"

#include <algorithm>
#include <cstdint>

#include "eigenfeat/scratch.hpp"
#include "eigenfeat/vector.hpp"
#include "kernels/nonzero_kernels.hpp"

namespace eigenfeat {
namespace {

// Each nonzero entry is processed at about half the rate of a product of matrices, and counting and
// packing take some time, too: with a larger share of nonzero entries, the product is faster.
constexpr double kMaxFilled = 0.35;
// With fewer rows, packing the directions takes longer than it saves.
constexpr index_t kMinRows = 32;

template <class T>
struct Entries {
  Vector<index_t> starts;  // first entry of each row
  Vector<std::int32_t> columns;
  Vector<T> values;
};

template <class T>
Entries<T> entries_of_rows(MatrixView<const T> x, index_t count) {
  Entries<T> out;
  out.starts.reserve(x.rows + 1);
  out.columns.reserve(count);
  out.values.reserve(count);
  out.starts.push_back(0);
  for (index_t r = 0; r < x.rows; ++r) {
    const T* row = x.row(r);
    for (index_t j = 0; j < x.cols; ++j) {
      if (row[j] == T(0)) continue;
      out.columns.push_back(static_cast<std::int32_t>(j));
      out.values.push_back(row[j]);
    }
    out.starts.push_back(out.values.size());
  }
  return out;
}

// panel (d, width) <- columns [first, first + count) of directions, padded with zeros
template <class T>
void pack_panel(MatrixView<const T> directions, index_t first, index_t count, index_t width,
                T* panel) {
  for (index_t j = 0; j < directions.rows; ++j) {
    const T* from = directions.row(j) + first;
    T* to = panel + j * width;
    std::copy(from, from + count, to);
    std::fill(to + count, to + width, T(0));
  }
}

}  // namespace

template <class T>
bool add_nonzeros(MatrixView<const T> x, MatrixView<const T> directions, MatrixView<T> p) {
  constexpr index_t most_columns = index_t{1} << 30;
  const NonzeroKernels<T>& kernel = kernels<NonzeroKernels<T>>();
  const index_t unit = kernel.unit, panel_width = kernel.panel * unit;
  if (x.rows < kMinRows || directions.cols < unit || x.cols > most_columns) return false;
  const double most = kMaxFilled * static_cast<double>(x.rows) * static_cast<double>(x.cols);
  index_t count = 0;
  for (index_t r = 0; r < x.rows; ++r) {
    count += kernel.count(x.row(r), x.cols);
    if (static_cast<double>(count) > most) return false;
  }
  const Entries<T> entries = entries_of_rows(x, count);
  AlignedBuffer<T> panel(std::max<index_t>(x.cols, 1) * panel_width), sums(panel_width);
  for (index_t first = 0; first < directions.cols;) {
    const index_t left = directions.cols - first;
    const index_t width = left >= panel_width ? panel_width : unit;
    const index_t used = std::min(left, width);
    pack_panel(directions, first, used, width, panel.data());
    for (index_t r = 0; r < x.rows; ++r) {
      const index_t start = entries.starts[r];
      kernel.sum(width / unit, entries.values.data() + start, entries.columns.data() + start,
                 entries.starts[r + 1] - start, panel.data(), sums.data());
      T* out = p.row(r) + first;
      for (index_t l = 0; l < used; ++l) out[l] += sums[l];
    }
    first += used;
  }
  return true;
}

template bool add_nonzeros<float>(MatrixView<const float>, MatrixView<const float>,
                                  MatrixView<float>);
template bool add_nonzeros<double>(MatrixView<const double>, MatrixView<const double>,
                                   MatrixView<double>);

}  // namespace eigenfeat
