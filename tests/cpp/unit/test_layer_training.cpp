// Joint training of layers: signs of the first step against differences of the loss, two steps of
// many directions against plain loops, shifted rows, threads and misuse.
// tests/python/gem/test_joint.py compares whole steps with a reference.
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <stdexcept>

#include "eigenfeat/layer_training.hpp"
#include "eigenfeat/vector.hpp"
#include "unit/support.hpp"

using namespace eigenfeat;
using namespace eigenfeat::support;

namespace {

// One layer of F directions in d columns, and the logit of k classes on its features.
template <class T>
struct Model {
  Matrix<T> directions, weights, rows;
  Vector<T> offset, intercept, centre, rates;
  Vector<std::int32_t> labels;

  Model(Random& random, index_t n, index_t d, index_t count, index_t k)
      : directions(random.normal_matrix<T>(d, count)),
        weights(random.normal_matrix<T>(2 * count, k)),
        rows(random.normal_matrix<T>(n, d)),
        offset(count, T(0.25)),
        intercept(k, T(0)),
        centre(2 * count, T(0)),
        rates(2 * count, T(1)),
        labels(random.labels(n, k)) {}

  LayerTraining<T> begin() const {
    TrainedLayers<T> layers;
    layers.directions.push_back(directions.read());
    layers.offsets.push_back(read(offset));
    layers.powers.push_back({1});
    layers.rates.push_back({T(1), T(1)});
    return {layers, {weights.read(), read(intercept), read(centre), read(rates), T(1), false}};
  }
  TrainingLosses losses(T shift) const {
    return begin().step(rows.read(), read(labels), {}, shift, T(0), 1);
  }
};

// The same model, and its steps without a shift, by plain loops in double.
struct PlainTraining {
  index_t n, d, count, k, steps = 0;
  Vector<double> x, directions, offset, weights, intercept;
  Vector<std::int32_t> labels;
  Vector<double> means[4], squares[4];

  template <class T>
  explicit PlainTraining(const Model<T>& model)
      : n(model.rows.read().rows),
        d(model.rows.read().cols),
        count(model.offset.size()),
        k(model.intercept.size()),
        x(entries(model.rows.read())),
        directions(entries(model.directions.read())),
        offset(model.offset.begin(), model.offset.end()),
        weights(entries(model.weights.read())),
        intercept(model.intercept.begin(), model.intercept.end()),
        labels(model.labels) {}

  void step(double rate) {
    Vector<double> by_directions(d * count, 0.0), by_offset(count, 0.0),
        by_weights(2 * count * k, 0.0), by_intercept(k, 0.0);
    for (index_t i = 0; i < n; ++i) {
      Vector<double> p = offset, h(2 * count), z = intercept;
      for (index_t j = 0; j < d; ++j) {
        for (index_t f = 0; f < count; ++f) p[f] += x[i * d + j] * directions[j * count + f];
      }
      for (index_t f = 0; f < count; ++f) {
        h[f] = std::sqrt(1 + std::max(0.0, p[f])) - 1;
        h[count + f] = std::sqrt(1 + std::max(0.0, -p[f])) - 1;
      }
      for (index_t q = 0; q < 2 * count; ++q) {
        for (index_t c = 0; c < k; ++c) z[c] += h[q] * weights[q * k + c];
      }
      double sum = 0.0;
      const double most = *std::max_element(z.begin(), z.end());
      for (double& value : z) sum += value = std::exp(value - most);
      for (index_t c = 0; c < k; ++c) {
        z[c] = (z[c] / sum - (labels[i] == c ? 1.0 : 0.0)) / static_cast<double>(n);
        by_intercept[c] += z[c];
        for (index_t q = 0; q < 2 * count; ++q) by_weights[q * k + c] += h[q] * z[c];
      }
      for (index_t f = 0; f < count; ++f) {
        const index_t q = p[f] > 0.0 ? f : count + f;
        double slope = 0.0;
        for (index_t c = 0; c < k; ++c) slope += weights[q * k + c] * z[c];
        slope *= (p[f] > 0.0 ? 0.5 : -0.5) / std::sqrt(1 + std::abs(p[f]));
        by_offset[f] += slope;
        for (index_t j = 0; j < d; ++j) by_directions[j * count + f] += x[i * d + j] * slope;
      }
    }
    ++steps;
    move(0, by_directions, rate, directions);
    move(1, by_offset, rate, offset);
    move(2, by_weights, rate, weights);
    move(3, by_intercept, rate, intercept);
  }

