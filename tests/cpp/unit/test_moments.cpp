// Moments of dense rows, against numbers by hand and against plain loops.
#include "unit/moments_support.hpp"

using namespace eigenfeat;
using namespace eigenfeat::support;

TEST_CASE_TEMPLATE("moments of three points", T, float, double) {
  // Class 0: (1, 2), (3, 6): mean (2, 4), covariance [1 2; 2 4]. Class 1: (5, 5), alone.
  const Matrix<T> rows(3, 2, {1, 2, 5, 5, 3, 6});
  const ClassMoments moments = moments_of(rows, {0, 1, 0}, {}, 3);
  CHECK(moments.n_classes() == 3);
  CHECK(moments.n_features() == 2);
  CHECK(moments.weight(0) == 2);
  CHECK(mean_of(moments, 0, 0) == 2);
  CHECK(mean_of(moments, 0, 1) == 4);
  const Matrix<double> covariance = covariance_of(moments, 0);
  CHECK(covariance(0, 0) == 1);
  CHECK(covariance(0, 1) == 2);
  CHECK(covariance(1, 0) == 2);
  CHECK(covariance(1, 1) == 4);
  const Matrix<double> second = second_moment_of(moments, 0);
  CHECK(second(0, 0) == 5);
  CHECK(second(0, 1) == 10);
  CHECK(second(1, 0) == 10);
  CHECK(second(1, 1) == 20);
  CHECK(moments.weight(1) == 1);
  CHECK(covariance_of(moments, 1)(0, 1) == 0);
  CHECK(second_moment_of(moments, 1)(0, 1) == 25);
  CHECK(moments.weight(2) == 0);
}

TEST_CASE_TEMPLATE("a weight is a number of equal rows", T, float, double) {
  // 0 three times and 4 once: mean 1, variance (3 * 1 + 9) / 4 = 3.
  const Matrix<T> rows(2, 1, {0, 4});
  const ClassMoments moments = moments_of(rows, {0, 0}, {3, 1}, 1);
  CHECK(moments.weight(0) == 4);
  CHECK(mean_of(moments, 0, 0) == 1);
  CHECK(covariance_of(moments, 0)(0, 0) == doctest::Approx(3));
  CHECK(second_moment_of(moments, 0)(0, 0) == doctest::Approx(4));
}

TEST_CASE_TEMPLATE("rows of weight zero do not count", T, float, double) {
  const Matrix<T> rows(4, 2, {1, 2, 90, 90, 3, 6, 7, 7});
  const ClassMoments moments = moments_of(rows, {0, 0, 0, 1}, {1, 0, 1, 0}, 2);
  CHECK(moments.weight(0) == 2);
  CHECK(mean_of(moments, 0, 0) == doctest::Approx(2));
  CHECK(covariance_of(moments, 0)(1, 1) == doctest::Approx(4));
  CHECK(moments.weight(1) == 0);
  Matrix<double> out(2, 2);
  CHECK_THROWS_AS(moments.covariance(1, out.view()), std::invalid_argument);
}

TEST_CASE_TEMPLATE("random rows agree with the reference", T, float, double) {
  Random random(11);
  for (const index_t d : {index_t{1}, index_t{5}, index_t{33}}) {
    for (const index_t n : {index_t{1}, index_t{7}, index_t{300}}) {
      const Matrix<T> rows = random.normal_matrix<T>(n, d, Order::rows, 2);
      const Labels labels = random.labels(n, 4);
      Weights weights(n);
      for (double& weight : weights) weight = random.uniform() < 0.2 ? 0.0 : 3 * random.uniform();
      check_against_reference(moments_of(rows, labels, {}, 4), rows, labels, {});
      check_against_reference(moments_of(rows, labels, weights, 4), rows, labels, weights);
    }
  }
}

TEST_CASE_TEMPLATE("many features and many rows agree with the reference", T, float, double) {
  Random random(12);
  const Matrix<T> rows = random.normal_matrix<T>(150, 130);
  const Labels labels = random.labels(150, 2);
  check_against_reference(moments_of(rows, labels, {}, 2), rows, labels, {});
  const Matrix<T> tall = random.normal_matrix<T>(20000, 3);
  const Labels tall_labels = random.labels(20000, 2);
  check_against_reference(moments_of(tall, tall_labels, {}, 2), tall, tall_labels, {});
}

