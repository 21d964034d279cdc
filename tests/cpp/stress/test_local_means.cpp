// Local means with 1, 2 and 7 threads: no data race, the same neighbours and the same bits.
#include <doctest/doctest.h>

#include "eigenfeat/local_means.hpp"
#include "eigenfeat/vector.hpp"
#include "unit/support.hpp"

using namespace eigenfeat;
using namespace eigenfeat::support;

// Enough rows and columns for the search that shares products between tiles; half of the rows are
// duplicates, so that some lists of candidates overflow.
TEST_CASE("local means are the same for every number of threads") {
  Random random(11);
  const index_t n = 1300, d = 64, k = 5, n_classes = 3;
  Matrix<float> rows = random.normal_matrix<float>(n, d);
  for (index_t i = n / 2; i < n; ++i) {
    for (index_t j = 0; j < d; ++j) rows(i, j) = rows(i % 4, j);
  }
  const auto codes = random.labels(n, n_classes);
  const Vector<double> priors{0.2, 0.3, 0.5};
  const Vector<index_t> counts{1, 5};
  Vector<index_t> first_lists;
  Vector<double> first_sums, first_scores;
  for (const int n_threads : {1, 2, 7}) {
    Vector<index_t> lists(n * n_classes * k);
    find_local_neighbours<float>({rows.read(), read(codes), n_classes, rows.read(), true, {}}, k,
                                 write(lists), n_threads);
    const LocalPairs<float> pairs{rows.read(), rows.read(), read(codes), read(lists), n_classes, k};
    Vector<double> sums, scores(2 * n * n_classes);
    for (const ScatterMethod method : {ScatterMethod::rows, ScatterMethod::graph}) {
      Vector<double> within(d * d), weighted(d * d);
      local_scatters<float>(pairs, read(priors), method, row_major(within.data(), d, d),
                            row_major(weighted.data(), d, d), n_threads);
      sums.insert(sums.end(), within.begin(), within.end());
      sums.insert(sums.end(), weighted.begin(), weighted.end());
    }
    local_discriminants<float>(pairs, read(counts), 1e-4, write(scores), n_threads);
    if (n_threads == 1) {
      first_lists = lists;
      first_sums = sums;
      first_scores = scores;
    }
    CHECK(lists == first_lists);
    CHECK(same_bits(sums, first_sums));
    CHECK(same_bits(scores, first_scores));
  }
}