 private:
  template <class T>
  static Vector<double> entries(MatrixView<const T> a) {
    Vector<double> out;
    for (index_t i = 0; i < a.rows; ++i) {
      for (index_t j = 0; j < a.cols; ++j) out.push_back(static_cast<double>(a(i, j)));
    }
    return out;
  }

  void move(int part, const Vector<double>& gradient, double rate, Vector<double>& values) {
    means[part].resize(gradient.size(), 0.0);
    squares[part].resize(gradient.size(), 0.0);
    for (index_t e = 0; e < gradient.size(); ++e) {
      double &mean = means[part][e], &square = squares[part][e];
      mean = 0.9 * mean + 0.1 * gradient[e];
      square = 0.999 * square + 0.001 * gradient[e] * gradient[e];
      const double t = static_cast<double>(steps);
      values[e] -= rate * mean / (1 - std::pow(0.9, t)) /
                   (std::sqrt(square / (1 - std::pow(0.999, t))) + 1e-12);
    }
  }
};

}  // namespace

TEST_CASE("the first step goes against the sign of each derivative") {
  Random random(3);
  Model<double> model(random, 9, 4, 3, 3);
  LayerTraining<double> training = model.begin();
  const double rate = 1e-3, size = 1e-5;
  training.step(model.rows.read(), read(model.labels), {}, 0.0, rate, 1);
  Matrix<double> directions(4, 3);
  Vector<double> offset(3);
  training.layer(0, directions.view(), write(offset));
  for (index_t j = 0; j < 4; ++j) {
    for (index_t f = 0; f < 3; ++f) {
      Model<double> up = model, down = model;
      up.directions(j, f) += size;
      down.directions(j, f) -= size;
      const double slope = (up.losses(0.0).loss - down.losses(0.0).loss) / (2 * size);
      REQUIRE(std::abs(slope) > 1e-6);
      const double step = directions(j, f) - model.directions(j, f);
      CHECK(step == doctest::Approx(slope > 0.0 ? -rate : rate).epsilon(1e-3));
    }
  }
}

TEST_CASE_TEMPLATE("steps of directions beyond one tile agree with plain loops", T, float, double) {
  Random random(8);
  const index_t n = 21, d = 530, count = 1060, k = 3;
  Model<T> model(random, n, d, count, k);
  for (index_t j = 0; j < d; ++j) {
    for (index_t f = 0; f < count; ++f) model.directions(j, f) *= T(0.05);
  }
  for (index_t q = 0; q < 2 * count; ++q) {  // no probability is near 1
    for (index_t c = 0; c < k; ++c) model.weights(q, c) *= T(0.05);
  }
  const double rate = 0.01;
  PlainTraining plain(model);
  Matrix<T> directions(d, count);
  Vector<T> offset(count), first;
  for (const int n_threads : {1, 2, 7}) {
    LayerTraining<T> training = model.begin();
    for (int step = 0; step < 2; ++step) {
      training.step(model.rows.read(), read(model.labels), {}, T(0), T(rate), n_threads);
    }
    training.layer(0, directions.view(), write(offset));
    Vector<T> values(directions.view().data, directions.view().data + d * count);
    if (n_threads == 1) first = values;
    CHECK(same_bits(first, values));
  }
  for (int step = 0; step < 2; ++step) plain.step(rate);
  // A step depends on the ratio of two means of the gradient, which is arbitrary for entries whose
  // gradient is smaller than its rounding error.
  index_t astray = 0;
  const double tolerance = 1e4 * static_cast<double>(std::numeric_limits<T>::epsilon());
  for (index_t e = 0; e < d * count; ++e) {
    if (!(std::abs(static_cast<double>(first[e]) - plain.directions[e]) <= tolerance)) ++astray;
  }
  CHECK(astray <= d * count / 1000);
}

