// Column-major rows give the same bits and the same errors as row-major rows.
#include "eigenfeat/vector.hpp"
#include "unit/moments_support.hpp"

using namespace eigenfeat;
using namespace eigenfeat::support;

namespace {

// A column-major copy with leading dimension `leading`.
template <class T>
struct ColumnCopy {
  Vector<T> numbers;
  MatrixView<T> view;

  ColumnCopy(const Matrix<T>& rows, index_t leading)
      : numbers(leading * rows.cols(), std::numeric_limits<T>::quiet_NaN()),
        view(column_major(numbers.data(), rows.rows(), rows.cols(), leading)) {
    for (index_t i = 0; i < rows.rows(); ++i) {
      for (index_t j = 0; j < rows.cols(); ++j) view(i, j) = rows(i, j);
    }
  }
  MatrixView<const T> read() const { return view; }
};

// Two batches, so that the second is merged.
template <class T>
ClassMoments twice(MatrixView<const T> first, MatrixView<const T> second, const Labels& labels,
                   const Weights& weights, int n_threads) {
  ClassMoments moments(4, first.cols);
  moments.update<T>(first, read(labels), read(weights), n_threads);
  moments.update<T>(second, read(labels), read(weights), n_threads);
  return moments;
}

}  // namespace

TEST_CASE_TEMPLATE("column-major rows give the same bits, for any shape and number of threads", T,
                   float, double) {
  Random random(7);
  // Complete squares of cache lines, and remainders of columns and of rows.
  for (const auto& [n, d] : {std::pair<index_t, index_t>{1, 2},
                             {15, 3},
                             {16, 16},
                             {17, 33},
                             {255, 8},
                             {300, 100},
                             {2500, 31},
                             {40, 900},
                             {9000, 17}}) {
    const Matrix<T> rows = random.normal_matrix<T>(n, d), later = random.normal_matrix<T>(n, d);
    const Labels labels = random.labels(n, 3);  // the fourth class stays empty
    Weights weights(n);
    for (index_t i = 0; i < n; ++i) weights[i] = static_cast<double>(i % 5) / 2;
    for (const index_t leading : {n, n + 7}) {
      const ColumnCopy<T> columns(rows, leading), further(later, leading);
      for (const Weights& given : {Weights{}, weights}) {
        const ClassMoments expected = twice<T>(rows.read(), later.read(), labels, given, 2);
        for (const int n_threads : {1, 2, 7}) {
          CHECK(twice<T>(columns.read(), further.read(), labels, given, n_threads) == expected);
        }
      }
    }
  }
}

TEST_CASE_TEMPLATE("columns that are zero, tiny or huge give the same bits", T, float, double) {
  Random random(8);
  Matrix<T> rows = random.normal_matrix<T>(700, 50);
  for (index_t i = 0; i < 700; ++i) {
    for (index_t j = 0; j < 30; ++j) rows(i, j) = T(0);
    rows(i, 30) *= T(1e30);
    rows(i, 31) *= T(1e-30);
    rows(i, 32) += T(1e6);
  }
  const Labels labels = random.labels(700, 3);
  const ColumnCopy<T> columns(rows, 712);
  const ClassMoments moments = twice<T>(columns.read(), columns.read(), labels, {}, 2);
  CHECK(moments == twice<T>(rows.read(), rows.read(), labels, {}, 2));
}

TEST_CASE_TEMPLATE("a non-finite entry of a column is reported by row and column", T, float,
                   double) {
  Random random(9);
  const Matrix<T> rows = random.normal_matrix<T>(600, 70);
  const Labels labels = random.labels(600, 3);
  ColumnCopy<T> columns(rows, 605);
  ClassMoments moments = twice<T>(columns.read(), columns.read(), labels, {}, 2);
  const ClassMoments before = moments;
  columns.view(599, 3) = std::numeric_limits<T>::infinity();
  columns.view(123, 45) = std::numeric_limits<T>::quiet_NaN();
  for (const int n_threads : {1, 2, 7}) {
    const std::string message = message_of<std::invalid_argument>(
        [&] { moments.update<T>(columns.read(), read(labels), {}, n_threads); });
    INFO(message);
    CHECK(starts_with(message, "X:"));
    CHECK(contains(message, "NaN in row 123, column 45"));
    CHECK(moments == before);
  }
  Weights weights(600, 1.0);
  weights[321] = -1.0;
  const std::string message = message_of<std::invalid_argument>(
      [&] { moments.update<T>(columns.read(), read(labels), read(weights), 2); });
  CHECK(starts_with(message, "sample_weight:"));
  CHECK(contains(message, "row 321"));
  CHECK(moments == before);
}

TEST_CASE("views without contiguous rows or columns are refused") {
  Vector<double> numbers(100, 1.0);
  ClassMoments moments(1, 3);
  const MatrixView<const double> view{numbers.data(), 4, 3, 2, 20};
  const Labels labels(4, 0);
  const std::string message =
      message_of<std::invalid_argument>([&] { moments.update<double>(view, read(labels), {}, 1); });
  CHECK(starts_with(message, "X: expected contiguous rows or columns"));
}
