// Moments as a value: merging, appending classes, packing, restoring and comparing.
#include "eigenfeat/vector.hpp"
#include "unit/moments_support.hpp"

using namespace eigenfeat;
using namespace eigenfeat::support;

namespace {

using Map = Vector<std::int32_t>;

ClassMoments sample(std::uint64_t seed, index_t n, index_t d, index_t n_classes) {
  Random random(seed);
  const Matrix<double> rows = random.normal_matrix<double>(n, d);
  return moments_of(rows, random.labels(n, n_classes), {}, n_classes);
}

ClassMoments restored(const ClassMoments& moments) {
  const index_t d = moments.n_features();
  ClassMoments copy(moments.n_classes(), d);
  Vector<double> packed(d * (d + 1) / 2);
  for (index_t c = 0; c < moments.n_classes(); ++c) {
    if (!(moments.weight(c) > 0)) continue;
    moments.packed_scatter(c, write(packed));
    copy.restore(c, moments.weight(c), read(moments.mean_high(c)), read(moments.mean_low(c)),
                 read(packed));
  }
  return copy;
}

// The largest difference of two covariances, relative to the standard deviations.
double difference(const ClassMoments& a, const ClassMoments& b) {
  double worst = 0;
  for (index_t c = 0; c < a.n_classes(); ++c) {
    worst = std::max(worst, std::fabs(a.weight(c) - b.weight(c)) / a.weight(c));
    const Matrix<double> left = covariance_of(a, c), right = covariance_of(b, c);
    for (index_t i = 0; i < a.n_features(); ++i) {
      worst = std::max(worst, static_cast<double>(std::fabs(mean_of(a, c, i) - mean_of(b, c, i))));
      for (index_t j = 0; j < a.n_features(); ++j) {
        worst = std::max(worst,
                         std::fabs(left(i, j) - right(i, j)) / std::sqrt(left(i, i) * left(j, j)));
      }
    }
  }
  return worst;
}

}  // namespace

TEST_CASE("merging {0} and {2, 4} gives mean 2 and variance 8 / 3") {
  const Matrix<double> left(1, 1, {0}), right(2, 1, {2, 4});
  ClassMoments moments = moments_of(left, {0}, {}, 1);
  moments.merge(moments_of(right, {0, 0}, {}, 1), read(Map{0}), 1);
  CHECK(moments.weight(0) == 3);
  CHECK(mean_of(moments, 0, 0) == 2);
  CHECK(covariance_of(moments, 0)(0, 0) == doctest::Approx(8.0 / 3));
}

TEST_CASE("parts merged in any order agree with all rows") {
  Random random(21);
  const index_t n = 300, d = 7;
  Matrix<double> rows = random.normal_matrix<double>(n, d);
  for (index_t i = 0; i < n; ++i) rows(i, 2) += 1e10;
  const Labels labels = random.labels(n, 3);
  const auto part = [&](index_t begin, index_t size) {
    ClassMoments moments(3, d);
    moments.update<double>(rows.read().block(begin, 0, size, d), {labels.data() + begin, size}, {},
                           2);
    return moments;
  };
  const Map same{0, 1, 2};
  ClassMoments left = part(0, 50);  // (a + b) + c
  left.merge(part(50, 100), read(same), 2);
  left.merge(part(150, 150), read(same), 2);
  ClassMoments tail = part(150, 150);  // (c + b) + a
  tail.merge(part(50, 100), read(same), 2);
  tail.merge(part(0, 50), read(same), 2);
  check_against_reference(left, rows, labels, {});
  check_against_reference(tail, rows, labels, {});
  CHECK(difference(left, tail) <= 1e-13);
}

TEST_CASE("merging maps classes, several of them to one if asked") {
  const Matrix<double> rows(4, 1, {0, 2, 10, 14});
  const ClassMoments other = moments_of(rows, {0, 0, 1, 1}, {}, 2);
  ClassMoments crossed(3, 1);
  crossed.merge(other, read(Map{2, 0}), 1);
  CHECK(mean_of(crossed, 2, 0) == 1);
  CHECK(mean_of(crossed, 0, 0) == 12);
  CHECK(crossed.weight(1) == 0);
  ClassMoments together(1, 1);
  together.merge(other, read(Map{0, 0}), 2);
  CHECK(together.weight(0) == 4);
  CHECK(mean_of(together, 0, 0) == doctest::Approx(6.5));
  CHECK(covariance_of(together, 0)(0, 0) ==
        doctest::Approx((6.5 * 6.5 + 4.5 * 4.5 + 3.5 * 3.5 + 7.5 * 7.5) / 4));
}

TEST_CASE("merging an empty class changes nothing, and merging into one copies exactly") {
  const ClassMoments full = sample(22, 60, 5, 2);
  ClassMoments merged = full;
  merged.merge(ClassMoments(2, 5), read(Map{0, 1}), 2);
  CHECK(merged == full);
  ClassMoments fresh(2, 5);
  fresh.merge(full, read(Map{0, 1}), 2);
  CHECK(fresh == full);
}

TEST_CASE("1, 2 and 7 threads merge to the same bits") {
  const ClassMoments a = sample(23, 900, 130, 3), b = sample(24, 900, 130, 3);
  const Map map{1, 2, 0};
  ClassMoments one = a;
  one.merge(b, read(map), 1);
  for (const int n_threads : {2, 7}) {
    ClassMoments other = a;
    other.merge(b, read(map), n_threads);
    CHECK(other == one);
  }
}

