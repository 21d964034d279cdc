// Pencils: 1, 2 and 7 threads give the same bits, with more items than threads and with fewer.
#include "eigenfeat/vector.hpp"
#include "unit/pencil_support.hpp"

using namespace eigenfeat;
using namespace eigenfeat::support;

namespace {

template <class T>
void check_thread_counts(const Pencils<T>& pencils, Solver solver, index_t n_vectors,
                         std::initializer_list<int> counts = {2, 7}) {
  const Solved<T> one = solve(pencils, with(solver, n_vectors, 1));
  for (const int n_threads : counts)
    CHECK(solve(pencils, with(solver, n_vectors, n_threads)).same_as(one));
}

Vector<double> decaying(index_t d) {
  Vector<double> values(d);
  for (index_t k = 0; k < d; ++k) values[k] = 9 * std::pow(0.88, static_cast<double>(k));
  return values;
}

}  // namespace

TEST_CASE_TEMPLATE("more items than threads, small matrices", T, float, double) {
  Random random(101);
  const index_t d = 24;
  Pencils<T> pencils;
  for (int c = 0; c < 5; ++c) {
    pencils.a.push_back(random.positive_definite<T>(d, 0.1));
    pencils.b.push_back(random.positive_definite<T>(d, 0.5));
  }
  for (index_t i = 0; i < 5; ++i) {
    for (index_t j = 0; j < 5; ++j) pencils.items.emplace_back(j, (i + 2) % 5);
  }
  for (const Solver solver : kSolvers) check_thread_counts(pencils, solver, 6);
}

TEST_CASE_TEMPLATE("fewer items than threads, matrices large enough to be tiled", T, float,
                   double) {
  Random random(102);
  Pencils<T> pencils = known_pencil<T>(random, decaying(520));
  for (const Solver solver : {Solver::subset, Solver::tridiagonal, Solver::krylov})
    check_thread_counts(pencils, solver, 3);
}

TEST_CASE_TEMPLATE("several Krylov items on several denominators, in any order", T, float, double) {
  Random random(103);
  Pencils<T> pencils = known_pencil<T>(random, decaying(448));
  const Pencils<T> other = known_pencil<T>(random, decaying(448));
  pencils.a.push_back(other.a[0]);
  pencils.b.push_back(other.b[0]);
  pencils.shifts = {T(0), T(0.25)};
  pencils.items = {{0, 1}, {0, 0}, {1, 0}, {1, 1}};
  check_thread_counts(pencils, Solver::krylov, 4, {7});
}

TEST_CASE("the same call twice gives the same bits") {
  Random random(104);
  const Pencils<double> pencils = known_pencil<double>(random, decaying(448));
  for (const Solver solver : {Solver::subset, Solver::tridiagonal, Solver::krylov}) {
    CHECK(solve(pencils, with(solver, 3)).same_as(solve(pencils, with(solver, 3))));
  }
}
