#include "eigenfeat/convolutions.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <numeric>
#include <string>

#include "base/shape_text.hpp"
#include "eigenfeat/parallel.hpp"
#include "eigenfeat/scratch.hpp"
#include "eigenfeat/status.hpp"
#include "eigenfeat/vector.hpp"
#include "kernels/convolution_kernels.hpp"

namespace eigenfeat {
namespace {

constexpr index_t kMargin = 64;  // numbers after the end of an array that vectors may read

template <class T>
constexpr index_t kLine = 64 / sizeof(T);

// The taps of weight 2 of each kernel, in lexicographic order.
std::array<std::array<index_t, 3>, kConvolutionKernels> heavy_taps() {
  std::array<std::array<index_t, 3>, kConvolutionKernels> taps{};
  std::size_t kernel = 0;
  for (index_t a = 0; a < kTaps; ++a) {
    for (index_t b = a + 1; b < kTaps; ++b) {
      for (index_t c = b + 1; c < kTaps; ++c) taps[kernel++] = {a, b, c};
    }
  }
  return taps;
}

const std::array<std::array<index_t, 3>, kConvolutionKernels> kHeavyTaps = heavy_taps();

index_t first_output(index_t place, index_t kernel, index_t dilation) {
  return (place + kernel) % 2 == 0 ? kTaps / 2 * dilation : (kTaps - 1) * dilation;
}

template <class T>
void check(MatrixView<const T> series, const ConvolutionPlan& plan) {
  const index_t pairs = kConvolutionKernels * plan.dilations.size;
  const index_t length = series.cols / std::max<index_t>(plan.n_channels, 1);
  require(plan.n_channels >= 1 && series.cols % plan.n_channels == 0 && series.cols > 0, "series",
          "channels of one length", std::to_string(series.cols) + " numbers");
  require(series.rows <= 1 || series.is_row_major(), "series", "contiguous rows",
          shape_text(series));
  require(plan.n_thresholds.size == plan.dilations.size, "n_thresholds", "one for each dilation",
          std::to_string(plan.n_thresholds.size));
  require(plan.orders.size == plan.dilations.size, "orders", "one for each dilation",
          std::to_string(plan.orders.size));
  require(plan.channel_begin.size == pairs + 1, "channel_begin",
          std::to_string(pairs + 1) + " entries", std::to_string(plan.channel_begin.size));
  for (index_t p = 0; p < pairs; ++p) {
    require(0 <= plan.channel_begin[p] && plan.channel_begin[p] < plan.channel_begin[p + 1],
            "channel_begin", "ascending entries",
            std::to_string(plan.channel_begin[p]) + " before " +
                std::to_string(plan.channel_begin[p + 1]));
  }
  require(plan.channel_begin[pairs] <= plan.channels.size, "channel_begin", "at most channels.size",
          std::to_string(plan.channel_begin[pairs]));
  for (index_t c = 0; c < plan.channels.size; ++c) {
    require(0 <= plan.channels[c] && plan.channels[c] < plan.n_channels, "channels",
            "numbers of channels", std::to_string(plan.channels[c]));
  }
  for (index_t k = 0; k < plan.dilations.size; ++k) {
    require(plan.dilations[k] >= 1 && plan.dilations[k] <= length, "dilations",
            "numbers in [1, length]", std::to_string(plan.dilations[k]));
    require(plan.orders[k] == 0 || plan.orders[k] == 1, "orders", "0 or 1",
            std::to_string(plan.orders[k]));
    require(plan.n_thresholds[k] >= 0, "n_thresholds", "at least 0",
            std::to_string(plan.n_thresholds[k]));
  }
  const index_t contests = std::count(plan.n_thresholds.data,
                                      plan.n_thresholds.data + plan.n_thresholds.size, index_t{0});
  require(plan.rivals.rows == contests && plan.rivals.cols == kConvolutionKernels, "rivals",
          "shape " + shape_text(contests, kConvolutionKernels), shape_text(plan.rivals));
  for (index_t c = 0; c < contests; ++c) {
    for (index_t k = 0; k < kConvolutionKernels; ++k) {
      require(0 <= plan.rivals(c, k) && plan.rivals(c, k) < kConvolutionKernels, "rivals",
              "numbers of kernels", std::to_string(plan.rivals(c, k)));
    }
  }
}

// Processes one series at a time: copies of the series, preceded by zeros, and sums of the current
// dilation.
template <class T>
class Convolver {
 public:
  Convolver(const ConvolutionPlan& plan, index_t length)
      : plan_(plan), length_(length), kernels_(kernels<ConvolutionKernels<T>>()) {
    index_t widest = 1;
    for (index_t k = 0; k < plan.dilations.size; ++k) widest = std::max(widest, plan.dilations[k]);
    before_ = (kTaps - 1) * widest;
    const index_t each = before_ + length + kMargin;
    plain_ = AlignedBuffer<T>::zeros(plan.n_channels * each);
    tripled_ = AlignedBuffer<T>::zeros(plan.n_channels * each);
    sums_ = AlignedBuffer<T>::zeros(plan.n_channels * (length + kMargin));
    outputs_ = AlignedBuffer<T>::zeros(kRivals * (length + kMargin));
    for (index_t c = 0; c < plan.n_channels; ++c) {
      triples_.push_back(tripled_.data() + c * each + before_);
      sum_of_.push_back(sums_.data() + c * (length + kMargin));
    }
  }