TEST_CASE_TEMPLATE("more columns than a tile holds agree with the reference", T, float, double) {
  Random random(10);
  const index_t n = 6, d = 1003;
  Matrix<T> rows = random.normal_matrix<T>(n, d);
  for (index_t i = 0; i < n; ++i) {
    for (index_t j = 100; j < 150; ++j) rows(i, j) = T(0);
  }
  const Labels labels(n, 0);
  check_against_reference(moments_of(rows, labels, {}, 1), rows, labels, {});
}

TEST_CASE_TEMPLATE("a huge mean costs the covariance no digits", T, float, double) {
  Random random(13);
  // Deviations of 1 from 1e6 (float) and 1e14 (double), on the grid of numbers of the type.
  const double mean = sizeof(T) == 4 ? 1e6 : 1e14;
  Matrix<T> rows(500, 4);
  for (index_t i = 0; i < 500; ++i) {
    for (index_t j = 0; j < 4; ++j)
      rows(i, j) = static_cast<T>(mean * (j == 3 ? -1 : 1) + 2 * random.normal());
  }
  const Labels labels = random.labels(500, 2);
  check_against_reference(moments_of(rows, labels, {}, 2), rows, labels, {});

  ClassMoments streamed(2, 4);
  for (index_t begin = 0; begin < 500; begin += 50) {
    streamed.update<T>(rows.read().block(begin, 0, 50, 4), {labels.data() + begin, 50}, {}, 2);
  }
  check_against_reference(streamed, rows, labels, {});
}

TEST_CASE_TEMPLATE("columns of any scale keep their own accuracy", T, float, double) {
  Random random(14);
  const double scales[] = {1e-8, 1e-3, 1, 1e4, 1e8};
  Matrix<T> rows(400, 5);
  for (index_t i = 0; i < 400; ++i) {
    for (index_t j = 0; j < 5; ++j) rows(i, j) = static_cast<T>(scales[j] * (random.normal() + 3));
  }
  const Labels labels = random.labels(400, 3);
  check_against_reference(moments_of(rows, labels, {}, 3), rows, labels, {});
}

TEST_CASE_TEMPLATE("columns near the ends of float's range neither overflow nor vanish", T, float,
                   double) {
  Random random(18);
  const double scales[] = {1e-30, 1e-15, 1, 1e15, 1e30};
  Matrix<T> rows(200, 5);
  for (index_t i = 0; i < 200; ++i) {
    for (index_t j = 0; j < 5; ++j) rows(i, j) = static_cast<T>(scales[j] * (random.normal() + 1));
  }
  const Labels labels = random.labels(200, 2);
  ClassMoments streamed(2, 5);
  for (index_t begin = 0; begin < 200; begin += 100) {
    streamed.update<T>(rows.read().block(begin, 0, 100, 5), {labels.data() + begin, 100}, {}, 2);
  }
  check_against_reference(moments_of(rows, labels, {}, 2), rows, labels, {});
  check_against_reference(streamed, rows, labels, {});
}

TEST_CASE_TEMPLATE("the variance of a constant column is zero", T, float, double) {
  Random random(15);
  Matrix<T> rows = random.normal_matrix<T>(1000, 3);
  for (index_t i = 0; i < 1000; ++i) rows(i, 1) = static_cast<T>(0.1);
  const Labels labels(1000, 0);
  const Matrix<double> covariance = covariance_of(moments_of(rows, labels, {}, 1), 0);
  CHECK(covariance(1, 1) >= 0);
  CHECK(covariance(1, 1) <= 1e-30);
  CHECK(std::fabs(covariance(0, 1)) <= 1e-15);
}