TEST_CASE("the loss of shifted rows grows with the shift") {
  Random random(4);
  const Model<double> model(random, 40, 6, 5, 4);
  double before = model.losses(0.0).loss;
  CHECK(model.losses(0.0).shifted == 0.0);
  for (const double shift : {0.05, 0.2, 0.4}) {
    const TrainingLosses found = model.losses(shift);
    CHECK(found.loss == model.losses(0.0).loss);
    CHECK(found.shifted > before);
    before = found.shifted;
  }
}

TEST_CASE_TEMPLATE("the number of threads changes nothing, and certain rows give finite numbers", T,
                   float, double) {
  Random random(5);
  Model<T> model(random, 150, 60, 300, 3);
  for (index_t c = 0; c < 3; ++c) model.intercept[c] = T(c == 0 ? 200 : 0);
  for (std::int32_t& label : model.labels) label = 0;  // one class: gradients underflow
  Vector<T> first, other(60 * 300);
  Vector<T> offset(300);
  for (const int n_threads : {1, 2, 7}) {
    LayerTraining<T> training = model.begin();
    for (int step = 0; step < 3; ++step) {
      const TrainingLosses found =
          training.step(model.rows.read(), read(model.labels), {}, T(0.5), T(0.01), n_threads);
      CHECK(std::isfinite(found.loss + found.shifted));
    }
    training.layer(0, row_major(other.data(), 60, 300), write(offset));
    if (n_threads == 1) first = other;
    CHECK(same_bits(first, other));
  }
}

TEST_CASE_TEMPLATE("standardised samples are rounded once, and constant columns become zero", T,
                   float, double) {
  Random random(41);
  const index_t n = 100, d = 3;
  const Matrix<T> rows = random.normal_matrix<T>(n, d);
  const Vector<double> centre = {0.5, -1e6, 3.0};
  const Vector<double> scale = {0.1, 1e-3, std::numeric_limits<double>::infinity()};
  for (const int n_threads : {1, 3}) {
    Matrix<float> out(n, d);
    standardise<T>(rows.read(), read(centre), read(scale), out.view(), n_threads);
    for (index_t i = 0; i < n; ++i) {
      for (index_t j = 0; j < d; ++j) {
        CHECK(out(i, j) ==
              static_cast<float>((static_cast<double>(rows(i, j)) - centre[j]) / scale[j]));
      }
      CHECK(out(i, 2) == 0.0f);
    }
  }
  Matrix<float> narrow(n, d - 1);
  CHECK_THROWS_AS(standardise<T>(rows.read(), read(centre), read(scale), narrow.view(), 1),
                  std::invalid_argument);
  CHECK_THROWS_AS(
      standardise<T>(rows.read(), {centre.data(), d - 1}, read(scale), narrow.view(), 1),
      std::invalid_argument);
}

TEST_CASE("errors name the argument") {
  Random random(6);
  const Model<double> model(random, 5, 4, 3, 2);
  LayerTraining<double> training = model.begin();
  const auto rows = model.rows.read();
  const auto labels = read(model.labels);
  CHECK_THROWS_WITH_AS(training.step(rows.block(0, 0, 5, 3), labels, {}, 0.0, 0.1, 1),
                       doctest::Contains("rows: expected"), std::invalid_argument);
  CHECK_THROWS_WITH_AS(training.step(rows.block(0, 0, 4, 4), labels, {}, 0.0, 0.1, 1),
                       doctest::Contains("labels: expected 4 entries"), std::invalid_argument);
  CHECK_THROWS_WITH_AS(training.step(rows, labels, {}, -1.0, 0.1, 1),
                       doctest::Contains("shift: expected"), std::invalid_argument);
  const double nan = std::nan("");
  CHECK_THROWS_WITH_AS(training.step(rows, labels, {}, 0.0, nan, 1),
                       doctest::Contains("rate: expected"), std::invalid_argument);
  Matrix<double> out(3, 3);
  Vector<double> offset(3);
  CHECK_THROWS_WITH_AS(training.layer(0, out.view(), write(offset)),
                       doctest::Contains("out: expected"), std::invalid_argument);
  CHECK_THROWS_WITH_AS(training.layer(1, out.view(), write(offset)),
                       doctest::Contains("number: expected"), std::invalid_argument);
}
