// Local scatters against their definition: both algorithms, remainders of tiles, and hard rows.
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "eigenfeat/local_affinity.hpp"
#include "eigenfeat/vector.hpp"
#include "reference/local_affinity_reference.hpp"
#include "unit/support.hpp"

using namespace eigenfeat;
using namespace eigenfeat::support;

namespace {

struct Problem {
  Matrix<double> x;
  Vector<index_t> counts;
  index_t k = 7;
  Matrix<double> laplacian, plain;
};

Matrix<double> weights(Random& random, index_t n_classes) {
  return random.normal_matrix<double>(2, n_classes);
}

Problem make(const Vector<index_t>& counts, index_t d, index_t k, std::uint64_t seed,
             index_t padding = 0) {
  Random random(seed);
  const index_t n = std::accumulate(counts.begin(), counts.end(), index_t{0});
  const index_t classes = counts.size();
  Matrix<double> x = random.normal_matrix<double>(n, d, Order::rows, padding);
  return {std::move(x), counts, k, weights(random, classes), weights(random, classes)};
}

Vector<double> sums_of(const Problem& p, int n_threads = 1) {
  Vector<double> out(2 * p.x.cols() * p.x.cols(), std::numeric_limits<double>::quiet_NaN());
  affinity_sums({p.x.read(), read(p.counts), p.k}, p.laplacian.read(), p.plain.read(), write(out),
                n_threads);
  return out;
}

// The number of entries whose error exceeds the bound of rounding.
index_t count_off(const Problem& p) {
  const auto got = sums_of(p);
  const auto right = reference::affinity::sums(p.x.read(), p.counts, p.k, p.laplacian.read(),
                                               p.plain.read(), epsilon<double>());
  index_t off = 0;
  for (index_t i = 0; i < got.size(); ++i) {
    const long double gap = std::fabs(static_cast<long double>(got[i]) - right.values[i]);
    if (!(gap <= right.errors[i])) ++off;
  }
  return off;
}

}  // namespace

TEST_CASE("affinity sums agree with their definition") {
  // Up to 64 columns no affinities are stored. Tiles have 32 columns, blocks 128 rows.
  for (const index_t d : {1, 3, 8, 31, 32, 33, 64, 65, 70}) {
    // The largest sizes only with every second width, as the reference takes n^2 d^2 steps.
    Vector<Vector<index_t>> sizes{{5, 1, 40}, {33, 0, 2}};
    sizes.push_back(d % 2 == 0 ? Vector<index_t>{128} : Vector<index_t>{129, 64, 17});
    for (const Vector<index_t>& counts : sizes) {
      CAPTURE(d);
      CAPTURE(counts[0]);
      CHECK(count_off(make(counts, d, 7, 1)) == 0);
    }
  }
}

TEST_CASE("affinity sums of many blocks and of strided rows") {
  CHECK(count_off(make({600, 300}, 3, 5, 2)) == 0);
  CHECK(count_off(make({260, 150}, 66, 5, 3)) == 0);
  const Problem p = make({40, 50}, 9, 4, 4, 5);
  CHECK(count_off(p) == 0);
  CHECK(p.x.padding_untouched());
}

TEST_CASE("any number of neighbours") {
  for (const index_t k : {1, 2, 31, 59, 60, 1000}) {
    CAPTURE(k);
    CHECK(count_off(make({60, 20}, 4, k, 5)) == 0);
    CHECK(count_off(make({60, 20}, 68, k, 6)) == 0);
  }
}

TEST_CASE("rows with as many equals as neighbours have no affinity") {
  for (const index_t d : {4, 70}) {
    Problem p = make({40, 12}, d, 3, 7);
    for (index_t i = 20; i < 24; ++i) {  // four equal rows: each has three equals
      for (index_t j = 0; j < d; ++j) p.x(i, j) = p.x(20, j);
    }
    for (index_t i = 30; i < 33; ++i) {  // three: their third neighbour is another row
      for (index_t j = 0; j < d; ++j) p.x(i, j) = p.x(30, j);
    }
    CHECK(count_off(p) == 0);
    for (index_t i = 0; i < 52; ++i) {
      for (index_t j = 0; j < d; ++j) p.x(i, j) = p.x(0, j);
    }
    CHECK(count_off(p) == 0);
  }
}

