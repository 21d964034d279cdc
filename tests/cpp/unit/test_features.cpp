// Feature rows of every kind against their formulas: tiles, scores, products and sums.
#include <doctest/doctest.h>

#include <stdexcept>

#include "eigenfeat/features.hpp"
#include "eigenfeat/vector.hpp"
#include "unit/features_support.hpp"

using namespace eigenfeat;
using namespace eigenfeat::support;

namespace {

template <class T>
index_t wrong_features(const Features<T>& features) {
  const index_t n = features.rows.rows();
  TileScratch<T> scratch;
  index_t wrong = 0;
  for (index_t begin = 0; begin < n; begin += 5) {
    const index_t end = std::min(n, begin + 5);
    const MatrixView<const T> tile = load_tile(features.rows, begin, end, scratch);
    for (index_t r = 0; r < tile.rows; ++r) {
      for (index_t j = 0; j < tile.cols; ++j) {
        const long double right = features.phi(begin + r, j);
        const long double error = std::fabs(static_cast<long double>(tile(r, j)) - right);
        wrong += error <= 8 * epsilon<T>() * std::max(std::fabs(right), 1.0L) ? 0 : 1;
      }
    }
    wrong += tile.rows == end - begin && tile.cols == features.rows.varying() ? 0 : 1000000;
  }
  return wrong;
}

// Checks scores, products and sums of rows with k columns.
template <class T>
void check_products(Random& random, const Features<T>& features, index_t k) {
  const index_t n = features.rows.rows(), p = features.rows.cols();
  const Matrix<T> w = random.normal_matrix<T>(p, k, Order::rows, 3),
                  r = random.normal_matrix<T>(n, k, Order::rows, 2);
  Matrix<T> z(n, k, Order::rows, 1);
  feature_scores<T>(features.rows, w.read(), z.view(), 2);
  CHECK(count_off(z.read(), linear::scores(features.phi, linear::table_of(w.read())),
                  rounding<T>(p)) == 0);
  CHECK(z.padding_untouched());
  // Coefficients in the order of classes give the same bits.
  const index_t varying = features.rows.varying();
  Matrix<double> by_class(k, varying, Order::rows, 1);
  Vector<double> constants(features.rows.constant ? k : 0);
  for (index_t c = 0; c < k; ++c) {
    for (index_t j = 0; j < varying; ++j) by_class(c, j) = static_cast<double>(w(j, c));
    if (features.rows.constant) constants[c] = static_cast<double>(w(varying, c));
  }
  Matrix<T> same(n, k, Order::rows, 1);
  class_scores<T>(features.rows, by_class.read(), read(constants), same.view(), 2);
  index_t apart = 0;
  for (index_t i = 0; i < n; ++i) {
    for (index_t c = 0; c < k; ++c) apart += same(i, c) == z(i, c) ? 0 : 1;
  }
  CHECK(apart == 0);
  Matrix<double> g(p, k, Order::rows, 1);
  feature_products<T>(features.rows, r.read(), g.view(), 2);
  CHECK(count_off(g.read(), linear::products(features.phi, linear::table_of(r.read())),
                  rounding<T>(std::min<index_t>(n, 4096))) == 0);
  CHECK(g.padding_untouched());
}

template <class T>
void check_sums(const Features<T>& features, const Vector<double>& weights) {
  const index_t n = features.rows.rows(), p = features.rows.cols();
  Vector<double> first(p), second(p);
  feature_sums<T>(features.rows, read(weights), write(first), write(second), 2);
  linear::Sum sum(1, p), square(1, p);
  for (index_t i = 0; i < n; ++i) {
    const long double weight = linear::weight_of(weights, i);
    for (index_t j = 0; j < p; ++j) {
      sum.add(0, j, weight * features.phi(i, j));
      square.add(0, j, weight * features.phi(i, j) * features.phi(i, j));
    }
  }
  // The features are T, the sums double.
  const long double relative = 8 * epsilon<T>() + rounding<double>(n);
  CHECK(count_off(row_major<const double>(first.data(), 1, p), sum, relative) == 0);
  CHECK(count_off(row_major<const double>(second.data(), 1, p), square, 2 * relative) == 0);
}

Vector<Expansion> expansions() {
  return {{Wave::half_wave, {1, 2, 3}, false},
          {Wave::half_wave, {3, 1}, true},
          {Wave::shifted, {1, 2}, false},
          {Wave::shifted, {2, 3}, true},
          {Wave::polynomial, {1, 2, 3}, true},
          {Wave::none, {1, 2, 3}, false},
          {Wave::none, {1}, true}};
}

template <class T>
std::string error_of(const FeatureRows<T>& rows) {
  return message_of<std::invalid_argument>([&] { rows.check(); });
}

}  // namespace

