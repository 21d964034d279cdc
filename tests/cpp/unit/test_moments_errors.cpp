// Wrong rows, labels and weights: the message says where, and the moments do not change.
#include "unit/moments_support.hpp"

using namespace eigenfeat;
using namespace eigenfeat::support;

namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

template <class T>
struct Case {
  Matrix<T> rows;
  Labels labels;
  Weights weights;
  ClassMoments moments;
  ClassMoments before;
};

template <class T>
Case<T> sample_case(index_t n, index_t d) {
  Random random(41);
  Matrix<T> rows = random.normal_matrix<T>(n, d);
  Labels labels = random.labels(n, 3);
  ClassMoments moments = moments_of(rows, labels, {}, 3);
  return {rows, labels, {}, moments, moments};
}

template <class T>
std::string update_error(Case<T>& sample, int n_threads) {
  return message_of<std::invalid_argument>([&] {
    sample.moments.template update<T>(sample.rows.read(), read(sample.labels), read(sample.weights),
                                      n_threads);
  });
}

}  // namespace

TEST_CASE_TEMPLATE("a non-finite entry is reported by row and column, at any place", T, float,
                   double) {
  Case<T> sample = sample_case<T>(600, 70);
  for (const double bad : {std::nan(""), kInfinity, -kInfinity}) {
    for (const auto& [row, column] : {std::pair<index_t, index_t>{0, 0}, {123, 45}, {599, 69}}) {
      const T good = sample.rows(row, column);
      sample.rows(row, column) = static_cast<T>(bad);
      for (const int n_threads : {1, 2, 7}) {
        const std::string message = update_error(sample, n_threads);
        INFO(message);
        CHECK(starts_with(message, "X:"));
        CHECK(contains(message, "row " + std::to_string(row) + ","));
        CHECK(contains(message, "column " + std::to_string(column)));
        CHECK(sample.moments == sample.before);
      }
      sample.rows(row, column) = good;
    }
  }
}

TEST_CASE_TEMPLATE("of many non-finite entries, the first is reported for any number of threads", T,
                   float, double) {
  Case<T> sample = sample_case<T>(3000, 20);
  for (index_t i = 40; i < 3000; i += 7) sample.rows(i, i % 20) = static_cast<T>(kInfinity);
  for (const int n_threads : {1, 2, 7, 7, 7}) {
    const std::string message = update_error(sample, n_threads);
    INFO(message);
    CHECK(contains(message, "row 40,"));
    CHECK(contains(message, "column 0"));
    CHECK(sample.moments == sample.before);
  }
}

TEST_CASE_TEMPLATE("large entries are refused only if their squares overflow", T, float, double) {
  Case<T> sample = sample_case<T>(4, 2);
  sample.rows(1, 1) = sizeof(T) == 4 ? std::numeric_limits<T>::max() : static_cast<T>(1e149);
  CHECK(update_error(sample, 1) == "");
  const Matrix<double> covariance = covariance_of(sample.moments, sample.labels[1]);
  CHECK(std::isfinite(covariance(1, 1)));
  CHECK(covariance(1, 1) > 0);
  Case<double> large = sample_case<double>(4, 2);
  large.rows(1, 1) = 1e151;
  CHECK(starts_with(update_error(large, 1), "X:"));
  CHECK(large.moments == large.before);
}

TEST_CASE_TEMPLATE("labels outside the classes are refused", T, float, double) {
  for (const std::int32_t bad : {-1, 3, 2147483647}) {
    Case<T> sample = sample_case<T>(500, 5);
    sample.labels[77] = bad;
    const std::string message = update_error(sample, 2);
    INFO(message);
    CHECK(starts_with(message, "labels:"));
    CHECK(contains(message, std::to_string(bad)));
    CHECK(sample.moments == sample.before);
  }
}

