#include "eigenfeat/layer_training.hpp"

#include <algorithm>
#include <cmath>
#include <string>

#include "base/shape_text.hpp"
#include "base/vectors.hpp"
#include "eigenfeat/parallel.hpp"
#include "eigenfeat/scratch.hpp"
#include "eigenfeat/status.hpp"
#include "kernels/training_kernels.hpp"
#include "kernels/wave_kernels.hpp"
#include "logit/softmax.hpp"
#include "training/row_products.hpp"

namespace eigenfeat {
namespace {

constexpr index_t kRowsOfTask = 16;  // rows that one task standardises, expands or shifts

// Parameters that Adam changes, and the running means of their gradient and of its square.
template <class T>
struct Moved {
  index_t rows = 0, cols = 0;
  AlignedBuffer<T> values, means, squares;

  Moved() = default;
  explicit Moved(MatrixView<const T> start)
      : rows(start.rows),
        cols(start.cols),
        values(rows * cols),
        means(AlignedBuffer<T>::zeros(rows * cols)),
        squares(AlignedBuffer<T>::zeros(rows * cols)) {
    for (index_t i = 0; i < rows; ++i) std::copy_n(start.row(i), cols, values.data() + i * cols);
  }
  explicit Moved(VectorView<const T> start) : Moved(row_major(start.data, 1, start.size)) {}

  MatrixView<const T> view() const { return row_major(values.data(), rows, cols); }
  void copy_to(T* out) const { std::copy_n(values.data(), rows * cols, out); }

  // Changes `count` parameters from `begin` on, along their negative gradient.
  void move(index_t begin, index_t count, const T* gradient, const AdamStep<T>& step) {
    kernels<TrainingKernels<T>>().adam(step, gradient, count, means.data() + begin,
                                       squares.data() + begin, values.data() + begin);
  }
};

template <class T>
AdamStep<T> at_rate(AdamStep<T> step, T own_rate) {
  step.rate *= own_rate;
  return step;
}

// out <- sums of columns; each task sums a range of columns.
template <class T>
void column_sums(MatrixView<const T> rows, T* out, int n_threads) {
  for_ranges(rows.cols, 256, n_threads, [&](index_t begin, index_t end, int) {
    std::fill(out + begin, out + end, T(0));
    for (index_t i = 0; i < rows.rows; ++i) {
      add_multiple(T(1), rows.row(i) + begin, end - begin, out + begin);
    }
  });
}

}  // namespace

template <class T>
void standardise(MatrixView<const T> rows, VectorView<const double> centre,
                 VectorView<const double> scale, MatrixView<float> out, int n_threads) {
  const index_t d = rows.cols;
  require(centre.size == d && scale.size == d, "centre and scale",
          std::to_string(d) + " entries each",
          std::to_string(centre.size) + " and " + std::to_string(scale.size));
  require(out.rows == rows.rows && out.cols == d, "out", shape_text(rows.rows, d),
          shape_text(out.rows, out.cols));
  const int threads = threads_for(4.0 * static_cast<double>(rows.rows * d), n_threads);
  for_ranges(rows.rows, kRowsOfTask, threads, [&](index_t begin, index_t end, int) {
    for (index_t i = begin; i < end; ++i) {
      const T* from = rows.row(i);
      float* to = out.row(i);
      for (index_t j = 0; j < d; ++j)
        to[j] = static_cast<float>((static_cast<double>(from[j]) - centre[j]) / scale[j]);
    }
  });
}

template <class T>
struct LayerTraining<T>::State {
  struct Layer {
    Moved<T> directions, offset;
    Vector<int> powers;
    T directions_rate, offset_rate;
    // Rows [0, n) are the original rows, rows [n, 2 n) the shifted rows.
    AlignedBuffer<T> projections, features, slopes;

    index_t count() const { return directions.cols; }
    index_t width() const { return 2 * powers.size() * count(); }
  };

  Vector<Layer> layers;
  Moved<T> weights, intercept;
  AlignedBuffer<T> centre, rates;
  T intercept_rate;
  bool includes_input;
  index_t steps = 0;