TEST_CASE_TEMPLATE("columns that are zero in a class, in a batch or in all rows", T, float,
                   double) {
  // Class 0 has zeros in columns 0-2, class 1 in columns 4-6 of the first batch only, all in
  // columns 8-9.
  Random random(19);
  const index_t n = 240, d = 11;
  Matrix<T> rows = random.normal_matrix<T>(n, d);
  const Labels labels = random.labels(n, 2);
  for (index_t i = 0; i < n; ++i) {
    for (index_t j = 0; j < d; ++j) {
      const bool zero = labels[i] == 0 ? j < 3 : i < 120 && 4 <= j && j < 7;
      rows(i, j) = zero || j == 8 || j == 9 ? T(0) : static_cast<T>(rows(i, j) + T(3));
    }
  }
  for (const index_t first :
       {index_t{0}, index_t{120}}) {  // nonzero columns in the second batch, then in the first
    ClassMoments streamed(2, d);
    for (const index_t begin : {first, 120 - first}) {
      streamed.update<T>(rows.read().block(begin, 0, 120, d), {labels.data() + begin, 120}, {}, 2);
    }
    check_against_reference(streamed, rows, labels, {});
    CHECK(covariance_of(streamed, 0)(1, 5) == 0);
    CHECK(covariance_of(streamed, 1)(8, 8) == 0);
    CHECK(covariance_of(streamed, 1)(5, 5) > 1);
  }
  const Matrix<T> nothing(30, 4);
  const ClassMoments zero = moments_of(nothing, Labels(30, 0), {}, 1);
  CHECK(zero.weight(0) == 30);
  CHECK(second_moment_of(zero, 0)(3, 2) == 0);
}

TEST_CASE_TEMPLATE("moments of batches agree with those of all rows", T, float, double) {
  Random random(16);
  const index_t n = 700, d = 6;
  const Matrix<T> rows = random.normal_matrix<T>(n, d);
  const Labels labels = random.labels(n, 3);
  Weights weights(n);
  for (double& weight : weights) weight = random.uniform();
  ClassMoments streamed(3, d);
  index_t begin = 0;
  for (const index_t size : {index_t{1}, index_t{0}, index_t{13}, index_t{256}, index_t{430}}) {
    streamed.update<T>(rows.read().block(begin, 0, size, d), {labels.data() + begin, size},
                       {weights.data() + begin, size}, 2);
    begin += size;
  }
  REQUIRE(begin == n);
  check_against_reference(streamed, rows, labels, weights);
}

TEST_CASE_TEMPLATE("a batch without rows changes nothing", T, float, double) {
  const Matrix<T> rows(2, 2, {1, 2, 3, 4});
  ClassMoments moments = moments_of(rows, {0, 1}, {}, 2);
  const ClassMoments before = moments;
  moments.update<T>(rows.read().block(0, 0, 0, 2), {}, {}, 3);
  CHECK(moments == before);
}

TEST_CASE_TEMPLATE("1, 2 and 7 threads give the same bits", T, float, double) {
  Random random(17);
  for (const index_t d : {index_t{3}, index_t{150}, index_t{400}}) {
    const index_t n = d == 3 ? 9000 : 1200;
    const Matrix<T> rows = random.normal_matrix<T>(n, d);
    const Labels labels = random.labels(n, 5);
    Weights weights(n);
    for (double& weight : weights) weight = random.uniform();
    const ClassMoments one = moments_of(rows, labels, weights, 5, 1);
    CHECK(moments_of(rows, labels, weights, 5, 2) == one);
    CHECK(moments_of(rows, labels, weights, 5, 7) == one);
    const ClassMoments plain = moments_of(rows, labels, {}, 5, 1);
    CHECK(moments_of(rows, labels, {}, 5, 7) == plain);
  }
}

TEST_CASE_TEMPLATE("wide rows with many zero columns: 1, 2 and 7 threads give the same bits", T,
                   float, double) {
  Random random(20);
  const index_t n = 500, d = 900;  // more than one tile before zero columns are left out
  Matrix<T> rows = random.normal_matrix<T>(n, d);
  const Labels labels = random.labels(n, 3);
  for (index_t i = 0; i < n; ++i) {
    for (index_t j = 0; j < d; ++j) {
      if (j % 3 == labels[i] || (j > 300 && j < 500)) rows(i, j) = T(0);
    }
  }
  const ClassMoments one = moments_of(rows, labels, {}, 3, 1);
  CHECK(moments_of(rows, labels, {}, 3, 2) == one);
  CHECK(moments_of(rows, labels, {}, 3, 7) == one);
}

TEST_CASE("the outputs may have a leading dimension") {
  const Matrix<double> rows(2, 2, {1, 2, 3, 6});
  const ClassMoments moments = moments_of(rows, {0, 0}, {}, 1);
  Matrix<double> out(2, 2, Order::rows, 3);
  moments.covariance(0, out.view());
  CHECK(out(1, 0) == 2);
  CHECK(out(1, 1) == 4);
  CHECK(out.padding_untouched());
  moments.second_moment(0, out.view());
  CHECK(out(0, 1) == 10);
  CHECK(out.padding_untouched());
}