  // Copies a series or, for order 1, its differences x[t + 1] - x[t].
  void take(const T* series, index_t order) {
    const index_t each = before_ + length_ + kMargin;
    order_ = order;
    for (index_t c = 0; c < plan_.n_channels; ++c) {
      T* plain = plain_.data() + c * each + before_;
      T* triple = tripled_.data() + c * each + before_;
      for (index_t t = 0; t < length_ - order; ++t) {
        const T* at = series + c * length_ + t;
        const T x = order == 0 ? at[0] : at[1] - at[0];
        plain[t] = x;
        triple[t] = x + x + x;
      }
    }
  }

  void use_dilation(index_t place) {
    const index_t each = before_ + length_ + kMargin;
    for (index_t c = 0; c < plan_.n_channels; ++c) {
      kernels_.negated_sums(plain_.data() + c * each + before_, length_, plan_.dilations[place],
                            sums_.data() + c * (length_ + kMargin));
    }
  }

  // Outputs of a pair from `first` to `last`, in one of kRivals rows; requires use_dilation.
  const T* outputs(index_t place, index_t kernel, index_t first, index_t last, index_t row) {
    const index_t pair = place * kConvolutionKernels + kernel, dilation = plan_.dilations[place];
    const auto& taps = kHeavyTaps[static_cast<std::size_t>(kernel)];
    const index_t lags[3] = {(kTaps - 1 - taps[0]) * dilation, (kTaps - 1 - taps[1]) * dilation,
                             (kTaps - 1 - taps[2]) * dilation};
    const index_t begin = plan_.channel_begin[pair];
    T* out = outputs_.data() + row * (length_ + kMargin);
    kernels_.outputs(sum_of_.data(), triples_.data(), plan_.channels.data + begin,
                     plan_.channel_begin[pair + 1] - begin, lags, first, last, out);
    return out;
  }

  // Features of a series at each of m ends, out (m, width).
  void features(const T* series, const T* thresholds, const index_t* ends, index_t m, index_t width,
                T* out) {
    const index_t* orders = plan_.orders.data;
    for (index_t order = 0; order < 2; ++order) {
      if (std::find(orders, orders + plan_.orders.size, order) == orders + plan_.orders.size)
        continue;
      take(series, order);
      const T* limits = thresholds;
      T* column = out;
      for (index_t place = 0, contest = 0; place < plan_.dilations.size; ++place) {
        const index_t n = plan_.n_thresholds[place];
        if (orders[place] == order) {
          use_dilation(place);
          if (n > 0) {
            exceedances(place, limits, ends, m, width, column);
          } else {
            contests(place, plan_.rivals.row(contest), ends, m, width, column);
          }
        }
        limits += kConvolutionKernels * n;
        column += kConvolutionKernels * (n > 0 ? n : 2);
        contest += n == 0;
      }
    }
  }

