// for_blocks visits every block once, passes exceptions to the caller and runs nested regions
// serially. Interrupts end a region, and a forked child has one thread.
#include <doctest/doctest.h>

#include <atomic>
#include <chrono>
#include <functional>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>

#include "eigenfeat/parallel.hpp"
#include "eigenfeat/vector.hpp"
#include "unit/support.hpp"

#if defined(__unix__) || defined(__APPLE__)
#include <sys/wait.h>
#include <unistd.h>
#endif

using namespace eigenfeat;
using namespace std::chrono_literals;
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

TEST_CASE("for_ranges covers [0, n) in ranges of the width") {
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
    std::atomic<int> count{0};  // the next region works
    for_blocks(20, n_threads, [&](index_t, int) { ++count; });
    CHECK(count == 20);
  }
}

TEST_CASE("of many exceptions, the exception of the lowest block is rethrown") {
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

TEST_CASE("n_threads resolves to a number of threads") {
  CHECK(default_threads() >= 1);
  CHECK(resolve_threads(3) == 3);
  CHECK(resolve_threads(0) == default_threads());
  CHECK(resolve_threads(-1) == default_threads());
}

TEST_CASE("BLAS has one thread") {
  pin_blas();
  CHECK(blas_threads() <= 1);
}

#ifdef EIGENFEAT_HAS_OPENMP
TEST_CASE("all requested threads visit blocks") {
  std::atomic<int> there{0};
  const auto end = std::chrono::steady_clock::now() + 20s;
  for_blocks(5, 5, [&](index_t, int) {
    ++there;
    while (there < 5 && std::chrono::steady_clock::now() < end) std::this_thread::yield();
  });
  CHECK(there == 5);
}
#endif

TEST_CASE("many short regions of changing sizes visit all blocks") {
  index_t wrong = 0;
  for (index_t repetition = 0; repetition < 3000; ++repetition) {
    const index_t n = 2 + repetition % 5;
    std::atomic<index_t> sum{0};
    for_blocks(n, 3, [&](index_t block, int) { sum += block + repetition; });
    if (sum != n * (n - 1) / 2 + n * repetition) ++wrong;
  }
  CHECK(wrong == 0);
}

TEST_CASE("huge numbers of threads work") {
  std::atomic<index_t> count{0};
  for_blocks(100'000, 1 << 20, [&](index_t, int) { ++count; });
  CHECK(count == 100'000);
}

TEST_CASE("an interrupt ends a region of any number of threads") {
  struct Interrupted : std::runtime_error {
    using std::runtime_error::runtime_error;
  };
  for (const int n_threads : {1, 2, 7}) {
    set_interrupt_check([] { throw Interrupted("now"); });
    std::atomic<int> blocks{0};
    CHECK_THROWS_AS(for_blocks(100'000, n_threads,
                               [&](index_t, int) {
                                 ++blocks;
                                 std::this_thread::sleep_for(1ms);
                               }),
                    Interrupted);
    CHECK(blocks < 10'000);
    set_interrupt_check(nullptr);
    CHECK_FALSE(in_parallel_region());
    blocks = 0;
    for_blocks(10, n_threads, [&](index_t, int) { ++blocks; });
    CHECK(blocks == 10);
  }
}

TEST_CASE("only the calling thread checks for interrupts, and not at every block") {
  static std::thread::id caller;
  static std::atomic<int> asked, by_others;
  caller = std::this_thread::get_id();
  asked = by_others = 0;
  set_interrupt_check([] {
    ++asked;
    if (std::this_thread::get_id() != caller) ++by_others;
  });
  for_blocks(300, 3, [](index_t, int) { std::this_thread::sleep_for(1ms); });
  set_interrupt_check(nullptr);
  CHECK(by_others == 0);
  CHECK(asked <= 20);
}

// ThreadSanitizer cannot follow a fork of several threads.
#if (defined(__unix__) || defined(__APPLE__)) && !defined(__SANITIZE_THREAD__)
TEST_CASE("a forked child and its own child have one thread") {
  // The sum of the blocks, or -1 where another thread than the caller's works.
  const auto sum = [](bool alone) {
    const std::thread::id caller = std::this_thread::get_id();
    std::atomic<index_t> total{0};
    std::atomic<bool> others{false};
    for_blocks(20, 4, [&](index_t block, int) {
      total += block;
      if (std::this_thread::get_id() != caller) others = true;
    });
    return alone && others ? -1 : total.load();
  };
  CHECK(sum(false) == 190);
  const std::function<int(int)> descend = [&](int generations) {
    const pid_t child = fork();
    if (child == 0) {
      alarm(60);
      bool good = sum(true) == 190 && default_threads() == 1 && resolve_threads(7) == 1;
      if (generations > 1) good = descend(generations - 1) == 0 && good;
      _exit(good ? 0 : 1);
    }
    int status = -1;
    waitpid(child, &status, 0);
    return status;
  };
  CHECK(descend(2) == 0);
  CHECK(sum(false) == 190);
}
#endif
