#include "kernels/nonzero_projection.hpp"

#include <algorithm>
#include <cstdint>
#include <vector>

#include "eigenfeat/scratch.hpp"
#include "kernels/line.hpp"
#include "kernels/wide.hpp"

namespace eigenfeat {
#ifdef EIGENFEAT_WIDE

namespace {

constexpr double kMostFilled = 0.35;
constexpr index_t kFewestRows = 32;  // fewer do not repay the packing of directions
constexpr index_t kPanel = 8;        // lines of directions whose sums stay in registers

template <class T>
struct Entries {
  std::vector<index_t> starts;  // of rows
  std::vector<std::int32_t> columns;
  std::vector<T> values;
};

template <class T>
EIGENFEAT_INLINE index_t count_entries(const T* x, index_t n) {
  index_t count = 0;
  for (index_t j = 0; j < n; ++j) count += x[j] != T(0);
  return count;
}

// p (lines) += entries times a panel of kLines lines for each column
template <class T, index_t kLines>
EIGENFEAT_INLINE void add_entries(const T* values, const std::int32_t* columns, index_t count,
                                  const T* panel, T* __restrict p) {
  using V = typename Line<T>::type;
  V sum[static_cast<std::size_t>(kLines)] = {};
  for (index_t q = 0; q < count; ++q) {
    const V* line = reinterpret_cast<const V*>(panel) + columns[q] * kLines;
    for (index_t l = 0; l < kLines; ++l) sum[l] += values[q] * line[l];
  }
  V* out = reinterpret_cast<V*>(p);
  for (index_t l = 0; l < kLines; ++l) out[l] = sum[l];
}

template <class T>
EIGENFEAT_INLINE void entries_of(index_t lines, const T* values, const std::int32_t* columns,
                                 index_t count, const T* panel, T* p) {
  if (lines == kPanel) {
    add_entries<T, kPanel>(values, columns, count, panel, p);
  } else {
    add_entries<T, 1>(values, columns, count, panel, p);
  }
}

EIGENFEAT_WIDE
index_t filled(const float* x, index_t n) {
  return count_entries(x, n);
}
EIGENFEAT_WIDE
index_t filled(const double* x, index_t n) {
  return count_entries(x, n);
}
EIGENFEAT_WIDE
void sum_entries(index_t lines, const float* values, const std::int32_t* columns, index_t count,
                 const float* panel, float* p) {
  entries_of(lines, values, columns, count, panel, p);
}
EIGENFEAT_WIDE
void sum_entries(index_t lines, const double* values, const std::int32_t* columns, index_t count,
                 const double* panel, double* p) {
  entries_of(lines, values, columns, count, panel, p);
}

template <class T>
Entries<T> entries_of_rows(MatrixView<const T> x, index_t count) {
  Entries<T> out;
  out.starts.reserve(static_cast<std::size_t>(x.rows + 1));
  out.columns.reserve(static_cast<std::size_t>(count));
  out.values.reserve(static_cast<std::size_t>(count));
  out.starts.push_back(0);
  for (index_t r = 0; r < x.rows; ++r) {
    const T* row = x.row(r);
    for (index_t j = 0; j < x.cols; ++j) {
      if (row[j] == T(0)) continue;
      out.columns.push_back(static_cast<std::int32_t>(j));
      out.values.push_back(row[j]);
    }
    out.starts.push_back(static_cast<index_t>(out.values.size()));
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
  if (!has_wide() || x.rows < kFewestRows || directions.cols < kLane<T> || x.cols > most_columns)
    return false;
  const double most = kMostFilled * static_cast<double>(x.rows) * static_cast<double>(x.cols);
  index_t count = 0;
  for (index_t r = 0; r < x.rows; ++r) {
    count += filled(x.row(r), x.cols);
    if (static_cast<double>(count) > most) return false;
  }
  const Entries<T> entries = entries_of_rows(x, count);
  AlignedBuffer<T> panel(std::max<index_t>(x.cols, 1) * kPanel * kLane<T>);
  alignas(64) T sums[static_cast<std::size_t>(kPanel * kLane<T>)];
  for (index_t first = 0; first < directions.cols;) {
    const index_t left = directions.cols - first;
    const index_t lines = left >= kPanel * kLane<T> ? kPanel : 1, width = lines * kLane<T>;
    const index_t used = std::min(left, width);
    pack_panel(directions, first, used, width, panel.data());
    for (index_t r = 0; r < x.rows; ++r) {
      const std::size_t row = static_cast<std::size_t>(r);
      const std::size_t start = static_cast<std::size_t>(entries.starts[row]);
      sum_entries(lines, entries.values.data() + start, entries.columns.data() + start,
                  entries.starts[row + 1] - entries.starts[row], panel.data(), sums);
      T* out = p.row(r) + first;
      for (index_t l = 0; l < used; ++l) out[l] += sums[l];
    }
    first += used;
  }
  return true;
}

#else

template <class T>
bool add_nonzeros(MatrixView<const T>, MatrixView<const T>, MatrixView<T>) {
  return false;
}

#endif

template bool add_nonzeros<float>(MatrixView<const float>, MatrixView<const float>,
                                  MatrixView<float>);
template bool add_nonzeros<double>(MatrixView<const double>, MatrixView<const double>,
                                   MatrixView<double>);

}  // namespace eigenfeat