TEST_CASE_TEMPLATE("tiles hold the features of every kind of rows", T, float, double) {
  Random random(301);
  for (const Kind kind : kKinds) {
    for (const bool constant : {false, true}) {
      for (const Expansion& expansion : expansions()) {
        const Features<T> features(random, kind, 23, 9, constant, expansion);
        CHECK(features.rows.cols() == features.phi.cols);
        CHECK(features.rows.rows() == 23);
        CHECK(wrong_features(features) == 0);
        if (is_plain(kind)) break;
      }
    }
  }
}

TEST_CASE_TEMPLATE("products of half waves that are made tile by tile", T, float, double) {
  Random random(307);
  for (const Kind kind : {Kind::stored, Kind::expanded, Kind::sparse_expanded}) {
    bool constant = false;
    for (const Wave wave : {Wave::half_wave, Wave::shifted}) {
      for (const index_t n : {1, 63, 64, 65, 130}) {
        constant = !constant;
        const Features<T> features(random, kind, n, 16 + n % 19, constant,
                                   {wave, {1, 2, 3}, false});
        for (const index_t k : {1, 2, 5, 7, 10, 64, 65}) check_products<T>(random, features, k);
        check_sums<T>(features, {});
        check_sums<T>(features, random_weights(random, n));
      }
    }
  }
}

TEST_CASE_TEMPLATE("products for every kind, width and number of columns", T, float, double) {
  Random random(302);
  const Vector<index_t> widths{1, 2, 3, 8, 10, 16, 17, 32, 33, 64, 65, 100};
  for (const Kind kind : kKinds) {
    index_t turn = 0;
    for (const index_t columns : {1, 5, 43, 255, 257}) {
      if (!is_plain(kind) && columns > 43) continue;
      const bool constant = turn % 2 == 0;
      const Expansion expansion = expansions()[turn++ % expansions().size()];
      const Features<T> features(random, kind, 31, columns, constant, expansion);
      for (const index_t k : widths) check_products<T>(random, features, k);
      check_sums<T>(features, {});
      check_sums<T>(features, random_weights(random, 31));
    }
  }
}

// Columns that do not fill a vector of 2 to 16 numbers are multiplied along vectors of the tile's
// columns, if it has at least 48 rows and a vector of columns.
TEST_CASE_TEMPLATE("products with columns that do not fill a vector", T, float, double) {
  Random random(308);
  for (const index_t n : {47, 48, 101}) {
    for (const index_t columns : {1, 2, 3, 4, 7, 8, 9, 15, 16, 17, 31, 47, 49, 97, 255, 257, 271}) {
      const Features<T> features(random, Kind::dense, n, columns, columns % 2 == 1);
      for (const index_t k : {1, 2, 3, 4, 5, 6, 7, 9, 10, 11, 12, 13, 18, 21, 26})
        check_products<T>(random, features, k);
    }
    // Longer than one packed part: 512 doubles or 1,024 floats.
    for (const index_t columns : {513, 1023, 1025, 1039}) {
      const Features<T> features(random, Kind::dense, n, columns, false);
      for (const index_t k : {2, 10}) check_products<T>(random, features, k);
    }
  }
}

TEST_CASE_TEMPLATE("products of rows beyond one tile", T, float, double) {
  Random random(303);
  for (const Kind kind : {Kind::dense, Kind::sparse, Kind::expanded}) {
    for (const index_t n : {1, 11, 12, 13, 239, 240, 241, 480, 481}) {
      const Features<T> features(random, kind, n, 3, n % 2 == 1);
      check_products<T>(random, features, n % 3 == 0 ? 1 : 3);
      check_sums<T>(features, random_weights(random, n));
    }
    // Tiles of 24 to 192 rows.
    for (const index_t n : {23, 24, 25, 97, 191, 193}) {
      const Features<T> features(random, kind, n, kind == Kind::expanded ? 700 : 3100, true);
      check_products<T>(random, features, 2);
    }
  }
}

TEST_CASE_TEMPLATE("products of rows beyond one group of tiles", T, float, double) {
  Random random(304);
  for (const index_t n : {64 * 240 - 1, 64 * 240 + 1, 65 * 240, 128 * 240 + 1}) {
    const Features<T> features(random, Kind::dense, n, 2, true, {}, 0);
    check_products<T>(random, features, 2);
    check_sums<T>(features, {});
  }
}

TEST_CASE("float sums of many rows move into double") {
  // Each group of 18 tiles adds its float sums to sums in double. The sums here have a million
  // equal terms.
  const index_t n = 1000003;
  Matrix<float> x(n, 1), r(n, 1);
  for (index_t i = 0; i < n; ++i) {
    x(i, 0) = 1.1F;
    r(i, 0) = 0.3F;
  }
  FeatureRows<float> rows;
  rows.dense = x.read();
  rows.constant = true;
  Matrix<double> g(2, 1);
  feature_products<float>(rows, r.read(), g.view(), 1);
  const double count = static_cast<double>(n), term = static_cast<double>(0.3F);
  CHECK(g(1, 0) == doctest::Approx(count * term).epsilon(2e-4));
  CHECK(g(0, 0) == doctest::Approx(count * term * static_cast<double>(1.1F)).epsilon(2e-4));
}

