// expand beside one thread's gemm of the same shape and beside writing the output once, two lower
// bounds of its time. "flops" counts the projection alone, 2 n d F; "bytes" what is written.
#include <algorithm>

#include "bench_support.hpp"
#include "eigenfeat/expansion.hpp"

namespace eigenfeat::bench {
namespace {

Expansion expansion_of(std::int64_t wave) {
  Expansion result;
  result.wave = static_cast<Wave>(wave);
  return result;
}

template <class T>
void count_work(benchmark::State& state, index_t n, index_t d, index_t n_directions,
                index_t width) {
  count(state, "flops",
        2.0 * static_cast<double>(n) * static_cast<double>(d) * static_cast<double>(n_directions));
  count(state, "bytes",
        static_cast<double>(sizeof(T)) * static_cast<double>(n) * static_cast<double>(width));
}

// Arguments: n, d, directions, wave (0 none, 1 half_wave, 2 shifted), threads.
template <class T>
void expand_dense(benchmark::State& state) {
  const index_t n = state.range(0), d = state.range(1), n_directions = state.range(2);
  const Expansion expansion = expansion_of(state.range(3));
  const index_t width = expanded_columns(expansion, d, n_directions);
  const AlignedBuffer<T> rows = normal_numbers<T>(n * d, 1),
                         directions = normal_numbers<T>(d * n_directions, 2);
  AlignedBuffer<T> out = touched<T>(n * width);
  for (auto _ : state) {
    expand<T>(row_major<const T>(rows.data(), n, d),
              row_major<const T>(directions.data(), d, n_directions), {}, expansion,
              row_major(out.data(), n, width), static_cast<int>(state.range(4)));
    benchmark::ClobberMemory();
  }
  count_work<T>(state, n, d, n_directions, width);
}

// Arguments: as above, and the density in parts per thousand.
template <class T>
void expand_sparse(benchmark::State& state) {
  const index_t n = state.range(0), d = state.range(1), n_directions = state.range(2);
  const Expansion expansion = expansion_of(state.range(3));
  const index_t width = expanded_columns(expansion, d, n_directions);
  const auto rows = sparse_rows<T>(n, d, static_cast<double>(state.range(5)) / 1000.0, 1);
  const AlignedBuffer<T> directions = normal_numbers<T>(d * n_directions, 2);
  AlignedBuffer<T> out = touched<T>(n * width);
  for (auto _ : state) {
    expand<T>(rows.view(), row_major<const T>(directions.data(), d, n_directions), {}, expansion,
              row_major(out.data(), n, width), static_cast<int>(state.range(4)));
    benchmark::ClobberMemory();
  }
  count_work<T>(state, n, d, n_directions, width);
}

template <class T>
void floor_of_projection(benchmark::State& state) {
  floor_gemm<T>(state, state.range(2), state.range(1), state.range(0));
}

// Writes six columns for each direction, as the three powers of both signs do.
template <class T>
void floor_of_writing(benchmark::State& state) {
  const index_t size = 6 * state.range(0) * state.range(2);
  AlignedBuffer<T> out = touched<T>(size);
  for (auto _ : state) {
    std::fill(out.data(), out.data() + size, T(1));
    benchmark::ClobberMemory();
  }
  count(state, "bytes", static_cast<double>(sizeof(T)) * static_cast<double>(size));
}

// 90 pairs of 10 classes with 20 directions each; Covertype's 42 pairs.
void floors(benchmark::internal::Benchmark* b) {
  b->ArgNames({"n", "d", "directions"})->Unit(benchmark::kMillisecond)->UseRealTime();
  b->Args({4096, 784, 1800})->Args({8192, 54, 840});
}

void shapes(benchmark::internal::Benchmark* b) {
  b->ArgNames({"n", "d", "directions", "wave", "threads"})
      ->Unit(benchmark::kMillisecond)
      ->UseRealTime();
  for (const std::int64_t threads : {1, 2}) {
    for (const std::int64_t wave : {0, 1, 2}) b->Args({4096, 784, 1800, wave, threads});
    b->Args({8192, 54, 840, 1, threads});
  }
}

void sparse_shapes(benchmark::internal::Benchmark* b) {
  b->ArgNames({"n", "d", "directions", "wave", "threads", "density_permille"})
      ->Unit(benchmark::kMillisecond)
      ->UseRealTime();
  for (const std::int64_t density : {10, 50, 190}) b->Args({4096, 784, 1800, 1, 1, density});
}

BENCHMARK(floor_of_projection<float>)->Apply(floors);
BENCHMARK(floor_of_writing<float>)->Apply(floors);
BENCHMARK(expand_dense<float>)->Apply(shapes);
BENCHMARK(expand_sparse<float>)->Apply(sparse_shapes);
BENCHMARK(floor_of_projection<double>)->Apply(floors);
BENCHMARK(floor_of_writing<double>)->Apply(floors);
BENCHMARK(expand_dense<double>)->Apply(shapes);

}  // namespace
}  // namespace eigenfeat::bench

BENCHMARK_MAIN();
