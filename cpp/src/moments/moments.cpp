#include "eigenfeat/moments.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <optional>
#include <stdexcept>
#include <string>
#include <utility>

#include "base/csr.hpp"
#include "base/shape_text.hpp"
#include "eigenfeat/parallel.hpp"
#include "eigenfeat/vector.hpp"
#include "moments/batch_moments.hpp"
#include "moments/byte_moments.hpp"
#include "moments/column_rows.hpp"
#include "moments/sparse_moments.hpp"

namespace eigenfeat {
namespace {

// (high, low) <- high + low as an unevaluated sum with |low| <= ulp(high) (Dekker).
void renormalise(double& high, double& low) {
  const double sum = high + low;
  low = low - (sum - high);
  high = sum;
}

// Adds factor u u^T to the lower triangle of a row-major (d, d) matrix.
void add_outer(double factor, const Vector<double>& u, double* lower, int n_threads) {
  const index_t d = u.size();
  const double work = static_cast<double>(d) * static_cast<double>(d);
  for_ranges(d, 64, threads_for(work, n_threads), [&](index_t begin, index_t end, int) {
    for (index_t i = begin; i < end; ++i) {
      const double left = factor * u[i];
      if (left == 0.0) continue;
      double* row = lower + i * d;
      for (index_t j = 0; j <= i; ++j) row[j] += left * u[j];
    }
  });
}

void check_batch(index_t rows, index_t cols, index_t n_features, index_t n_labels,
                 index_t n_weights) {
  require(cols == n_features, "X", std::to_string(n_features) + " columns", std::to_string(cols));
  require(n_labels == rows, "labels", std::to_string(rows) + " entries, one per sample",
          std::to_string(n_labels));
  require(n_weights == 0 || n_weights == rows, "sample_weight",
          std::to_string(rows) + " entries, one per sample", std::to_string(n_weights));
}

}  // namespace

ClassMoments::ClassMoments(index_t n_classes, index_t n_features) : n_features_(n_features) {
  require(n_features >= 1, "n_features", "at least 1", std::to_string(n_features));
  grow(n_classes);
}

void ClassMoments::grow(index_t n_classes) {
  require(n_classes >= this->n_classes(), "n_classes",
          "at least the present " + std::to_string(this->n_classes()), std::to_string(n_classes));
  groups_.resize(n_classes);
}

const ClassMoments::Group& ClassMoments::group(index_t c) const {
  require(c >= 0 && c < n_classes(), "class",
          "an index in [0, " + std::to_string(n_classes()) + ")", std::to_string(c));
  return groups_[c];
}

ClassMoments::Group& ClassMoments::group(index_t c) {
  return const_cast<Group&>(static_cast<const ClassMoments*>(this)->group(c));
}

void ClassMoments::prepare(Group& group) const {
  if (!group.scatter.empty()) return;
  auto scatter = AlignedBuffer<double>::zeros(n_features_ * n_features_);
  group.mean_high.assign(n_features_, 0.0);
  group.mean_low.assign(n_features_, 0.0);
  group.scatter.swap(scatter);
}

// The mean moves by (mean_b - mean) W_b / W, where mean_b = shift + residual / W_b.
void ClassMoments::move_mean(Group& group, double added, const double* shift,
                             const double* residual) {
  const double total = group.weight + added;
  for (index_t j = 0; j < group.mean_high.size(); ++j) {
    double &high = group.mean_high[j], &low = group.mean_low[j];
    if (group.weight <= 0.0) {
      high = shift[j];
      low = residual[j] / added;
    } else {
      const double delta = (shift[j] - high) + (residual[j] / added - low);
      low += delta * (added / total);
    }
    renormalise(high, low);
  }
  group.weight = total;
}

// Corrects S for the rounding of the shift: S <- S - r r^T / W, if this exceeds the rounding error
// of S.
void ClassMoments::correct_shift(Group& group, double added, const double* residual,
                                 int n_threads) const {
  bool matters = false;
  for (index_t j = 0; j < n_features_ && !matters; ++j) {
    const double diagonal = group.scatter[j * n_features_ + j];
    matters = residual[j] * residual[j] / added > 0x1p-56 * diagonal;
  }
  if (!matters) return;
  add_outer(-1.0 / added, Vector<double>(residual, residual + n_features_), group.scatter.data(),
            n_threads);
}

template <class T, class Rows>
void ClassMoments::update_rows(Rows rows, VectorView<const std::int32_t> labels,
                               VectorView<const double> weights, int n_threads) {
  BatchUpdate<T, Rows> batch(std::move(rows), labels, weights, n_classes(), n_threads);
  Vector<ClassTarget> targets(groups_.size());
  bool fresh = true;
  for (index_t c = 0; c < groups_.size(); ++c) {
    if (batch.weight(c) <= 0.0) continue;
    Group& group = groups_[c];
    fresh = fresh && group.weight <= 0.0;
    prepare(group);
    targets[c] = {group.weight, group.mean_high.data(), group.mean_low.data(),
                  group.scatter.data()};
  }
  // Sums are updated in place. If all classes were empty, an exception empties them again;
  // otherwise the update must finish.
  try {
    std::optional<NoInterrupts> finishing;
    if (!fresh) finishing.emplace();
    batch.accumulate(targets);
  } catch (...) {
    for (index_t c = 0; fresh && c < groups_.size(); ++c) {
      if (batch.weight(c) > 0.0) groups_[c] = Group();
    }
    throw;
  }
  const NoInterrupts finishing;
  for (index_t c = 0; c < groups_.size(); ++c) {
    if (batch.weight(c) <= 0.0) continue;
    correct_shift(groups_[c], batch.weight(c), batch.residual(c), n_threads);
    move_mean(groups_[c], batch.weight(c), batch.shift(c), batch.residual(c));
  }
}

template <class T>
void ClassMoments::update(MatrixView<const T> rows, VectorView<const std::int32_t> labels,
                          VectorView<const double> weights, int n_threads) {
  check_batch(rows.rows, rows.cols, n_features_, labels.size, weights.size);
  if (rows.is_row_major() || rows.cols <= 1) {
    update_rows<T>(DenseRows<T>{rows}, labels, weights, n_threads);
  } else {
    require(rows.is_column_major(), "X", "contiguous rows or columns", shape_text(rows));
    update_rows<T>(ColumnRows<T>(rows), labels, weights, n_threads);
  }
}

template <class T>
void ClassMoments::update(const CsrView<T>& rows, VectorView<const std::int32_t> labels,
                          VectorView<const double> weights, int n_threads) {
  check_batch(rows.rows, rows.cols, n_features_, labels.size, weights.size);
  check_csr(rows);
  const SparseBatch<T> sparse(rows, labels, weights, n_classes(), n_threads);
  if (!sparse.worthwhile()) {
    update_rows<T>(SparseRows<T>{rows}, labels, weights, n_threads);
    return;
  }
  // The scatter of the batch is computed from raw sums, then merged.
  ClassMoments batch(n_classes(), n_features_);
  for (index_t c = 0; c < n_classes(); ++c) {
    if (sparse.weight(c) <= 0.0) continue;
    Group& group = batch.group(c);
    batch.prepare(group);
    batch.move_mean(group, sparse.weight(c), sparse.mean(c), sparse.zeros());
    sparse.add_products(c, group.scatter.data());
    add_outer(-group.weight, group.mean_high, group.scatter.data(), n_threads);
  }
  Vector<std::int32_t> same(groups_.size());
  for (index_t c = 0; c < same.size(); ++c) same[c] = static_cast<std::int32_t>(c);
  merge(batch, {same.data(), same.size()}, n_threads);
}

void ClassMoments::update(MatrixView<const std::uint8_t> rows,
                          VectorView<const std::int32_t> labels, int n_threads) {
  check_batch(rows.rows, rows.cols, n_features_, labels.size, 0);
  require(rows.is_row_major() || rows.cols <= 1, "X", "contiguous rows", shape_text(rows));
  ByteMoments bytes(rows, labels, n_classes(), n_threads);
  ClassMoments batch(n_classes(), n_features_);
  Vector<std::int64_t> sums;
  for (index_t c = 0; c < n_classes(); ++c) {
    if (bytes.count(c) == 0) continue;
    Group& group = batch.group(c);
    batch.prepare(group);
    bytes.form(c, sums, group.scatter.data());
    group.weight = static_cast<double>(bytes.count(c));
    for (index_t j = 0; j < n_features_; ++j) {
      const double sum = static_cast<double>(sums[j]);
      group.mean_high[j] = sum / group.weight;
      group.mean_low[j] = std::fma(-group.mean_high[j], group.weight, sum) / group.weight;
    }
  }
  const NoInterrupts finishing;
  for (index_t c = 0; c < n_classes(); ++c) {
    if (bytes.count(c) == 0) continue;
    if (groups_[c].weight > 0.0) {
      merge_group(groups_[c], batch.group(c), n_threads);
    } else {
      std::swap(groups_[c], batch.group(c));
    }
  }
}

void ClassMoments::merge(const ClassMoments& other, VectorView<const std::int32_t> class_map,
                         int n_threads) {
  require(&other != this, "other", "another accumulator", "this one");
  require(other.n_features_ == n_features_, "other", std::to_string(n_features_) + " features",
          std::to_string(other.n_features_));
  require(class_map.size == other.n_classes(), "class_map",
          std::to_string(other.n_classes()) + " entries", std::to_string(class_map.size));
  for (index_t c = 0; c < class_map.size; ++c) {
    require(class_map[c] >= 0 && class_map[c] < n_classes(), "class_map",
            "class indices in [0, " + std::to_string(n_classes()) + ")",
            std::to_string(class_map[c]));
  }
  const NoInterrupts finishing;
  const double work = 2.0 * static_cast<double>(n_features_) * static_cast<double>(n_features_);
  if (threads_for(work, n_threads) > 1) {
    for (index_t c = 0; c < class_map.size; ++c) {
      if (other.group(c).weight > 0.0) merge_group(group(class_map[c]), other.group(c), n_threads);
    }
    return;
  }
  // Many small classes are distributed among threads; each class of this object merges in fixed
  // order.
  Vector<index_t> sources(class_map.size);
  std::iota(sources.begin(), sources.end(), index_t{0});
  std::stable_sort(sources.begin(), sources.end(),
                   [&](index_t a, index_t b) { return class_map[a] < class_map[b]; });
  const int threads = threads_for(work * static_cast<double>(class_map.size), n_threads);
  for_blocks(n_classes(), threads, [&](index_t mine, int) {
    auto c = std::lower_bound(sources.begin(), sources.end(), mine,
                              [&](index_t a, index_t value) { return class_map[a] < value; });
    for (; c != sources.end() && class_map[*c] == mine; ++c) {
      if (other.group(*c).weight > 0.0) merge_group(group(mine), other.group(*c), 1);
    }
  });
}

void ClassMoments::merge_group(Group& mine, const Group& theirs, int n_threads) {
  const index_t d = n_features_;
  if (mine.weight <= 0.0) {
    mine = theirs;
    return;
  }
  const double coefficient = mine.weight / (mine.weight + theirs.weight) * theirs.weight;
  Vector<double> delta(d), low(delta.size());
  for (index_t j = 0; j < delta.size(); ++j) {
    delta[j] = (theirs.mean_high[j] - mine.mean_high[j]) + (theirs.mean_low[j] - mine.mean_low[j]);
    low[j] = theirs.mean_low[j] * theirs.weight;
  }
  const double work = 2.0 * static_cast<double>(d) * static_cast<double>(d);
  for_ranges(d, 64, threads_for(work, n_threads), [&](index_t begin, index_t end, int) {
    for (index_t i = begin; i < end; ++i) {
      const double left = coefficient * delta[i];
      double* row = mine.scatter.data() + i * d;
      const double* added = theirs.scatter.data() + i * d;
      for (index_t j = 0; j <= i; ++j) row[j] += added[j] + left * delta[j];
    }
  });
  move_mean(mine, theirs.weight, theirs.mean_high.data(), low.data());
}

// Both triangles of S_c / W_c, or of S_c / W_c + mu mu^T, by tiles, so that reads and writes of
// memory are local.
void ClassMoments::read_out(index_t c, bool about_mean, MatrixView<double> out) const {
  constexpr index_t tile = 64;  // 32 KB of doubles, a first-level cache
  const index_t d = n_features_, tiles = (d + tile - 1) / tile;
  const Group& g = group(c);
  require(g.weight > 0.0, "class", "a class with weight",
          "class index " + std::to_string(c) + " without samples");
  require(out.rows == d && out.cols == d, "out", "shape " + shape_text(d, d), shape_text(out));
  const double* mean = g.mean_high.data();
  const double weight = g.weight;
  const double work = 4.0 * static_cast<double>(d) * static_cast<double>(d);
  for_blocks(tiles, threads_for(work, 0), [&](index_t row_tile, int) {
    const index_t i_end = std::min(d, (row_tile + 1) * tile);
    for (index_t i = row_tile * tile; i < i_end; ++i) {
      const double* from = g.scatter.data() + i * d;
      double* to = out.row(i);
      for (index_t j = 0; j <= i; ++j) to[j] = from[j] / weight;
      to[i] = std::max(to[i], 0.0);  // rounding may make a square negative
      if (about_mean) continue;
      const double own = mean[i];
      for (index_t j = 0; j <= i; ++j) to[j] += own * mean[j];
    }
    for (index_t col_tile = 0; col_tile <= row_tile; ++col_tile) {
      for (index_t j = col_tile * tile; j < std::min(i_end, (col_tile + 1) * tile); ++j) {
        double* mirrored = out.row(j);
        for (index_t i = std::max(row_tile * tile, j + 1); i < i_end; ++i) mirrored[i] = out(i, j);
      }
    }
  });
}

void ClassMoments::covariance(index_t c, MatrixView<double> out) const {
  read_out(c, true, out);
}

void ClassMoments::second_moment(index_t c, MatrixView<double> out) const {
  read_out(c, false, out);
}

void ClassMoments::packed_scatter(index_t c, VectorView<double> out) const {
  const Group& g = group(c);
  require(out.size == n_features_ * (n_features_ + 1) / 2, "out", "d (d + 1) / 2 entries",
          std::to_string(out.size));
  if (g.scatter.empty()) {
    std::fill(out.data, out.data + out.size, 0.0);
    return;
  }
  double* next = out.data;
  for (index_t i = 0; i < n_features_; ++i) {
    next = std::copy(g.scatter.data() + i * n_features_, g.scatter.data() + i * n_features_ + i + 1,
                     next);
  }
}

void ClassMoments::restore(index_t c, double weight, VectorView<const double> mean_high,
                           VectorView<const double> mean_low,
                           VectorView<const double> packed_scatter) {
  const index_t d = n_features_;
  require(std::isfinite(weight) && weight >= 0.0, "weight", "a finite nonnegative number",
          std::to_string(weight));
  require(mean_high.size == d && mean_low.size == d, "mean", std::to_string(d) + " entries",
          std::to_string(mean_high.size));
  require(packed_scatter.size == d * (d + 1) / 2, "scatter", "d (d + 1) / 2 entries",
          std::to_string(packed_scatter.size));
  Group fresh;
  if (weight > 0.0) {
    prepare(fresh);
    fresh.weight = weight;
    fresh.mean_high.assign(mean_high.data, mean_high.data + d);
    fresh.mean_low.assign(mean_low.data, mean_low.data + d);
    const double* next = packed_scatter.data;
    for (index_t i = 0; i < d; ++i, next += i)
      std::copy(next, next + i + 1, fresh.scatter.data() + i * d);
  }
  std::swap(group(c), fresh);
}

bool ClassMoments::operator==(const ClassMoments& other) const {
  if (n_features_ != other.n_features_ || groups_.size() != other.groups_.size()) return false;
  for (index_t c = 0; c < groups_.size(); ++c) {
    const Group &a = groups_[c], &b = other.groups_[c];
    if (a.weight != b.weight) return false;
    if (a.weight <= 0.0) continue;
    if (a.mean_high != b.mean_high || a.mean_low != b.mean_low) return false;
    for (index_t i = 0; i < n_features_; ++i) {
      const double *left = a.scatter.data() + i * n_features_,
                   *right = b.scatter.data() + i * n_features_;
      if (!std::equal(left, left + i + 1, right)) return false;
    }
  }
  return true;
}

#define EIGENFEAT_INSTANTIATE(T)                                                             \
  template void ClassMoments::update<T>(MatrixView<const T>, VectorView<const std::int32_t>, \
                                        VectorView<const double>, int);                      \
  template void ClassMoments::update<T>(const CsrView<T>&, VectorView<const std::int32_t>,   \
                                        VectorView<const double>, int);
EIGENFEAT_INSTANTIATE(float)
EIGENFEAT_INSTANTIATE(double)
#undef EIGENFEAT_INSTANTIATE

}  // namespace eigenfeat