TEST_CASE_TEMPLATE("no rows, no columns, no directions", T, float, double) {
  Random random(305);
  for (const Kind kind : {Kind::sparse, Kind::sparse_expanded}) {
    const Features<T> none(random, kind, 0, 4, true);
    check_products<T>(random, none, 3);
    check_sums<T>(none, {});
  }
  for (const Kind kind : {Kind::expanded, Kind::sparse_expanded}) {
    const Features<T> input(random, kind, 9, 0, true, {Wave::half_wave, {1, 2}, true});
    REQUIRE(input.rows.cols() == 8);
    check_products<T>(random, input, 3);
    check_sums<T>(input, {});
  }
  const Features<T> some(random, Kind::dense, 9, 4, true);
  check_products<T>(random, some, 0);
}

TEST_CASE("an expansion of no columns has only the constant feature") {
  Random random(306);
  const Features<double> features(random, Kind::expanded, 12, 0, true);
  REQUIRE(features.rows.cols() == 1);
  check_products<double>(random, features, 10);
  check_sums<double>(features, random_weights(random, 12));
}

TEST_CASE_TEMPLATE("the errors of wrong feature rows name the array", T, float, double) {
  Random random(307);
  const Features<T> dense(random, Kind::dense, 6, 4, false),
      sparse(random, Kind::sparse, 6, 4, false), expanded(random, Kind::expanded, 6, 4, false),
      stored(random, Kind::stored, 6, 4, false);
  FeatureRows<T> rows = dense.rows;
  rows.sparse = sparse.rows.sparse;
  CHECK(starts_with(error_of(rows), "X: expected dense or sparse samples"));
  rows = dense.rows;
  rows.dense = rows.dense.transposed();
  CHECK(starts_with(error_of(rows), "X: expected row-major"));
  rows = dense.rows;
  rows.directions = expanded.rows.directions;
  CHECK(starts_with(error_of(rows), "directions: expected none"));
  rows = expanded.rows;
  rows.dense = dense.rows.dense;
  CHECK(starts_with(error_of(rows), "directions: expected a row-major matrix of 4 rows"));
  rows = expanded.rows;
  rows.offset.size = 3;
  CHECK(starts_with(error_of(rows), "offset: expected 4 entries, got 3"));
  rows = expanded.rows;
  rows.expansion.powers = {1, 1};
  CHECK(starts_with(error_of(rows), "powers"));
  rows = expanded.rows;
  rows.dense = {};
  CHECK(starts_with(error_of(rows), "X: expected samples, which the expansion needs"));
  rows = stored.rows;
  rows.expansion.include_input = true;
  CHECK(starts_with(error_of(rows), "X: expected samples, which the expansion needs"));
  rows.dense = dense.rows.dense.block(0, 0, 5, 4);
  CHECK(starts_with(error_of(rows), "projections: expected 5 rows, got 6"));
  rows = stored.rows;
  rows.projections = rows.projections.transposed();
  CHECK(starts_with(error_of(rows), "projections: expected row-major"));
}

TEST_CASE_TEMPLATE("the errors of products with wrong shapes name the array", T, float, double) {
  Random random(308);
  const Features<T> features(random, Kind::dense, 6, 4, true);
  const Matrix<T> w = random.normal_matrix<T>(5, 3), few = random.normal_matrix<T>(4, 3),
                  across = random.normal_matrix<T>(5, 3, Order::columns);
  Matrix<T> z(6, 3), short_z(5, 3);
  Matrix<double> g(5, 3), short_g(4, 3);
  Vector<double> five(5), four(4), weights(7, 1.0);
  const auto scores = [&](MatrixView<const T> a, MatrixView<T> out) {
    return message_of<std::invalid_argument>([&] { feature_scores<T>(features.rows, a, out, 1); });
  };
  CHECK(starts_with(scores(few.read(), z.view()), "coefficients: expected 5 rows, got 4"));
  CHECK(starts_with(scores(across.read(), z.view()), "coefficients: "));
  CHECK(starts_with(scores(w.read(), short_z.view()), "out: "));
  const auto products = [&](MatrixView<const T> r, MatrixView<double> out) {
    return message_of<std::invalid_argument>(
        [&] { feature_products<T>(features.rows, r, out, 1); });
  };
  CHECK(starts_with(products(w.read(), g.view()), "residuals: expected 6 rows, got 5"));
  CHECK(starts_with(products(z.read(), short_g.view()), "out: expected 5 rows, got 4"));
  const auto sums = [&](VectorView<const double> by, Vector<double>& out) {
    return message_of<std::invalid_argument>(
        [&] { feature_sums<T>(features.rows, by, write(out), write(out), 1); });
  };
  CHECK(starts_with(sums(read(weights), five), "weights: expected 6 entries, got 7"));
  CHECK(starts_with(sums({}, four), "sums: expected 5 entries, got 4"));
}