 private:
  // Shares of the outputs above thresholds.
  void exceedances(index_t place, const T* thresholds, const index_t* ends, index_t m,
                   index_t width, T* out) {
    const index_t last = m > 0 ? ends[m - 1] - order_ : 0, n = plan_.n_thresholds[place];
    for (index_t kernel = 0; kernel < kConvolutionKernels; ++kernel) {
      const index_t first = first_output(place, kernel, plan_.dilations[place]);
      const T* values = outputs(place, kernel, first, last, 0);
      for (index_t k = 0; k < n; k += kMaxThresholds) {
        const index_t some = std::min(kMaxThresholds, n - k);
        index_t counts[kMaxThresholds] = {};
        for (index_t e = 0, from = first; e < m; ++e) {
          const index_t end = ends[e] - order_;
          if (end > from) {
            kernels_.count(values, from, end, thresholds + k, some, counts);
            from = end;
          }
          const T size = static_cast<T>(std::max<index_t>(end - first, 1));
          for (index_t i = 0; i < some; ++i)
            out[e * width + k + i] = static_cast<T>(counts[i]) / size;
        }
      }
      thresholds += n;
      out += n;
    }
  }

  // For each convolution of a group: roots of the mean of its outputs while it is the largest, and
  // of the share of the times at which it is the smallest.
  void contests(index_t place, const index_t* rivals, const index_t* ends, index_t m, index_t width,
                T* out) {
    const index_t last = m > 0 ? ends[m - 1] - order_ : 0;
    const index_t first = kTaps / 2 * plan_.dilations[place];
    for (index_t g = 0; g < kConvolutionKernels; g += kRivals, out += 2 * kRivals) {
      for (index_t k = 0; k < kRivals; ++k) outputs(place, rivals[g + k], first, last, k);
      T sums[kRivals][kLine<T>] = {};
      index_t counts[kRivals] = {};
      for (index_t e = 0, from = first; e < m; ++e) {
        const index_t end = ends[e] - order_;
        if (end > from) {
          kernels_.compete(outputs_.data(), length_ + kMargin, first, from, end, sums[0], counts);
          from = end;
        }
        const T size = static_cast<T>(std::max<index_t>(end - first, 1));
        for (index_t k = 0; k < kRivals; ++k) {
          const T sum = std::accumulate(sums[k], sums[k] + kLine<T>, T(0));
          out[e * width + k] = std::sqrt(std::min(sum, std::numeric_limits<T>::max()) / size);
          out[e * width + kRivals + k] = std::sqrt(static_cast<T>(counts[k]) / size);
        }
      }
    }
  }

