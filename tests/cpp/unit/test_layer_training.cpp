// Joint training of layers: the first step's signs against differences of the loss, shifted rows,
// threads, misuse. tests/python/gem/test_joint.py compares whole steps with a reference.
#include <doctest/doctest.h>

#include <cmath>
#include <cstdint>
#include <stdexcept>

#include "eigenfeat/layer_training.hpp"
#include "eigenfeat/vector.hpp"
#include "unit/support.hpp"

using namespace eigenfeat;
using namespace eigenfeat::support;

namespace {

// One layer of F directions in d columns, and the logit of k classes above it.
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

TEST_CASE("shifted rows have larger losses, the more the longer the shift") {
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

TEST_CASE_TEMPLATE("threads change nothing, and confident rows stay finite", T, float, double) {
  Random random(5);
  Model<T> model(random, 150, 60, 300, 3);
  for (index_t c = 0; c < 3; ++c) model.intercept[c] = T(c == 0 ? 200 : 0);
  for (std::int32_t& label : model.labels) label = 0;  // certain: gradients underflow
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

TEST_CASE("misuse names the argument") {
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