TEST_CASE_TEMPLATE("weights must be finite and not negative", T, float, double) {
  for (const double bad : {-1.0, -1e-300, std::nan(""), kInfinity}) {
    Case<T> sample = sample_case<T>(500, 5);
    sample.weights.assign(500, 1.0);
    sample.weights[499] = bad;
    const std::string message = update_error(sample, 2);
    INFO(message);
    CHECK(starts_with(message, "sample_weight:"));
    CHECK(sample.moments == sample.before);
  }
}

TEST_CASE_TEMPLATE("shapes must match", T, float, double) {
  Case<T> sample = sample_case<T>(10, 4);
  const auto update = [&](MatrixView<const T> rows, index_t n_labels, index_t n_weights) {
    const Labels labels(n_labels, 0);
    const Weights weights(n_weights, 1.0);
    return message_of<std::invalid_argument>(
        [&] { sample.moments.template update<T>(rows, read(labels), read(weights), 1); });
  };
  const MatrixView<const T> rows = sample.rows.read();
  CHECK(starts_with(update(rows.block(0, 0, 10, 3), 10, 0), "X:"));
  const MatrixView<const T> every_second{rows.data, 4, 4, 2 * rows.row_stride, 2};
  // Neither rows nor columns are contiguous.
  CHECK(starts_with(update(every_second, 4, 0), "X:"));
  CHECK(starts_with(update(rows, 9, 0), "labels:"));
  CHECK(starts_with(update(rows, 10, 11), "sample_weight:"));
  CHECK(sample.moments == sample.before);
}

TEST_CASE_TEMPLATE("one row with a column stride is not read as if it had none", T, float, double) {
  const Matrix<T> columns(2, 3, {1, 2, 3, -1, -2, -3}, Order::columns);
  ClassMoments moments(1, 3);
  const MatrixView<const T> row = columns.read().block(0, 0, 1, 3);
  const Labels labels{0};
  moments.update<T>(row, read(labels), {}, 1);
  for (index_t j = 0; j < 3; ++j) CHECK(mean_of(moments, 0, j) == columns(0, j));
}

TEST_CASE("sizes of the moments themselves are checked") {
  CHECK_THROWS_AS(ClassMoments(-1, 2), std::invalid_argument);
  CHECK_THROWS_AS(ClassMoments(2, -1), std::invalid_argument);
}

TEST_CASE_TEMPLATE("errors of sparse rows name the entry, also of columns out of range", T, float,
                   double) {
  Random random(42);
  const SparseRows<T> good = random_sparse<T>(random, 200, 30, 0.3);
  const Labels labels = random.labels(200, 2);
  ClassMoments moments(2, 30);
  moments.update<T>(good.view(), read(labels), {}, 2);
  const ClassMoments before = moments;

  const index_t row = 150, position = good.indptr[row] + 1;
  REQUIRE(position < good.indptr[row + 1]);
  for (const double bad : {std::nan(""), kInfinity}) {
    SparseRows<T> rows = good;
    rows.values[position] = static_cast<T>(bad);
    const std::string message = message_of<std::invalid_argument>(
        [&] { moments.update<T>(rows.view(), read(labels), {}, 2); });
    INFO(message);
    CHECK(contains(message, "row 150"));
    CHECK(contains(message, "column " + std::to_string(rows.indices[position])));
    CHECK(moments == before);
  }
  for (const index_t column : {index_t{30}, index_t{-1}}) {
    SparseRows<T> rows = good;
    rows.indices[position] = column;
    CHECK_THROWS_AS(moments.update<T>(rows.view(), read(labels), {}, 2), std::invalid_argument);
    CHECK(moments == before);
  }
  SparseRows<T> narrow = good;
  narrow.cols = 29;
  CHECK_THROWS_AS(moments.update<T>(narrow.view(), read(labels), {}, 2), std::invalid_argument);
  SparseRows<T> decreasing = good;  // row offsets decrease at rows 100 and 101
  decreasing.indptr[101] = decreasing.indptr[99];
  REQUIRE(decreasing.indptr[100] > decreasing.indptr[101]);
  CHECK_THROWS_AS(moments.update<T>(decreasing.view(), read(labels), {}, 2), std::invalid_argument);
  CHECK(moments == before);
}
