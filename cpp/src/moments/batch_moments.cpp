#include "moments/batch_moments.hpp"

#include <algorithm>
#include <sstream>

#include "eigenfeat/vector.hpp"
#include "moments/column_rows.hpp"

namespace eigenfeat {
namespace {

constexpr index_t kMaxChunks = 1024;  // bounds the partial sums of the first pass
// Largest share of nonzero columns with which columns are packed.
constexpr double kPackedShare = 0.95;
constexpr double kLargest = 1e150;  // limit of entries, whose squares and sums are finite in double

std::string text_of(double value) {
  std::ostringstream stream;
  stream << value;
  return stream.str();
}

void check_weights(VectorView<const double> weights) {
  for (index_t i = 0; i < weights.size; ++i) {
    if (!(std::isfinite(weights[i]) && weights[i] >= 0.0))
      refuse("sample_weight", "finite nonnegative numbers",
             text_of(weights[i]) + " in row " + std::to_string(i));
  }
}

// C <- left right^T + beta C; only the upper triangle if left and right are equal.
template <class T>
void rank_update(bool diagonal, MatrixView<const T> left, MatrixView<const T> right, T beta,
                 MatrixView<T> c) {
  if (diagonal) {
    syrk<T>(Triangle::upper, Op::none, T(1), left, beta, c);
  } else {
    gemm<T>(Op::none, Op::transpose, T(1), left, right, beta, c);
  }
}

}  // namespace

// Weights, sums and largest magnitudes of the classes, by chunks merged in order; shift = sum /
// weight.
template <class T, class Rows>
void BatchUpdate<T, Rows>::first_pass() {
  check_weights(weights_);
  rows_.arrange(order_, n_threads_);
  const index_t n = rows_.rows(), width = d();
  const auto chunks = cut_classes(order_, std::max(kChunkRows, (n + kMaxChunks - 1) / kMaxChunks));
  const index_t n_chunks = chunks.size();
  AlignedBuffer<double> sums = AlignedBuffer<double>::zeros(n_chunks * width);
  AlignedBuffer<T> peaks = AlignedBuffer<T>::zeros(n_chunks * width);
  Vector<double> chunk_weight(chunks.size(), 0.0);
  for_blocks(n_chunks, n_threads_, [&](index_t b, int) {
    const RowRange& chunk = chunks[b];
    double total = 0.0;
    for (index_t p = chunk.begin; p < chunk.end; ++p) {
      const index_t i = order_.rows[p];
      const double weight = row_weight(i);
      rows_.accumulate(i, next_row(p, chunk.end), weight, sums.data() + b * width,
                       peaks.data() + b * width);
      total += weight;
    }
    chunk_weight[b] = total;
  });
  for (index_t b = 0; b < n_chunks; ++b) {
    const index_t c = chunks[b].c;
    class_weight_[c] += chunk_weight[b];
    double* sum = shift_.data() + c * width;
    T* peak = peak_.data() + c * width;
    for (index_t j = 0; j < width; ++j) {
      sum[j] += sums[b * width + j];
      peak[j] = std::max(peak[j], peaks[b * width + j]);
    }
  }
  check_magnitudes();
  for (index_t c = 0; c < class_weight_.size(); ++c) {
    if (class_weight_[c] <= 0.0) continue;
    double* sum = shift_.data() + c * width;
    for (index_t j = 0; j < width; ++j) sum[j] /= class_weight_[c];
  }
}

template <class T, class Rows>
void BatchUpdate<T, Rows>::check_magnitudes() const {
  const bool finite =
      std::all_of(shift_.begin(), shift_.end(), [](double s) { return std::isfinite(s); });
  const double peak =
      peak_.empty() ? 0.0 : static_cast<double>(*std::max_element(peak_.begin(), peak_.end()));
  const double heaviest =
      weights_.empty() ? 1.0 : *std::max_element(weights_.data, weights_.data + weights_.size);
  const double limit = kLargest / std::max(std::sqrt(heaviest), 1e-150);
  if (!finite || !(peak < limit)) rows_.check_entries(limit);
  require(finite, "X", "samples whose weighted sums are finite", "sums that overflow");
}

// Leaves out columns that are zero in the batch and in the previous mean. With few zero columns, or
// sparse rows, all columns are one run.
template <class T, class Rows>
void BatchUpdate<T, Rows>::choose_columns(const Vector<ClassTarget>& targets) {
  columns_.resize(class_weight_.size());
  for (index_t c = 0; c < columns_.size(); ++c) {
    ClassColumns& chosen = columns_[c];
    if (weight(c) <= 0.0) continue;
    const ClassTarget& target = targets[c];
    for (index_t j = 0; j < d() && Rows::kPackable; ++j) {
      const bool zero =
          peak_[c * d() + j] == T(0) &&
          (target.weight <= 0.0 || (target.mean_high[j] == 0.0 && target.mean_low[j] == 0.0));
      if (zero) continue;
      if (chosen.runs.empty() || chosen.runs.back().full + chosen.runs.back().length != j) {
        chosen.runs.push_back({j, chosen.count, 0});
      }
      ++chosen.runs.back().length;
      ++chosen.count;
    }
    if (chosen.count == 0 ||
        static_cast<double>(chosen.count) > kPackedShare * static_cast<double>(d())) {
      chosen.runs.assign(1, {0, 0, d()});
      chosen.count = d();
    }
    for (const ColumnRun& run : chosen.runs) {
      chosen.shift.insert(chosen.shift.end(), shift(c) + run.full,
                          shift(c) + run.full + run.length);
    }
    chosen.scale.assign(chosen.count, 1.0);
    chosen.inverse_scale = chosen.scale;
  }
}

// Float products of 4,096 rows neither overflow nor vanish for magnitudes in [2^-40, 2^50]. Other
// columns are scaled by a power of two, which is exact.
template <class T, class Rows>
void BatchUpdate<T, Rows>::choose_scales(const Vector<ClassTarget>& targets) {
  const double heaviest =
      weights_.empty() ? 1.0 : *std::max_element(weights_.data, weights_.data + weights_.size);
  for (index_t c = 0; c < class_weight_.size(); ++c) {
    const double added = class_weight_[c], before = targets[c].weight;
    const double coefficient = std::sqrt(before * (added / std::max(before + added, added)));
    for (const ColumnRun& run : columns_[c].runs) {
      for (index_t k = 0; k < run.length; ++k) {
        const index_t j = run.full + k;
        const index_t at = c * d() + j;
        double magnitude = 2.0 * static_cast<double>(peak_[at]) * std::sqrt(heaviest);
        if (before > 0.0) {
          magnitude =
              std::max(magnitude, coefficient * std::abs(shift_[at] - targets[c].mean_high[j]));
        }
        const bool in_range = magnitude == 0.0 || (magnitude > 0x1p-40 && magnitude < 0x1p50);
        if (in_range) continue;
        const index_t packed = run.packed + k;
        columns_[c].scale[packed] = std::ldexp(1.0, -std::ilogb(magnitude));
        columns_[c].inverse_scale[packed] = std::ldexp(1.0, std::ilogb(magnitude));
      }
    }
  }
}

template <class T, class Rows>
void BatchUpdate<T, Rows>::allocate() {
  const index_t most = panel_rows<T>(d());
  index_t longest = 0, place = 0, previous = -1;
  for (const RowRange& range : cut_classes(order_, most)) {
    if (class_weight_[range.c] <= 0.0) continue;
    place = range.c == previous ? place + 1 : 0;
    previous = range.c;
    const bool last = range.end == order_.begin[range.c + 1];
    segments_.push_back({range, place, last, range.end - range.begin});
    longest = std::max(longest, range.end - range.begin + 1);
  }
  // Classes alternate, so that the segments of a wave are added to different sums.
  std::stable_sort(segments_.begin(), segments_.end(),
                   [](const Segment& a, const Segment& b) { return a.place < b.place; });
  // Short segments, of many small classes, share the memory of a few full panels.
  const index_t held =
      std::max<index_t>(4, 2 * n_threads_) * (most + 1) / std::max<index_t>(longest, 1);
  wave_ = std::max<index_t>(1, std::min(held, segments_.size()));
  stride_ = panel_stride<T>(d());
  panel_size_ = stride_ * longest;
  panels_.reserve(wave_ * panel_size_);
  const index_t chunks_a_panel = (longest + kChunkRows - 1) / kChunkRows;
  partial_sums_.reserve(wave_ * chunks_a_panel * d());
  tiles_.resize(n_threads_);
  const bool all_direct = std::is_same_v<T, double> &&
                          std::all_of(columns_.begin(), columns_.end(), [&](const ClassColumns& c) {
                            return c.count == 0 || c.count == d();
                          });
  if (all_direct) return;
  for (auto& tile : tiles_) tile.reserve(kMaxTile * kMaxTile);
}

// Writes sqrt(w) (x - shift) scale for the rows of segments [first, last), and their residual sums.
template <class T, class Rows>
void BatchUpdate<T, Rows>::gather(index_t first, index_t last) {
  struct Task {
    index_t slot;
    index_t begin;  // position in the order
    index_t end;
    index_t row;  // row of the panel
  };
  Vector<Task> tasks;
  for (index_t s = first; s < last; ++s) {
    const RowRange& range = segments_[s].range;
    for (index_t begin = range.begin; begin < range.end; begin += kChunkRows) {
      tasks.push_back({s, begin, std::min(begin + kChunkRows, range.end), begin - range.begin});
    }
  }
  for_blocks(tasks.size(), n_threads_, [&](index_t b, int) {
    const Task& task = tasks[b];
    const ClassColumns& chosen = columns(segments_[task.slot].range.c);
    double* residual = partial_sums_.data() + b * d();
    std::fill(residual, residual + d(), 0.0);
    T* out = panels_.data() + (task.slot - first) * panel_size_ + task.row * stride_;
    for (index_t p = task.begin; p < task.end; ++p, out += stride_) {
      const index_t i = order_.rows[p];
      const double weight = row_weight(i);
      const index_t next = next_row(p, task.end);
      for (const ColumnRun& run : chosen.runs) {
        rows_.centre(i, next, run, chosen, std::sqrt(weight), weight, out, residual);
      }
    }
  });
  for (index_t b = 0; b < tasks.size(); ++b) {
    double* residual = residual_.data() + segments_[tasks[b].slot].range.c * d();
    const double* partial = partial_sums_.data() + b * d();
    for (const ColumnRun& run : columns(segments_[tasks[b].slot].range.c).runs) {
      for (index_t k = 0; k < run.length; ++k) residual[run.full + k] += partial[run.packed + k];
    }
  }
}

// After all rows of a class are in panels, the merge with its previous moments is a further row of
// the panel.
template <class T, class Rows>
void BatchUpdate<T, Rows>::finish_classes(index_t first, index_t last,
                                          const Vector<ClassTarget>& targets) {
  for (index_t s = first; s < last; ++s) {
    Segment& segment = segments_[s];
    const ClassTarget& target = targets[segment.range.c];
    if (!segment.last_of_class || target.weight <= 0.0) continue;
    T* row = panels_.data() + (s - first) * panel_size_ + segment.panel_rows * stride_;
    write_merge_row(segment, target, row);
    ++segment.panel_rows;
  }
}

// sqrt(W_a W_b / (W_a + W_b)) (mean_b - mean_a)
template <class T, class Rows>
void BatchUpdate<T, Rows>::write_merge_row(const Segment& segment, const ClassTarget& target,
                                           T* row) const {
  const index_t c = segment.range.c;
  const double added = weight(c),
               coefficient = std::sqrt(target.weight / (target.weight + added) * added);
  for (const ColumnRun& run : columns(c).runs) {
    for (index_t k = 0; k < run.length; ++k) {
      const index_t j = run.full + k, packed = run.packed + k;
      const double low = residual(c)[j] / added - target.mean_low[j];
      const double delta = (shift(c)[j] - target.mean_high[j]) + low;
      row[packed] = static_cast<T>(coefficient * delta * columns(c).scale[packed]);
    }
  }
}

template <class T, class Rows>
void BatchUpdate<T, Rows>::multiply(index_t first, index_t last,
                                    const Vector<ClassTarget>& targets) {
  struct Task {
    Vector<index_t> segments;  // segments of one class, in order
    index_t row_block, col_block;
  };
  Vector<Vector<index_t>> by_class(class_weight_.size());
  for (index_t s = first; s < last; ++s) {
    by_class[segments_[s].range.c].push_back(s);
  }
  Vector<Task> tasks;
  for (const auto& segments : by_class) {
    if (segments.empty()) continue;
    const index_t width = columns(segments_[segments.front()].range.c).count;
    const index_t blocks = (width + tile_size(width) - 1) / tile_size(width);
    for (index_t i = 0; i < blocks; ++i) {
      for (index_t j = 0; j <= i; ++j) tasks.push_back({segments, i, j});
    }
  }
  for_blocks(tasks.size(), n_threads_, [&](index_t b, int thread) {
    const Task& task = tasks[b];
    for (const index_t s : task.segments) {
      const ClassTarget& target = targets[segments_[s].range.c];
      multiply_tile(segments_[s], s - first, task.row_block, task.col_block, target.scatter,
                    thread);
    }
  });
}

// The lower triangle in row-major order is the upper triangle of the column-major view.
template <class T, class Rows>
void BatchUpdate<T, Rows>::multiply_tile(const Segment& segment, index_t slot, index_t row_block,
                                         index_t col_block, double* scatter, int thread) {
  const ClassColumns& chosen = columns(segment.range.c);
  const index_t width = chosen.count, tile = tile_size(width);
  const index_t i0 = row_block * tile, n_i = std::min(tile, width - i0);
  const index_t j0 = col_block * tile, n_j = std::min(tile, width - j0);
  const bool diagonal = row_block == col_block;
  const T* panel = panels_.data() + slot * panel_size_;
  const MatrixView<const T> rows = column_major(panel, width, segment.panel_rows, stride_);
  const auto left = rows.block(j0, 0, n_j, rows.cols), right = rows.block(i0, 0, n_i, rows.cols);
  if constexpr (std::is_same_v<T, double>) {
    if (width == d()) {
      rank_update(diagonal, left, right, T(1),
                  column_major(scatter, width, width).block(j0, i0, n_j, n_i));
      return;
    }
  }
  const MatrixView<T> product = column_major(tiles_[thread].data(), n_j, n_i);
  rank_update(diagonal, left, right, T(0), product);
  add_tile(chosen, i0, j0, product, diagonal, scatter);
}

// Adds a product (stored transposed) of packed rows from i0 and columns from j0 to the scatter.
template <class T, class Rows>
void BatchUpdate<T, Rows>::add_tile(const ClassColumns& chosen, index_t i0, index_t j0,
                                    MatrixView<const T> product, bool diagonal,
                                    double* scatter) const {
  const double* scale = chosen.inverse_scale.data();
  index_t row_run = 0;
  for (index_t i = 0; i < product.cols; ++i) {
    while (chosen.runs[row_run].packed + chosen.runs[row_run].length <= i0 + i) ++row_run;
    const index_t row = chosen.runs[row_run].full + (i0 + i - chosen.runs[row_run].packed);
    const index_t end = j0 + (diagonal ? i + 1 : product.rows);
    for (const ColumnRun& run : chosen.runs) {
      const index_t first = std::max(run.packed, j0), last = std::min(run.packed + run.length, end);
      if (first >= end) break;
      if (first >= last) continue;
      kernels<RowKernels<T>>().add_scaled(product.col(i) + (first - j0), last - first,
                                          scale + first, scale[i0 + i],
                                          scatter + row * d() + run.full + (first - run.packed));
    }
  }
}

template class BatchUpdate<float, DenseRows<float>>;
template class BatchUpdate<double, DenseRows<double>>;
template class BatchUpdate<float, ColumnRows<float>>;
template class BatchUpdate<double, ColumnRows<double>>;
template class BatchUpdate<float, SparseRows<float>>;
template class BatchUpdate<double, SparseRows<double>>;

}  // namespace eigenfeat
