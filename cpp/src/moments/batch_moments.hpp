// Private to moments: the update of class moments by one batch.
//
// The first pass computes class weights, sums and peaks, and from these shifts and scales. The
// second pass forms centred panels and rank-k updates. Only the first pass and allocate() can fail,
// before any moment is changed.
#pragma once

#include <algorithm>
#include <cmath>
#include <type_traits>
#include <utility>

#include "base/class_order.hpp"
#include "eigenfeat/lapack.hpp"
#include "eigenfeat/parallel.hpp"
#include "eigenfeat/scratch.hpp"
#include "eigenfeat/vector.hpp"

namespace eigenfeat {

// Moments of a class before the batch, and destination of its sums.
struct ClassTarget {
  double weight = 0.0;  // before the batch
  const double* mean_high = nullptr;
  const double* mean_low = nullptr;
  double* scatter = nullptr;  // (d, d) row-major, lower triangle
};

inline constexpr index_t kChunkRows = 128;  // rows that a task reads
// Bytes of a centred panel: about the cache of a core.
inline constexpr index_t kPanelBytes = index_t{1} << 22;
inline constexpr index_t kMaxTile = 800;        // columns of the largest tile of a product
inline constexpr index_t kMaxPanelRows = 4096;  // limit of sums in float, see choose_scales

// Divides d columns into tiles of equal size, at most kMaxTile columns.
inline index_t tile_size(index_t d) {
  const index_t tiles = (d + kMaxTile - 1) / kMaxTile;
  return (d + tiles - 1) / tiles;
}

template <class T>
index_t panel_rows(index_t d) {
  const index_t fit = kPanelBytes / (static_cast<index_t>(sizeof(T)) * d);
  return std::min<index_t>(std::max<index_t>(fit, 2 * kChunkRows), kMaxPanelRows);
}

// Leading dimension of a panel: whole cache lines, but not a multiple of 2 KB, which would use few
// cache sets.
template <class T>
index_t panel_stride(index_t d) {
  constexpr index_t line = static_cast<index_t>(kAlignment / sizeof(T));
  const index_t padded = (d + line - 1) / line * line;
  return padded % (32 * line) == 0 ? padded + line : padded;
}

template <class T, class Rows>
class BatchUpdate {
 public:
  BatchUpdate(Rows rows, VectorView<const std::int32_t> labels, VectorView<const double> weights,
              index_t n_classes, int n_threads)
      : rows_(std::move(rows)),
        weights_(weights),
        order_(labels, n_classes),
        n_threads_(threads_for(work_of(rows_), n_threads)),
        class_weight_(n_classes, 0.0),
        shift_(n_classes * rows_.cols(), 0.0),
        residual_(shift_.size(), 0.0),
        peak_(shift_.size(), T(0)) {
    first_pass();
  }

  double weight(index_t c) const { return class_weight_[c]; }
  // The mean of the class in the batch is shift + residual / weight.
  const double* shift(index_t c) const { return shift_.data() + c * rows_.cols(); }
  const double* residual(index_t c) const { return residual_.data() + c * rows_.cols(); }

  // Adds the centred scatter of each class, and the merge term, to its target. targets: one for
  // each class.
  void accumulate(const Vector<ClassTarget>& targets) {
    choose_columns(targets);
    if constexpr (std::is_same_v<T, float>) choose_scales(targets);
    allocate();
    for (index_t first = 0; first < segments_.size(); first += wave_) {
      const index_t last = std::min(first + wave_, segments_.size());
      gather(first, last);
      finish_classes(first, last, targets);
      multiply(first, last, targets);
    }
  }

 private:
  struct Segment {
    RowRange range;
    index_t place;  // index among the segments of its class
    bool last_of_class;
    index_t panel_rows = 0;  // rows in the panel, including the merge row
  };

  static double work_of(const Rows& rows) {
    const double width = static_cast<double>(rows.cols());
    return static_cast<double>(rows.rows()) * width * (width + 10.0);
  }
  double row_weight(index_t i) const { return weights_.empty() ? 1.0 : weights_[i]; }
  // The row at the next position of the order, or this row at the end of the range.
  index_t next_row(index_t p, index_t end) const { return order_.rows[p + 1 < end ? p + 1 : p]; }
  index_t d() const { return rows_.cols(); }
  const ClassColumns& columns(index_t c) const { return columns_[c]; }

  void first_pass();
  void check_magnitudes() const;
  void choose_columns(const Vector<ClassTarget>& targets);
  void choose_scales(const Vector<ClassTarget>& targets);
  void allocate();
  void gather(index_t first, index_t last);
  void finish_classes(index_t first, index_t last, const Vector<ClassTarget>& targets);
  void write_merge_row(const Segment& segment, const ClassTarget& target, T* row) const;
  void multiply(index_t first, index_t last, const Vector<ClassTarget>& targets);
  void add_tile(const ClassColumns& columns, index_t i0, index_t j0, MatrixView<const T> product,
                bool diagonal, double* scatter) const;
  void multiply_tile(const Segment& segment, index_t slot, index_t row_block, index_t col_block,
                     double* scatter, int thread);

  Rows rows_;
  VectorView<const double> weights_;
  ClassOrder order_;
  int n_threads_;
  Vector<double> class_weight_;
  Vector<double> shift_;
  Vector<double> residual_;
  Vector<T> peak_;
  // The scales are powers of two that keep float products in range, or ones.
  Vector<ClassColumns> columns_;

  Vector<Segment> segments_;
  index_t wave_ = 1;  // segments in memory at a time
  index_t stride_ = 0;
  index_t panel_size_ = 0;
  AlignedBuffer<double> partial_sums_;
  AlignedBuffer<T> panels_;
  Vector<AlignedBuffer<T>> tiles_;
};

}  // namespace eigenfeat