TEST_CASE("a merge of other shapes throws and changes nothing") {
  ClassMoments moments = sample(25, 40, 3, 2);
  const ClassMoments before = moments;
  const ClassMoments other = sample(26, 40, 3, 2);
  CHECK_THROWS_AS(moments.merge(sample(27, 40, 4, 2), read(Map{0, 1}), 1), std::invalid_argument);
  CHECK_THROWS_AS(moments.merge(other, read(Map{0}), 1), std::invalid_argument);
  CHECK_THROWS_AS(moments.merge(other, read(Map{0, 2}), 1), std::invalid_argument);
  CHECK_THROWS_AS(moments.merge(other, read(Map{-1, 0}), 1), std::invalid_argument);
  CHECK_THROWS_AS(moments.merge(moments, read(Map{0, 1}), 1), std::invalid_argument);
  CHECK(moments == before);
}

TEST_CASE("grow appends empty classes and never removes a class") {
  ClassMoments moments = sample(28, 40, 3, 2);
  const Matrix<double> before = covariance_of(moments, 1);
  moments.grow(4);
  CHECK(moments.n_classes() == 4);
  CHECK(moments.weight(3) == 0);
  CHECK(covariance_of(moments, 1)(2, 1) == before(2, 1));
  CHECK_THROWS_AS(moments.grow(1), std::invalid_argument);
  CHECK(moments.n_classes() == 4);
  const Matrix<double> rows(1, 3, {1, 2, 3});
  moments.update<double>(rows.read(), read(Labels{3}), {}, 1);
  CHECK(moments.weight(3) == 1);
}

TEST_CASE("the scatter is packed by rows of its lower triangle") {
  // Deviations (-1, -2) and (1, 2): S = [2 4; 4 8].
  const Matrix<double> rows(2, 2, {1, 2, 3, 6});
  const ClassMoments moments = moments_of(rows, {0, 0}, {}, 1);
  Vector<double> packed(3);
  moments.packed_scatter(0, write(packed));
  CHECK(packed == Vector<double>{2, 4, 8});
}

TEST_CASE("packed moments are restored bit for bit") {
  const ClassMoments small = sample(29, 30, 4, 2), large = sample(30, 300, 97, 3);
  CHECK(restored(small) == small);
  CHECK(restored(large) == large);
  ClassMoments with_empty = small;
  with_empty.grow(3);
  CHECK(restored(with_empty) == with_empty);

  // Restored moments continue as the original moments do.
  const Matrix<double> rows(2, 4, {1, 2, 3, 4, 5, 6, 7, 9});
  ClassMoments original = small, copy = restored(small);
  original.update<double>(rows.read(), read(Labels{0, 1}), {}, 1);
  copy.update<double>(rows.read(), read(Labels{0, 1}), {}, 1);
  CHECK(original == copy);
}

TEST_CASE("sizes of packed arrays are checked") {
  ClassMoments moments = sample(31, 30, 3, 1);
  const ClassMoments before = moments;
  Vector<double> packed(6), mean(3), wrong(5);
  CHECK_THROWS_AS(moments.packed_scatter(0, write(wrong)), std::invalid_argument);
  CHECK_THROWS_AS(moments.packed_scatter(1, write(packed)), std::invalid_argument);
  CHECK_THROWS_AS(moments.restore(0, 1, read(wrong), read(mean), read(packed)),
                  std::invalid_argument);
  CHECK_THROWS_AS(moments.restore(0, 1, read(mean), read(wrong), read(packed)),
                  std::invalid_argument);
  CHECK_THROWS_AS(moments.restore(0, 1, read(mean), read(mean), read(wrong)),
                  std::invalid_argument);
  CHECK_THROWS_AS(moments.restore(1, 1, read(mean), read(mean), read(packed)),
                  std::invalid_argument);
  CHECK_THROWS_AS(moments.restore(0, -1, read(mean), read(mean), read(packed)),
                  std::invalid_argument);
  CHECK_THROWS_AS(moments.restore(0, std::nan(""), read(mean), read(mean), read(packed)),
                  std::invalid_argument);
  CHECK(moments == before);
}

TEST_CASE("equality compares classes, features, weights, means and scatters") {
  const ClassMoments base = sample(32, 30, 3, 2);
  CHECK(base == sample(32, 30, 3, 2));
  CHECK_FALSE(base == sample(33, 30, 3, 2));
  CHECK_FALSE(ClassMoments(2, 3) == ClassMoments(3, 3));
  CHECK_FALSE(ClassMoments(2, 3) == ClassMoments(2, 4));
  CHECK(ClassMoments(2, 3) == ClassMoments(2, 3));
  CHECK_FALSE(base == ClassMoments(2, 3));
}

TEST_CASE("reading a class that is absent or has no weight throws") {
  const ClassMoments moments(2, 2);
  Matrix<double> out(2, 2), wrong(2, 3);
  CHECK_THROWS_AS(moments.covariance(0, out.view()), std::invalid_argument);
  CHECK_THROWS_AS(moments.second_moment(0, out.view()), std::invalid_argument);
  CHECK_THROWS_AS(moments.covariance(2, out.view()), std::invalid_argument);
  CHECK_THROWS_AS(moments.weight(-1), std::invalid_argument);
  CHECK_THROWS_AS(sample(34, 30, 2, 1).covariance(0, wrong.view()), std::invalid_argument);
  CHECK_THROWS_AS(sample(34, 30, 2, 1).second_moment(0, wrong.view()), std::invalid_argument);
}
