// for_blocks: every block once, exceptions to the caller, nested regions serial.
#include <doctest/doctest.h>

#include <atomic>
#include <stdexcept>
#include <string>
#include <utility>

#include "eigenfeat/parallel.hpp"
#include "eigenfeat/vector.hpp"
#include "unit/support.hpp"

using namespace eigenfeat;
using support::message_of;

TEST_CASE("every block is visited once, by a thread in range") {
  for (const int n_threads : {1, 2, 7}) {
    for (const index_t n_blocks : {index_t{0}, index_t{1}, index_t{3}, index_t{100}}) {
      Vector<std::atomic<int>> visits(n_blocks);
      std::atomic<bool> in_range{true};
      for_blocks(n_blocks, n_threads, [&](index_t block, int thread) {
        ++visits[block];
        if (thread < 0 || thread >= n_threads) in_range = false;
      });
      for (const auto& count : visits) CHECK(count == 1);
      CHECK(in_range);
    }
  }
}

TEST_CASE("a negative number of blocks is none") {
  for_blocks(-3, 2, [](index_t, int) { FAIL("no block to visit"); });
}

TEST_CASE("ranges cover [0, n) in steps of the width") {
  Vector<std::pair<index_t, index_t>> ranges;
  for_ranges(10, 4, 1, [&](index_t begin, index_t end, int) { ranges.emplace_back(begin, end); });
  const Vector<std::pair<index_t, index_t>> expected{{0, 4}, {4, 8}, {8, 10}};
  CHECK(ranges == expected);
  for_ranges(0, 4, 2, [](index_t, index_t, int) { FAIL("no range to visit"); });
}

TEST_CASE("an exception reaches the caller") {
  for (const int n_threads : {1, 2, 7}) {
    CHECK_THROWS_AS(for_blocks(20, n_threads,
                               [](index_t block, int) {
                                 if (block == 11) throw std::out_of_range("block");
                               }),
                    std::out_of_range);
    CHECK_FALSE(in_parallel_region());
    std::atomic<int> count{0};  // and the next region works
    for_blocks(20, n_threads, [&](index_t, int) { ++count; });
    CHECK(count == 20);
  }
}

TEST_CASE("of many exceptions the one of the lowest block is kept") {
  for (const int n_threads : {1, 2, 7}) {
    int wrong = 0;
    for (int repetition = 0; repetition < 40; ++repetition) {
      const std::string message = message_of<std::runtime_error>([&] {
        for_blocks(64, n_threads, [](index_t block, int) {
          if (block >= 3) throw std::runtime_error("block " + std::to_string(block));
        });
      });
      if (message != "block 3") ++wrong;
    }
    CHECK(wrong == 0);
  }
}

TEST_CASE("a region inside a region runs serially") {
  CHECK_FALSE(in_parallel_region());
  std::atomic<int> visits{0};
  std::atomic<int> not_serial{0};
  for_blocks(4, 2, [&](index_t, int) {
    if (!in_parallel_region()) ++not_serial;
    index_t expected = 0;
    for_blocks(5, 7, [&](index_t block, int thread) {
      if (thread != 0 || block != expected) ++not_serial;
      ++expected;
      ++visits;
    });
    if (!in_parallel_region()) ++not_serial;
  });
  CHECK(visits == 20);
  CHECK(not_serial == 0);
  CHECK_FALSE(in_parallel_region());
}

TEST_CASE("an exception passes through a nested region") {
  CHECK_THROWS_AS(for_blocks(4, 2,
                             [](index_t outer, int) {
                               for_blocks(3, 2, [outer](index_t inner, int) {
                                 if (outer == 2 && inner == 1) throw std::domain_error("nested");
                               });
                             }),
                  std::domain_error);
  CHECK_FALSE(in_parallel_region());
}

TEST_CASE("thread counts resolve") {
  CHECK(default_threads() >= 1);
  CHECK(resolve_threads(3) == 3);
  CHECK(resolve_threads(0) == default_threads());
  CHECK(resolve_threads(-1) == default_threads());
}

TEST_CASE("BLAS stays at one thread") {
  pin_blas();
  CHECK(blas_threads() <= 1);
}
