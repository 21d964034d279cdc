// Shared by the benchmarks of the core: reproducible random data, and reference rates of the machine.
#pragma once

#include <benchmark/benchmark.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "eigenfeat/lapack.hpp"
#include "eigenfeat/scratch.hpp"
#include "eigenfeat/view.hpp"

namespace eigenfeat::bench {

// SplitMix64 (Steele, Lea and Flood 2014).
class Random {
 public:
  explicit Random(std::uint64_t seed) : state_(seed) {}
  std::uint64_t bits() {
    std::uint64_t z = (state_ += 0x9E3779B97F4A7C15ULL);
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9ULL;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBULL;
    return z ^ (z >> 31);
  }
  double uniform() { return static_cast<double>(bits() >> 11) * 0x1p-53; }
  // The sum of four uniform numbers, centred and scaled to variance 1.
  double normal() { return (uniform() + uniform() + uniform() + uniform() - 2.0) * std::sqrt(3.0); }

 private:
  std::uint64_t state_;
};

inline std::size_t to_size(index_t n) {
  return static_cast<std::size_t>(n);
}

template <class T>
AlignedBuffer<T> normal_numbers(index_t n, std::uint64_t seed) {
  Random random(seed);
  AlignedBuffer<T> result(n);
  for (index_t i = 0; i < n; ++i) result[i] = static_cast<T>(random.normal());
  return result;
}

// Memory that has been written once, so that no benchmark pays for its pages.
template <class T>
AlignedBuffer<T> touched(index_t n) {
  AlignedBuffer<T> result(n);
  std::fill(result.data(), result.data() + n, T(0));
  return result;
}

inline std::vector<std::int32_t> random_labels(index_t n, index_t n_classes, std::uint64_t seed) {
  Random random(seed);
  std::vector<std::int32_t> result(to_size(n));
  for (auto& label : result)
    label = static_cast<std::int32_t>(random.bits() % static_cast<std::uint64_t>(n_classes));
  return result;
}

template <class T>
struct SparseRows {
  std::vector<T> values;
  std::vector<index_t> indices, indptr{0};
  index_t cols = 0;
  CsrView<T> view() const {
    return {values.data(), indices.data(), indptr.data(), static_cast<index_t>(indptr.size()) - 1,
            cols};
  }
};

// Entries in (0, 1), as images have.
template <class T>
SparseRows<T> sparse_rows(index_t n, index_t d, double density, std::uint64_t seed) {
  Random random(seed);
  SparseRows<T> result;
  result.cols = d;
  for (index_t i = 0; i < n; ++i) {
    for (index_t j = 0; j < d; ++j) {
      if (random.uniform() >= density) continue;
      result.indices.push_back(j);
      result.values.push_back(static_cast<T>(random.uniform()));
    }
    result.indptr.push_back(static_cast<index_t>(result.values.size()));
  }
  return result;
}

// A counter shown as a rate, e.g. "35.2G/s".
inline void count(benchmark::State& state, const char* name, double per_iteration) {
  state.counters[name] =
      benchmark::Counter(per_iteration, benchmark::Counter::kIsIterationInvariantRate);
}

// A counter shown as it is.
inline void show(benchmark::State& state, const char* name, double value) {
  state.counters[name] = benchmark::Counter(value);
}

// One thread's rank-k update of n rows into (d, d): a lower bound on the time to form moments.
template <class T>
void floor_syrk(benchmark::State& state, index_t n, index_t d) {
  const AlignedBuffer<T> rows = normal_numbers<T>(n * d, 1);
  AlignedBuffer<T> product = touched<T>(d * d);
  for (auto _ : state) {
    syrk<T>(Triangle::lower, Op::none, T(1), column_major(rows.data(), d, n), T(0),
            column_major(product.data(), d, d));
    benchmark::ClobberMemory();
  }
  count(state, "flops",
        static_cast<double>(n) * static_cast<double>(d) * static_cast<double>(d + 1));
}

// One thread's (m, k) times (k, n).
template <class T>
void floor_gemm(benchmark::State& state, index_t m, index_t k, index_t n) {
  const AlignedBuffer<T> a = normal_numbers<T>(m * k, 1), b = normal_numbers<T>(k * n, 2);
  AlignedBuffer<T> c = touched<T>(m * n);
  for (auto _ : state) {
    gemm<T>(Op::none, Op::none, T(1), column_major(a.data(), m, k), column_major(b.data(), k, n),
            T(0), column_major(c.data(), m, n));
    benchmark::ClobberMemory();
  }
  count(state, "flops",
        2.0 * static_cast<double>(m) * static_cast<double>(k) * static_cast<double>(n));
}

}  // namespace eigenfeat::bench
