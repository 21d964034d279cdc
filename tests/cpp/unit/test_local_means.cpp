// Local neighbours, LDG's scatters and local QDA's discriminants against plain loops.
#include <doctest/doctest.h>

#include <cmath>
#include <stdexcept>

#include "eigenfeat/local_means.hpp"
#include "eigenfeat/vector.hpp"
#include "reference/local_means_reference.hpp"
#include "unit/support.hpp"

using namespace eigenfeat;
using namespace eigenfeat::support;

namespace {

template <class T>
struct Data {
  Matrix<T> rows;
  Vector<std::int32_t> codes;
  index_t n_classes;
  Vector<std::int32_t> groups;

  LocalRows<T> local() const {
    return {rows.read(), read(codes), n_classes, rows.read(), true, read(groups)};
  }
};

// Rows around a mean for each class, with padding between rows.
template <class T>
Data<T> classes(Random& random, index_t n, index_t d, index_t n_classes, double offset = 0.0) {
  Data<T> data{Matrix<T>(n, d, Order::rows, 3), random.labels(n, n_classes), n_classes, {}};
  const auto means = random.normal_matrix<double>(n_classes, d);
  for (index_t i = 0; i < n; ++i) {
    for (index_t j = 0; j < d; ++j) {
      data.rows(i, j) = static_cast<T>(offset + 2.0 * means(data.codes[i], j) + random.normal());
    }
  }
  return data;
}

template <class T>
Vector<index_t> search(const LocalRows<T>& rows, index_t k, int n_threads = 2) {
  Vector<index_t> found(rows.queries.rows * rows.n_classes * k, 77);
  find_local_neighbours<T>(rows, k, write(found), n_threads);
  return found;
}

template <class T>
Vector<index_t> expected_neighbours(const LocalRows<T>& rows, index_t k) {
  Vector<index_t> all;
  for (index_t i = 0; i < rows.queries.rows; ++i) {
    for (std::int32_t c = 0; c < rows.n_classes; ++c) {
      const auto found =
          reference::nearest(rows.queries, i, rows.references, rows.codes, c, k, [&](index_t j) {
            return rows.same &&
                   (i == j || (!rows.groups.empty() && rows.groups[i] == rows.groups[j]));
          });
      all.insert(all.end(), found.begin(), found.end());
    }
  }
  return all;
}

struct Scatters {
  Matrix<double> within, weighted;
};

template <class T>
LocalPairs<T> pairs_of(const Data<T>& data, const Vector<index_t>& lists, index_t k) {
  return {data.rows.read(), data.rows.read(), read(data.codes), read(lists), data.n_classes, k};
}

template <class T>
Scatters scatters(const LocalPairs<T>& pairs, const Vector<double>& priors, ScatterMethod method,
                  int n_threads = 2) {
  const index_t d = pairs.references.cols;
  Scatters out{Matrix<double>(d, d), Matrix<double>(d, d)};
  local_scatters<T>(pairs, read(priors), method, out.within.view(), out.weighted.view(), n_threads);
  return out;
}

template <class T>
index_t count_off(const Matrix<double>& got, const Vector<long double>& right, long double bound) {
  index_t off = 0;
  for (index_t a = 0; a < got.rows(); ++a) {
    for (index_t b = 0; b < got.cols(); ++b) {
      const long double gap = static_cast<long double>(got(a, b)) - right[a * got.cols() + b];
      if (!(std::fabs(gap) <= bound)) ++off;
    }
  }
  return off;
}

template <class T>
void check_scatters(const LocalPairs<T>& pairs, const Vector<index_t>& lists,
                    const Vector<double>& priors) {
  const index_t m = pairs.queries.rows, k = pairs.n_neighbors, d = pairs.references.cols;
  const auto right_v = reference::scatter(
      pairs.queries, pairs.references, lists, pairs.n_classes, k,
      [&](index_t i, index_t c) { return pairs.query_codes[i] == c ? 1.0 : 0.0; });
  const auto right_a = reference::scatter(pairs.queries, pairs.references, lists, pairs.n_classes,
                                          k, [&](index_t, index_t c) { return priors[c]; });
  long double largest = 0;
  for (index_t i = 0; i < m; ++i) {
    for (index_t j = 0; j < d; ++j)
      largest = std::max(largest, std::fabs(static_cast<long double>(pairs.queries(i, j))));
  }
  // m products of numbers below 2 largest, which are means of k differences.
  const long double bound = 16 * epsilon<T>() * static_cast<long double>(m + k) * largest * largest;
  for (const ScatterMethod method :
       {ScatterMethod::rows, ScatterMethod::graph, ScatterMethod::automatic}) {
    const Scatters got = scatters(pairs, priors, method);
    CHECK(count_off<T>(got.within, right_v, bound) == 0);
    CHECK(count_off<T>(got.weighted, right_a, bound) == 0);
  }
}

}  // namespace

TEST_CASE_TEMPLATE("neighbours agree with plain sorting", T, float, double) {
  Random random(1);
  for (const index_t n : {1, 40, 333, 700}) {
    auto data = classes<T>(random, n, 5, 4);
    CHECK(search(data.local(), 7) == expected_neighbours(data.local(), 7));
    data.groups = random.labels(n, 3);
    CHECK(search(data.local(), 7) == expected_neighbours(data.local(), 7));
  }
}