  index_t capacity = 0;  // maximum number of rows, original and shifted
  AlignedBuffer<double> sample_weights;
  AlignedBuffer<T> rows, scores;
  AlignedBuffer<T> above;  // gradient of the loss by the features, or by the input, of a layer
  AlignedBuffer<T> tiles;  // tiles of the gradients of directions, one for each thread
  AlignedBuffer<T> weights_gradient;
  AlignedBuffer<T> sums;  // gradients of an offset, or of the intercept

  index_t classes() const { return weights.cols; }
  index_t columns() const { return layers[0].directions.rows; }

  void reserve(index_t count, int n_threads) {
    tiles.reserve(n_threads * tile_size());
    if (count <= capacity) return;
    index_t widest = columns();
    for (Layer& layer : layers) {
      layer.projections.reserve(count * layer.count());
      layer.slopes.reserve(count * layer.count());
      layer.features.reserve(count * layer.width());
      widest = std::max(widest, layer.width());
    }
    rows.reserve(count * columns());
    scores.reserve(count * classes());
    above.reserve(count * widest);
    capacity = count;
  }

  index_t tile_size() const {
    index_t size = 0;
    for (const Layer& layer : layers) {
      const EvenParts down(layer.directions.rows, kGradientTile.rows);
      const EvenParts across(layer.directions.cols, kGradientTile.cols);
      size = std::max(size, down.size(0) * across.size(0));
    }
    return size;
  }

  // Rows [begin, begin + n) of the input of a layer, and of other buffers.
  MatrixView<T> part(AlignedBuffer<T>& buffer, index_t width, index_t begin, index_t n) {
    return row_major(buffer.data() + begin * width, n, width);
  }
  MatrixView<T> input(index_t number, index_t begin, index_t n) {
    if (number == 0) return part(rows, columns(), begin, n);
    Layer& below = layers[number - 1];
    return part(below.features, below.width(), begin, n);
  }

  void forward(index_t begin, index_t n, int n_threads) {
    for (index_t l = 0; l < layers.size(); ++l) {
      Layer& layer = layers[l];
      const auto p = part(layer.projections, layer.count(), begin, n);
      const auto h = part(layer.features, layer.width(), begin, n);
      for (index_t i = 0; i < n; ++i) layer.offset.copy_to(p.row(i));
      row_products<T>(Op::none, input(l, begin, n), Op::none, layer.directions.view(), T(1), p,
                      n_threads);
      const double work = 20.0 * static_cast<double>(n * layer.width());
      for_ranges(n, kRowsOfTask, threads_for(work, n_threads), [&](index_t from, index_t to, int) {
        for (index_t i = from; i < to; ++i) {
          kernels<WaveKernels<T>>().expand_row(Wave::shifted, layer.powers.data(),
                                               layer.powers.size(), p.row(i), layer.count(),
                                               h.row(i));
        }
      });
    }
    const auto z = part(scores, classes(), begin, n);
    for (index_t i = 0; i < n; ++i) intercept.copy_to(z.row(i));
    const index_t last = layers.size() - 1, before = input_width();
    const auto w = weights.view();
    if (includes_input) {
      row_products<T>(Op::none, input(last, begin, n), Op::none, w.block(0, 0, before, classes()),
                      T(1), z, n_threads);
    }
    row_products<T>(Op::none, part(layers[last].features, layers[last].width(), begin, n), Op::none,
                    w.block(before, 0, layers[last].width(), classes()), T(1), z, n_threads);
  }

  index_t input_width() const {
    return includes_input ? layers[layers.size() - 1].directions.rows : 0;
  }

  // Replaces scores by residuals, the gradient of the loss by the scores; returns the loss.
  double residuals(index_t begin, index_t n, VectorView<const std::int32_t> labels,
                   const T* row_weights) {
    sample_weights.reserve(n);
    for (index_t i = 0; i < n; ++i) {
      const double weight = row_weights == nullptr ? 1.0 : static_cast<double>(row_weights[i]);
      sample_weights[i] = weight / static_cast<double>(n);
    }
    const auto z = part(scores, classes(), begin, n);
    return softmax_residuals(z, labels.data, sample_weights.data(), 0.0).loss;
  }