  const ConvolutionPlan& plan_;
  index_t length_, before_ = 0, order_ = 0;
  const ConvolutionKernels<T>& kernels_;
  AlignedBuffer<T> plain_, tripled_, sums_, outputs_;
  Vector<const T*> triples_, sum_of_;
};

}  // namespace

index_t count_convolution_features(const ConvolutionPlan& plan, index_t n_thresholds) {
  return n_thresholds + 2 * kConvolutionKernels * plan.rivals.rows;
}

template <class T>
void convolution_features(MatrixView<const T> series, const ConvolutionPlan& plan,
                          VectorView<const T> thresholds, MatrixView<const index_t> ends,
                          MatrixView<T> features, int n_threads) {
  check(series, plan);
  const index_t length = series.cols / plan.n_channels, m = ends.cols;
  for (index_t k = 0; k < plan.n_thresholds.size; ++k) {  // checked before summation
    require(plan.n_thresholds[k] <= thresholds.size, "n_thresholds",
            "at most " + std::to_string(thresholds.size), std::to_string(plan.n_thresholds[k]));
  }
  const index_t per_kernel = std::accumulate(
      plan.n_thresholds.data, plan.n_thresholds.data + plan.n_thresholds.size, index_t{0});
  require(thresholds.size == kConvolutionKernels * per_kernel, "thresholds",
          std::to_string(kConvolutionKernels * per_kernel), std::to_string(thresholds.size));
  const index_t width = count_convolution_features(plan, thresholds.size);
  require(ends.rows == series.rows && features.rows == series.rows && features.cols == m * width,
          "ends, features",
          "shapes (" + std::to_string(series.rows) + ", m) and (" + std::to_string(series.rows) +
              ", m x " + std::to_string(width) + ")",
          shape_text(ends) + " and " + shape_text(features));
  for (index_t i = 0; i < ends.rows; ++i) {
    for (index_t e = 0; e < m; ++e) {
      if (!(ends(i, e) >= (e > 0 ? ends(i, e - 1) : 0) && ends(i, e) <= length))
        refuse("ends", "ascending numbers of samples, at most " + std::to_string(length),
               std::to_string(ends(i, e)));
    }
  }
  const double work =
      static_cast<double>(series.rows) * static_cast<double>(length) * static_cast<double>(width);
  const int threads = threads_for(work / 2.0, n_threads);
  PerThread<Vector<Convolver<T>>> convolvers(threads);
  for_blocks(series.rows, threads, [&](index_t i, int thread) {
    if (convolvers[thread].empty()) convolvers[thread].emplace_back(plan, length);
    Convolver<T>& own = convolvers[thread].front();
    own.features(series.row(i), thresholds.data, ends.row(i), m, width, features.row(i));
  });
}

template <class T>
void convolution_outputs(MatrixView<const T> series, const ConvolutionPlan& plan,
                         index_t first_pair, VectorView<const index_t> rows, MatrixView<T> outputs,
                         int n_threads) {
  check(series, plan);
  const index_t length = series.cols / plan.n_channels;
  const index_t pairs = kConvolutionKernels * plan.dilations.size;
  require(first_pair >= 0 && first_pair <= pairs && rows.size <= pairs - first_pair, "first_pair",
          "pairs among " + std::to_string(pairs),
          std::to_string(rows.size) + " from " + std::to_string(first_pair));
  require(outputs.rows == rows.size && outputs.cols == length, "outputs",
          "shape " + shape_text(rows.size, length), shape_text(outputs));
  for (index_t p = 0; p < rows.size; ++p) {
    require(rows[p] >= 0 && rows[p] < series.rows, "rows", "places of series",
            std::to_string(rows[p]));
  }
  const double work = static_cast<double>(rows.size) * static_cast<double>(length);
  const int threads = threads_for(32.0 * work, n_threads);
  PerThread<Vector<Convolver<T>>> convolvers(threads);
  for_blocks(rows.size, threads, [&](index_t p, int thread) {
    if (convolvers[thread].empty()) convolvers[thread].emplace_back(plan, length);
    Convolver<T>& own = convolvers[thread].front();
    const index_t pair = first_pair + p;
    const index_t place = pair / kConvolutionKernels, kernel = pair % kConvolutionKernels;
    const index_t first = first_output(place, kernel, plan.dilations[place]);
    const index_t last = length - plan.orders[place];
    own.take(series.row(rows[p]), plan.orders[place]);
    own.use_dilation(place);
    const T* values = own.outputs(place, kernel, first, last, 0);
    T* row = outputs.row(p);
    std::fill(row, row + length, T(0));
    if (first < last) std::copy(values + first, values + last, row + first);
  });
}

#define EIGENFEAT_INSTANTIATE(T)                                                             \
  template void convolution_features<T>(MatrixView<const T>, const ConvolutionPlan&,         \
                                        VectorView<const T>, MatrixView<const index_t>,      \
                                        MatrixView<T>, int);                                 \
  template void convolution_outputs<T>(MatrixView<const T>, const ConvolutionPlan&, index_t, \
                                       VectorView<const index_t>, MatrixView<T>, int);
EIGENFEAT_INSTANTIATE(float)
EIGENFEAT_INSTANTIATE(double)
#undef EIGENFEAT_INSTANTIATE

}  // namespace eigenfeat
