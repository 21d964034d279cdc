// Several threads call the core at once, as Python threads without the GIL do. Each call starts
// threads of its own.
#include <doctest/doctest.h>

#include <atomic>
#include <cmath>
#include <functional>
#include <stdexcept>
#include <thread>

#include "eigenfeat/expansion.hpp"
#include "eigenfeat/moments.hpp"
#include "eigenfeat/parallel.hpp"
#include "eigenfeat/vector.hpp"
#include "unit/pencil_support.hpp"
#include "unit/support.hpp"

using namespace eigenfeat;
using namespace eigenfeat::support;

namespace {

constexpr int kCallers = 4;

// The number of calls of `agrees` that returned false or threw. Tests check this number after all
// callers have ended.
int failures_of(const std::function<bool(int caller)>& agrees, int rounds = 3) {
  std::atomic<int> failures{0};
  Vector<std::thread> callers;
  for (int caller = 0; caller < kCallers; ++caller) {
    callers.emplace_back([&, caller] {
      for (int round = 0; round < rounds; ++round) {
        try {
          if (!agrees(caller)) ++failures;
        } catch (...) {
          ++failures;
        }
      }
    });
  }
  for (auto& caller : callers) caller.join();
  return failures;
}

}  // namespace

TEST_CASE("several callers solve the same batch") {
  Random random(211);
  Pencils<double> pencils;
  for (int c = 0; c < 3; ++c) {
    pencils.a.push_back(random.positive_definite<double>(24, 0.1));
    pencils.b.push_back(random.positive_definite<double>(24, 0.5));
  }
  for (index_t i = 0; i < 3; ++i) {
    for (index_t j = 0; j < 3; ++j) pencils.items.emplace_back(i, j);
  }
  for (const Solver solver : kSolvers) {
    const Solved<double> expected = solve(pencils, with(solver, 5, 1));
    CHECK(failures_of([&](int caller) {
            return solve(pencils, with(solver, 5, 1 + caller % 3)).same_as(expected);
          }) == 0);
  }
}

TEST_CASE("several callers run Krylov on one large pencil") {
  Vector<double> values(450);
  for (index_t k = 0; k < values.size(); ++k) values[k] = 9 * std::pow(0.8, static_cast<double>(k));
  Random random(212);
  const Pencils<float> pencils = known_pencil<float>(random, values);
  const Solved<float> expected = solve(pencils, with(Solver::krylov, 3, 1));
  CHECK(failures_of(
            [&](int caller) {
              return solve(pencils, with(Solver::krylov, 3, 1 + caller % 2)).same_as(expected);
            },
            1) == 0);
}

TEST_CASE("several callers gather moments and expand the same rows") {
  Random random(213);
  const index_t n = 500, d = 30;
  const Matrix<float> rows = random.normal_matrix<float>(n, d),
                      directions = random.normal_matrix<float>(d, 6);
  const auto labels = random.labels(n, 3);
  const auto gather = [&](int n_threads) {
    ClassMoments moments(3, d);
    for (int pass = 0; pass < 2; ++pass)
      moments.update<float>(rows.read(), read(labels), {}, n_threads);
    return moments;
  };
  const Expansion expansion;
  const index_t width = expanded_columns(expansion, d, 6);
  const auto spread = [&](int n_threads) {
    Vector<float> out(n * width);
    expand<float>(rows.read(), directions.read(), {}, expansion, row_major(out.data(), n, width),
                  n_threads);
    return out;
  };
  const ClassMoments moments = gather(1);
  const Vector<float> features = spread(1);
  CHECK(failures_of([&](int caller) { return gather(1 + caller % 3) == moments; }) == 0);
  CHECK(failures_of([&](int caller) { return same_bits(spread(1 + caller % 3), features); }) == 0);
}

TEST_CASE("an error reaches only the caller that made it") {
  Random random(214);
  Matrix<double> good = random.normal_matrix<double>(400, 10), bad = good;
  bad(399, 9) = std::nan("");
  const auto labels = random.labels(400, 2);
  ClassMoments expected(2, 10);
  expected.update<double>(good.read(), read(labels), {}, 2);
  CHECK(failures_of([&](int caller) {
          ClassMoments moments(2, 10);
          if (caller % 2 == 0) {
            moments.update<double>(good.read(), read(labels), {}, 2);
            return moments == expected;
          }
          try {
            moments.update<double>(bad.read(), read(labels), {}, 2);
          } catch (const std::invalid_argument&) {
            return moments == ClassMoments(2, 10);
          }
          return false;
        }) == 0);
}

TEST_CASE("blocks and parallel regions of several callers do not mix") {
  CHECK(failures_of([](int caller) {
          Vector<int> marks(200, -1);
          const bool outside = !in_parallel_region();
          for_blocks(200, 3, [&](index_t block, int) { marks[block] = caller; });
          for (const int mark : marks) {
            if (mark != caller) return false;
          }
          return outside && !in_parallel_region();
        }) == 0);
}
