#include "svm/svm_rows.hpp"

#include <algorithm>
#include <limits>
#include <string>
#include <utility>

#include "base/csr.hpp"
#include "base/prefetch.hpp"
#include "base/shape_text.hpp"
#include "eigenfeat/parallel.hpp"
#include "eigenfeat/status.hpp"
#include "eigenfeat/vector.hpp"
#include "kernels/svm_kernels.hpp"
#include "kernels/svm_pass_kernels.hpp"

namespace eigenfeat {
namespace {

constexpr index_t kTile = 256;  // rows of a task
// Cost of an entry of a compressed row, relative to an entry of a dense row.
constexpr double kCompressedCost = 1.5;

void check_columns(index_t d) {
  constexpr index_t most = std::numeric_limits<std::int32_t>::max();
  require(d < most, "X", "fewer than 2^31 - 1 columns", std::to_string(d));
}

// |x_i|^2; entries of duplicate columns are added before they are squared.
template <class T>
double csr_square(const CsrView<T>& rows, index_t i, Vector<std::pair<index_t, double>>& sorted) {
  double square = 0.0;
  bool rising = true;
  for (index_t e = rows.indptr[i]; e < rows.indptr[i + 1]; ++e) {
    const double value = static_cast<double>(rows.values[e]);
    square += value * value;
    rising = rising && (e == rows.indptr[i] || rows.indices[e] > rows.indices[e - 1]);
  }
  if (rising) return square;
  sorted.clear();
  for (index_t e = rows.indptr[i]; e < rows.indptr[i + 1]; ++e)
    sorted.emplace_back(rows.indices[e], static_cast<double>(rows.values[e]));
  std::sort(sorted.begin(), sorted.end());
  square = 0.0;
  for (index_t e = 0; e < sorted.size();) {
    const index_t column = sorted[e].first;
    double sum = 0.0;
    for (; e < sorted.size() && sorted[e].first == column; ++e) sum += sorted[e].second;
    square += sum * sum;
  }
  return square;
}

}  // namespace

template <class T>
SvmRows<T>::SvmRows(MatrixView<const T> rows, double constant, int n_threads)
    : n_(rows.rows), d_(rows.cols), constant_(constant), squares_(rows.rows) {
  require(rows.is_row_major(), "X", "row-major rows", shape_text(rows));
  check_columns(d_);
  starts_.assign(n_ + 1, 0);
  const double size = static_cast<double>(n_) * static_cast<double>(d_);
  for_ranges(n_, kTile, threads_for(size, n_threads), [&](index_t begin, index_t end, int) {
    for (index_t i = begin; i < end; ++i) {
      const RowCount count = kernels<SvmKernels<T>>().count_row(rows.row(i), d_);
      squares_[i] = count.square + constant * constant;
      starts_[i + 1] = count.entries;
    }
  });
  for (index_t i = 0; i < n_; ++i) starts_[i + 1] += starts_[i];
  const double used = static_cast<double>(starts_.back());
  if (kCompressedCost * used < size) {
    entries_ = used;
    compress(rows, n_threads);
  } else {
    entries_ = size;
    dense_ = rows;
    starts_.clear();
  }
}

template <class T>
void SvmRows<T>::compress(MatrixView<const T> rows, int n_threads) {
  // One more entry: the zeros at the end of a row are written and overwritten.
  own_values_.reserve(starts_.back() + 1);
  columns_.reserve(starts_.back() + 1);
  values_ = own_values_.data();
  const double size = static_cast<double>(n_) * static_cast<double>(d_);
  for_ranges(n_, kTile, threads_for(size, n_threads), [&](index_t begin, index_t end, int) {
    for (index_t i = begin; i < end; ++i) {
      const T* x = rows.row(i);
      index_t at = starts_[i];
      const index_t stop = starts_[i + 1];
      for (index_t j = 0; at < stop; ++j) {
        own_values_[at] = x[j];
        columns_[at] = static_cast<std::uint32_t>(j);
        at += x[j] != T(0) ? 1 : 0;
      }
    }
  });
}

template <class T>
SvmRows<T>::SvmRows(const CsrView<T>& rows, double constant, int n_threads)
    : n_(rows.rows), d_(rows.cols), constant_(constant), squares_(rows.rows) {
  check_csr(rows);
  check_columns(d_);
  starts_.assign(rows.indptr, rows.indptr + n_ + 1);
  values_ = rows.values;
  columns_.reserve(std::max<index_t>(starts_.back(), 1));
  entries_ = static_cast<double>(starts_.back() - starts_.front());
  for_ranges(n_, kTile, threads_for(2.0 * entries_, n_threads),
             [&](index_t begin, index_t end, int) {
               Vector<std::pair<index_t, double>> sorted;
               for (index_t i = begin; i < end; ++i) {
                 for (index_t e = rows.indptr[i]; e < rows.indptr[i + 1]; ++e)
                   columns_[e] = static_cast<std::uint32_t>(rows.indices[e]);
                 squares_[i] = csr_square(rows, i, sorted) + constant * constant;
               }
             });
}

template <class T>
void SvmRows<T>::prefetch(index_t i) const {
  constexpr index_t most = 24;  // cache lines; hardware prefetches further lines
  const T* x = dense() ? dense_.row(i) : values_ + starts_[i];
  const index_t count = dense() ? d_ : starts_[i + 1] - starts_[i];
  const index_t last = std::min(count, most * kLane<T>);
  for (index_t e = 0; e < last; e += kLane<T>) prefetch_line(x + e);
  if (dense()) return;
  const std::uint32_t* columns = columns_.data() + starts_[i];
  const index_t last_column = std::min(count, most * kLane<float>);
  for (index_t e = 0; e < last_column; e += kLane<float>) prefetch_line(columns + e);
}

template <class T>
void SvmRows<T>::scores(index_t i, const T* w, index_t width, T* out) const {
  if (dense()) {
    kernels<SvmKernels<T>>().row_scores(dense_.row(i), nullptr, d_, w, width, out);
  } else {
    const index_t start = starts_[i];
    const index_t count = starts_[i + 1] - start;
    kernels<SvmKernels<T>>().row_scores(values_ + start, columns_.data() + start, count, w, width,
                                        out);
  }
  if (constant_ == 0.0) return;
  const T* last = w + d_ * width;
  const T value = static_cast<T>(constant_);
  for (index_t c = 0; c < width; ++c) out[c] += value * last[c];
}

template <class T>
void SvmRows<T>::sort_by_class(const T* w, index_t k, index_t width, int n_threads,
                               AlignedBuffer<T>& by_class) const {
  if (kernels<SvmPassKernels<T>>().is_by_feature(k)) return;
  const index_t apart = svm_width<T>(d_);  // with zero padding, because whole vectors are read
  const index_t lines = k == 2 ? 1 : k;
  by_class.reserve(lines * apart);
  const double size = static_cast<double>(lines) * static_cast<double>(apart);
  for_blocks(lines, threads_for(size, n_threads), [&](index_t c, int) {
    T* line = by_class.data() + c * apart;
    if (k == 2) {
      for (index_t j = 0; j < d_; ++j) line[j] = w[j * width + 1] - w[j * width];
    } else {
      for (index_t j = 0; j < d_; ++j) line[j] = w[j * width + c];
    }
    std::fill(line + d_, line + apart, T(0));
  });
}

template <class T>
void SvmRows<T>::scores_of_four(index_t i, const T* w, const T* by_class, index_t k, index_t width,
                                T* out) const {
  const SvmPassKernels<T>& kernel = kernels<SvmPassKernels<T>>();
  const T* x = dense_.row(i);
  if (kernel.is_by_feature(k)) {
    kernel.four_row_scores_by_feature(x, dense_.row_stride, d_, w, width, out);
  } else {
    kernel.four_row_scores_by_class(x, dense_.row_stride, d_, by_class, svm_width<T>(d_),
                                    k == 2 ? 1 : k, width, out);
    for (index_t r = 0; k == 2 && r < 4; ++r) std::swap(out[r * width], out[r * width + 1]);
  }
  if (constant_ == 0.0) return;
  const T* last = w + d_ * width;
  const T value = static_cast<T>(constant_);
  for (index_t r = 0; r < 4; ++r) {
    for (index_t c = 0; c < width; ++c) out[r * width + c] += value * last[c];
  }
}

template <class T>
template <class U>
void SvmRows<T>::add(index_t i, const U* delta, const Vector<index_t>& changed, index_t width,
                     U* w) const {
  const T* x = nullptr;
  const std::uint32_t* columns = nullptr;
  index_t count = d_;
  if (dense()) {
    x = dense_.row(i);
  } else {
    const index_t start = starts_[i];
    x = values_ + start;
    columns = columns_.data() + start;
    count = starts_[i + 1] - start;
  }
  const auto few = changed.size() * 2 < width / kernels<SvmKernels<U>>().unit;
  if (few) {
    for (index_t e = 0; e < count; ++e) {
      U* line = w + (columns != nullptr ? static_cast<index_t>(columns[e]) : e) * width;
      for (const index_t c : changed) line[c] += static_cast<U>(x[e]) * delta[c];
    }
  } else {
    if constexpr (std::is_same_v<T, U>) {
      kernels<SvmKernels<T>>().add_row(x, columns, count, delta, width, w);
    } else {
      kernels<SvmKernels<T>>().add_row_in_double(x, columns, count, delta, width, w);
    }
  }
  if (constant_ == 0.0) return;
  U* last = w + d_ * width;
  for (const index_t c : changed) last[c] += static_cast<U>(constant_) * delta[c];
}

template class SvmRows<float>;
template class SvmRows<double>;
template void SvmRows<float>::add<float>(index_t, const float*, const Vector<index_t>&, index_t,
                                         float*) const;
template void SvmRows<float>::add<double>(index_t, const double*, const Vector<index_t>&, index_t,
                                          double*) const;
template void SvmRows<double>::add<double>(index_t, const double*, const Vector<index_t>&, index_t,
                                           double*) const;

}  // namespace eigenfeat