  // From residuals, the gradients of the loss by the projections of all layers, in their `slopes`;
  // with `to_rows`, the gradient by the rows, too, in `above`.
  void backward(index_t begin, index_t n, bool to_rows, int n_threads) {
    const index_t last = layers.size() - 1, before = input_width();
    const auto z = part(scores, classes(), begin, n);
    const auto w = weights.view();
    for (index_t l = last; l >= 0; --l) {
      Layer& layer = layers[l];
      const auto h = part(above, layer.width(), 0, n);
      if (l == last) {
        row_products<T>(Op::none, z, Op::transpose, w.block(before, 0, layer.width(), classes()),
                        T(0), h, n_threads);
      }
      const auto p = part(layer.projections, layer.count(), begin, n);
      const auto slopes = part(layer.slopes, layer.count(), begin, n);
      const double work = 30.0 * static_cast<double>(n * layer.width());
      for_ranges(n, kRowsOfTask, threads_for(work, n_threads), [&](index_t from, index_t to, int) {
        for (index_t i = from; i < to; ++i) {
          kernels<TrainingKernels<T>>().wave_slopes(layer.powers.data(), layer.powers.size(),
                                                    p.row(i), h.row(i), layer.count(),
                                                    slopes.row(i));
        }
      });
      if (l == 0 && !to_rows) break;
      const auto below = part(above, layer.directions.rows, 0, n);
      row_products<T>(Op::none, slopes, Op::transpose, layer.directions.view(), T(0), below,
                      n_threads);
      if (l == last && includes_input) {
        row_products<T>(Op::none, z, Op::transpose, w.block(0, 0, before, classes()), T(1), below,
                        n_threads);
      }
    }
  }

  // Rows [n, 2 n) <- first n rows, shifted by `shift` along their gradients in `above`.
  void shift_rows(index_t n, T shift, int n_threads) {
    const index_t d = columns();
    for_ranges(n, kRowsOfTask, n_threads, [&](index_t from, index_t to, int) {
      for (index_t i = from; i < to; ++i) {
        const T *x = rows.data() + i * d, *g = above.data() + i * d;
        T* out = rows.data() + (n + i) * d;
        double most = 0.0, squares = 0.0;
        for (index_t j = 0; j < d; ++j) most = std::max(most, std::abs(static_cast<double>(g[j])));
        // Relative to the largest entry, because squares of small entries underflow.
        const double unit = most > 0.0 ? most : 1.0;
        for (index_t j = 0; j < d; ++j) {
          const double entry = static_cast<double>(g[j]) / unit;
          squares += entry * entry;
        }
        const double length = static_cast<double>(shift) / std::sqrt(std::max(squares, 1.0));
        for (index_t j = 0; j < d; ++j) {
          out[j] = x[j] + static_cast<T>(length * (static_cast<double>(g[j]) / unit));
        }
      }
    });
  }

  // Gradients from the slopes and residuals of n rows, and a step of Adam.
  void move(index_t n, T rate, int n_threads) {
    ++steps;
    const double t = static_cast<double>(steps);
    const AdamStep<T> step{static_cast<T>(static_cast<double>(rate) / (1.0 - std::pow(0.9, t))),
                           static_cast<T>(1.0 / (1.0 - std::pow(0.999, t)))};
    for (index_t l = 0; l < layers.size(); ++l) {
      Layer& layer = layers[l];
      const auto slopes = part(layer.slopes, layer.count(), 0, n);
      move_directions(layer, input(l, 0, n), slopes, at_rate(step, layer.directions_rate),
                      n_threads);
      column_sums<T>(slopes, sums.data(), n_threads);
      layer.offset.move(0, layer.count(), sums.data(), at_rate(step, layer.offset_rate));
    }
    move_logit(n, step, n_threads);
  }