TEST_CASE("rows of tiny, huge and zero entries") {
  for (const index_t d : {5, 70}) {
    const Problem p = make({50, 30}, d, 7, 8);
    const auto right = sums_of(p);
    for (const int exponent : {-480, 480}) {
      Problem scaled = p;
      for (index_t i = 0; i < 80; ++i) {
        for (index_t j = 0; j < d; ++j) scaled.x(i, j) = std::ldexp(p.x(i, j), exponent);
      }
      auto got = sums_of(scaled);
      for (double& entry : got) entry = std::ldexp(entry, -2 * exponent);
      CHECK(same_bits(got, right));
    }
    Problem zero = p;
    for (index_t i = 0; i < 80; ++i) {
      for (index_t j = 0; j < d; ++j) zero.x(i, j) = 0.0;
    }
    for (const double entry : sums_of(zero)) CHECK(entry == 0.0);
  }
}

TEST_CASE("affinities of distant rows vanish and do not overflow") {
  Problem p = make({40}, 3, 2, 9);
  for (index_t i = 0; i < 3; ++i) p.x(i, 0) += 1e9;  // sigma is small beside the distance to others
  CHECK(count_off(p) == 0);
}

TEST_CASE("matrices are symmetric, and that of the Laplacian is positive semidefinite") {
  Problem p = make({150, 90}, 40, 7, 10);
  for (index_t c = 0; c < 2; ++c) {
    p.laplacian(0, c) = 1.0;
    p.plain(0, c) = 0.0;
  }
  const auto got = sums_of(p);
  for (index_t a = 0; a < 40; ++a) {
    CHECK(got[a * 41] > 0.0);
    for (index_t b = 0; b < a; ++b) CHECK(got[a * 40 + b] == got[b * 40 + a]);
  }
}

TEST_CASE("classes whose affinities do not fit into memory together") {
  const Problem all = make({1500, 1600, 1400}, 65, 7, 15);
  const auto got = sums_of(all);
  Vector<double> added(got.size(), 0.0);
  double largest = 0.0;
  for (index_t c = 0, begin = 0; c < 3; begin += all.counts[c], ++c) {
    Problem one = make({all.counts[c]}, 65, 7, 16);
    for (index_t i = 0; i < one.x.rows(); ++i) {
      for (index_t j = 0; j < 65; ++j) one.x(i, j) = all.x(begin + i, j);
    }
    for (index_t s = 0; s < 2; ++s) {
      one.laplacian(s, 0) = all.laplacian(s, c);
      one.plain(s, 0) = all.plain(s, c);
    }
    const auto part = sums_of(one);
    for (index_t i = 0; i < part.size(); ++i) {
      added[i] += part[i];
      largest = std::max(largest, std::fabs(part[i]));
    }
  }
  for (index_t i = 0; i < got.size(); ++i) CHECK(std::fabs(got[i] - added[i]) <= 1e-13 * largest);
}

TEST_CASE("the same bits for every number of threads") {
  for (const Problem& p : {make({700, 500, 3000}, 12, 7, 11), make({300, 400, 2100, 90}, 70, 7, 12),
                           make({1500, 1600, 1400}, 72, 7, 13)}) {
    const auto one = sums_of(p, 1);
    for (const int threads : {2, 7}) CHECK(same_bits(sums_of(p, threads), one));
  }
}

TEST_CASE("errors of affinity sums name the argument") {
  const auto message = [](const Problem& p) {
    return message_of<std::invalid_argument>([&] { sums_of(p); });
  };
  Problem p = make({4, 5}, 3, 0, 14);
  CHECK(message(p) == "n_neighbors: expected at least 1, got 0");
  p.k = 2;
  p.counts = {4, 4};
  CHECK(message(p) == "counts: expected numbers that sum to the samples of X, 9, got 8");
  p.counts = {10, -1};
  CHECK(message(p) == "counts: expected numbers >= 0 that sum to the samples of X, 9, got 10");
  p.counts = {9};
  CHECK(message(p) == "laplacian: expected 1 columns, one per class, got 2");
  p.counts = {4, 5};
  p.plain = Matrix<double>(1, 2);
  CHECK(message(p) == "plain: expected the shape of laplacian, (2, 2), got (1, 2)");
  p.plain = Matrix<double>(2, 2);
  for (const double bad :
       {std::numeric_limits<double>::quiet_NaN(), std::numeric_limits<double>::infinity(), 1e200}) {
    p.x(7, 1) = bad;
    CHECK(message(p) ==
          "X: expected samples whose squares do not overflow, got an overflow in row 7");
  }
}