TEST_CASE_TEMPLATE("queries other than the rows, and classes without rows", T, float, double) {
  Random random(2);
  const auto data = classes<T>(random, 150, 30, 3), queries = classes<T>(random, 61, 30, 3);
  LocalRows<T> rows = data.local();
  rows.n_classes = 5;
  rows.queries = queries.rows.read();
  rows.same = false;
  CHECK(search(rows, 60) == expected_neighbours(rows, 60));
}

TEST_CASE_TEMPLATE("ties go to the lower row number, for every number of threads", T, float,
                   double) {
  Random random(3);
  Data<T> data = classes<T>(random, 600, 2, 3);
  for (index_t i = 0; i < 600; ++i) {
    for (index_t j = 0; j < 2; ++j) data.rows(i, j) = static_cast<T>(random.below(4));
  }
  const auto right = expected_neighbours(data.local(), 30);
  for (const int n_threads : {1, 2, 7}) CHECK(search(data.local(), 30, n_threads) == right);
}

TEST_CASE_TEMPLATE("offsets and outliers do not change the order of neighbours", T, float, double) {
  Random random(4);
  auto data = classes<T>(random, 200, 6, 2, sizeof(T) == 4 ? 1e4 : 1e10);
  CHECK(search(data.local(), 9) == expected_neighbours(data.local(), 9));
  data = classes<T>(random, 200, 6, 2);
  for (index_t j = 0; j < 6; ++j) data.rows(17, j) = T(1e8);
  CHECK(search(data.local(), 9) == expected_neighbours(data.local(), 9));
}

TEST_CASE_TEMPLATE("both forms of the scatters agree with plain loops", T, float, double) {
  Random random(5);
  for (const index_t d : {1, 6, 200}) {
    const auto data = classes<T>(random, 90, d, 4);
    const auto lists = search(data.local(), 3);
    check_scatters(pairs_of(data, lists, 3), lists, {0.4, 0.1, 0.5, 0.0});
  }
}

TEST_CASE_TEMPLATE("scatters of queries other than the rows", T, float, double) {
  Random random(6);
  const auto data = classes<T>(random, 80, 7, 3), queries = classes<T>(random, 55, 7, 3);
  LocalRows<T> rows = data.local();
  rows.queries = queries.rows.read();
  rows.same = false;
  const auto lists = search(rows, 4);
  const LocalPairs<T> pairs{
      data.rows.read(), queries.rows.read(), read(queries.codes), read(lists), 3, 4};
  check_scatters(pairs, lists, {0.2, 0.3, 0.5});
}

TEST_CASE_TEMPLATE("scatters keep their bits for every number of threads", T, float, double) {
  Random random(7);
  const auto data = classes<T>(random, 500, 210, 3);
  const auto lists = search(data.local(), 5);
  for (const ScatterMethod method : {ScatterMethod::rows, ScatterMethod::graph}) {
    const Scatters one = scatters(pairs_of(data, lists, 5), {0.3, 0.3, 0.4}, method, 1);
    for (const int n_threads : {2, 7}) {
      const Scatters more = scatters(pairs_of(data, lists, 5), {0.3, 0.3, 0.4}, method, n_threads);
      for (index_t i = 0; i < 210; ++i) {
        for (index_t j = 0; j < 210; ++j) {
          REQUIRE(more.within(i, j) == one.within(i, j));
          REQUIRE(more.weighted(i, j) == one.weighted(i, j));
        }
      }
    }
  }
}

TEST_CASE_TEMPLATE("discriminants are log densities of Gaussians of the nearest rows", T, float,
                   double) {
  Random random(8);
  for (const index_t d : {1, 17, 100}) {
    const auto data = classes<T>(random, 60, d, 3);
    const index_t k = 30;
    const auto lists = search(data.local(), k);
    const Vector<index_t> counts{1, 2, 5, 30};
    Vector<double> scores(counts.size() * 60 * 3);
    local_discriminants<T>(pairs_of(data, lists, k), read(counts), 1e-2, write(scores), 2);
    for (index_t at = 0; at < scores.size(); ++at) {
      const index_t pair = static_cast<index_t>(at) % 180, count = counts[at / 180];
      const auto local = reference::local_difference(data.rows.read(), pair / 3, data.rows.read(),
                                                     lists.data() + pair * k, std::min(count, k));
      const long double right = reference::log_density(local, static_cast<long double>(T(1e-2)));
      // Rounding of variances, about 10 eps, relative to the ridge.
      const long double slack =
          200 * epsilon<T>() * (std::fabs(right) + static_cast<long double>(d)) * 100;
      CHECK(std::fabs(static_cast<long double>(scores[at]) - right) <= slack);
    }
  }
}

TEST_CASE("errors name the argument") {
  Random random(9);
  auto data = classes<double>(random, 10, 2, 2);
  data.codes[3] = 2;
  CHECK(starts_with(message_of<std::invalid_argument>([&] { search(data.local(), 1); }),
                    "codes: expected class indices in [0, 2), got 2 in row 3"));
  data.codes[3] = 0;
  data.rows(4, 1) = std::nan("");
  CHECK(starts_with(message_of<std::invalid_argument>([&] { search(data.local(), 1); }),
                    "X: expected finite numbers, got NaN in row 4, column 1"));
  data.rows(4, 1) = 0.0;
  Vector<index_t> lists(20, 10);
  CHECK(starts_with(message_of<std::invalid_argument>([&] {
                      scatters(pairs_of(data, lists, 1), {0.5, 0.5}, ScatterMethod::rows);
                    }),
                    "neighbours: expected numbers of samples or -1, got 10"));
}