  // Computes the gradient tile by tile, so that a tile is in the cache when its parameters change.
  void move_directions(Layer& layer, MatrixView<const T> from, MatrixView<const T> slopes,
                       const AdamStep<T>& step, int n_threads) {
    auto& directions = layer.directions;
    const index_t size = tile_size();
    const auto move_tile = [&](index_t i, index_t j, index_t m, index_t n, int thread) {
      T* gradient = tiles.data() + thread * size;
      row_product<T>(Op::transpose, from.block(0, i, from.rows, m), Op::none,
                     slopes.block(0, j, from.rows, n), T(0), row_major(gradient, m, n));
      for (index_t r = 0; r < m; ++r) {
        directions.move((i + r) * directions.cols + j, n, gradient + r * n, step);
      }
    };
    for_tiles(directions.rows, directions.cols, from.rows, kGradientTile, n_threads, move_tile);
  }

  // The intercept is c - W^T m with the centre m: Adam changes W and c.
  void move_logit(index_t n, const AdamStep<T>& step, int n_threads) {
    const index_t last = layers.size() - 1, before = input_width(), k = classes();
    const auto z = part(scores, k, 0, n);
    const auto slope = row_major(weights_gradient.data(), weights.rows, k);
    if (includes_input) {
      row_products<T>(Op::transpose, input(last, 0, n), Op::none, z, T(0),
                      slope.block(0, 0, before, k), n_threads);
    }
    row_products<T>(Op::transpose, part(layers[last].features, layers[last].width(), 0, n),
                    Op::none, z, T(0), slope.block(before, 0, layers[last].width(), k), n_threads);
    column_sums<T>(z, sums.data(), n_threads);
    add_centre(T(1));
    for (index_t j = 0; j < weights.rows; ++j) {
      add_multiple(-centre[j], sums.data(), k, slope.row(j));
      weights.move(j * k, k, slope.row(j), at_rate(step, rates[j]));
    }
    intercept.move(0, k, sums.data(), at_rate(step, intercept_rate));
    add_centre(T(-1));
  }

  // b += sign W^T m
  void add_centre(T sign) {
    for (index_t j = 0; j < weights.rows; ++j) {
      add_multiple(sign * centre[j], weights.values.data() + j * classes(), classes(),
                   intercept.values.data());
    }
  }
};

template <class T>
LayerTraining<T>::LayerTraining(const TrainedLayers<T>& layers, const TrainedLogit<T>& logit)
    : state_(std::make_unique<State>()) {
  State& s = *state_;
  const index_t n_layers = layers.directions.size();
  require(n_layers >= 1 && layers.offsets.size() == n_layers && layers.powers.size() == n_layers &&
              layers.rates.size() == n_layers,
          "layers", "at least one, each with offset, powers and rates", std::to_string(n_layers));
  index_t columns = 0, width = 0, most = 0;
  for (index_t l = 0; l < n_layers; ++l) {
    const auto directions = layers.directions[l];
    const auto offset = layers.offsets[l];
    const auto rows = directions.rows, count = directions.cols;
    require(rows >= 1 && count >= 1 && (l == 0 || rows == width), "directions",
            l == 0 ? "rows and columns" : "as many rows as the layer before has features",
            shape_text(rows, count));
    require(offset.size == count, "offset", std::to_string(count) + " entries",
            std::to_string(offset.size));
    check_powers({Wave::shifted, layers.powers[l], false});
    const auto [rate, offset_rate] = layers.rates[l];
    typename State::Layer layer{
        Moved<T>(directions), Moved<T>(offset), layers.powers[l], rate, offset_rate, {}, {}, {}};
    columns = rows;
    width = layer.width();
    most = std::max(most, count);
    s.layers.push_back(std::move(layer));
  }
  const index_t p = width + (logit.includes_input ? columns : 0), k = logit.weights.cols;
  require(logit.weights.rows == p && k >= 2, "weights",
          std::to_string(p) + " rows and two columns or more", shape_text(logit.weights.rows, k));
  require(logit.intercept.size == k, "intercept", std::to_string(k) + " entries",
          std::to_string(logit.intercept.size));
  require(logit.centre.size == p && logit.rates.size == p, "centre and rates",
          std::to_string(p) + " entries each",
          std::to_string(logit.centre.size) + " and " + std::to_string(logit.rates.size));
  s.weights = Moved<T>(logit.weights);
  s.intercept = Moved<T>(logit.intercept);
  s.weights_gradient.reserve(p * k);
  s.sums.reserve(std::max(k, most));
  s.centre.reserve(p);
  s.rates.reserve(p);
  std::copy_n(logit.centre.data, p, s.centre.data());
  std::copy_n(logit.rates.data, p, s.rates.data());
  s.intercept_rate = logit.intercept_rate;
  s.includes_input = logit.includes_input;
}

template <class T>
LayerTraining<T>::~LayerTraining() = default;

template <class T>
TrainingLosses LayerTraining<T>::step(MatrixView<const T> rows,
                                      VectorView<const std::int32_t> labels,
                                      VectorView<const T> row_weights, T shift, T rate,
                                      int n_threads) {
  State& s = *state_;
  const index_t n = rows.rows;
  require(n >= 1 && rows.cols == s.columns(), "rows",
          "one or more, of " + std::to_string(s.columns()) + " columns", shape_text(n, rows.cols));
  require(labels.size == n, "labels", std::to_string(n) + " entries", std::to_string(labels.size));
  require(row_weights.empty() || row_weights.size == n, "row_weights",
          std::to_string(n) + " entries", std::to_string(row_weights.size));
  require(shift >= T(0) && std::isfinite(shift), "shift", "a finite number, 0 or more",
          std::to_string(shift));
  require(rate >= T(0), "rate", "a number, 0 or more", std::to_string(rate));
  for (index_t i = 0; i < n; ++i) {
    if (!(labels[i] >= 0 && labels[i] < s.classes()))
      refuse("labels", "indices in [0, " + std::to_string(s.classes()) + ")",
             std::to_string(labels[i]) + " in row " + std::to_string(i));
    if (!row_weights.empty() && !(row_weights[i] >= T(0) && std::isfinite(row_weights[i])))
      refuse("row_weights", "nonnegative, finite numbers",
             std::to_string(row_weights[i]) + " in row " + std::to_string(i));
  }

  const bool shifted = shift > T(0);
  const index_t all = shifted ? 2 * n : n;
  const int threads = resolve_threads(n_threads);
  const NoInterrupts whole;
  s.reserve(all, threads);
  for (index_t i = 0; i < n; ++i) {
    std::copy_n(rows.row(i), rows.cols, s.rows.data() + i * rows.cols);
  }
  TrainingLosses losses;
  s.forward(0, n, threads);
  losses.loss = s.residuals(0, n, labels, row_weights.data);
  s.backward(0, n, shifted, threads);
  if (shifted) {
    s.shift_rows(n, shift, threads);
    s.forward(n, n, threads);
    losses.shifted = s.residuals(n, n, labels, row_weights.data);
    s.backward(n, n, false, threads);
  }
  s.move(all, rate, threads);
  return losses;
}

template <class T>
void LayerTraining<T>::layer(index_t number, MatrixView<T> directions, VectorView<T> offset) const {
  require(number >= 0 && number < state_->layers.size(), "number", "the index of a layer",
          std::to_string(number));
  const auto& layer = state_->layers[number];
  require(directions.rows == layer.directions.rows && directions.cols == layer.count() &&
              offset.size == layer.count(),
          "out", "the shapes of the layer", shape_text(directions.rows, directions.cols));
  layer.directions.copy_to(directions.data);
  layer.offset.copy_to(offset.data);
}

template <class T>
void LayerTraining<T>::logit(MatrixView<T> weights, VectorView<T> intercept) const {
  require(weights.rows == state_->weights.rows && weights.cols == state_->classes() &&
              intercept.size == state_->classes(),
          "out", "the shapes of the logit", shape_text(weights.rows, weights.cols));
  state_->weights.copy_to(weights.data);
  state_->intercept.copy_to(intercept.data);
}

template void standardise<float>(MatrixView<const float>, VectorView<const double>,
                                 VectorView<const double>, MatrixView<float>, int);
template void standardise<double>(MatrixView<const double>, VectorView<const double>,
                                  VectorView<const double>, MatrixView<float>, int);
template class LayerTraining<float>;
template class LayerTraining<double>;

}  // namespace eigenfeat
