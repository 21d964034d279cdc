// ClassMoments::update beside one thread's syrk of the same shape (the floor).
// "flops" is n d (d + 1), the useful operations of a symmetric rank-n update; more may be executed.
#include <map>
#include <utility>

#include "bench_support.hpp"
#include "eigenfeat/moments.hpp"

namespace eigenfeat::bench {
namespace {

// Samples of a shape, drawn once: benchmarks of the same shape run one after the other.
template <class T>
const AlignedBuffer<T>& rows_of(index_t n, index_t d) {
  static std::pair<index_t, index_t> shape{0, 0};
  static AlignedBuffer<T> rows;
  if (shape != std::pair{n, d}) {
    rows = normal_numbers<T>(n * d, 7);
    shape = {n, d};
  }
  return rows;
}

// Arguments: n, d, classes, threads.
template <class T>
void moments_dense(benchmark::State& state) {
  const index_t n = state.range(0), d = state.range(1), n_classes = state.range(2);
  const int n_threads = static_cast<int>(state.range(3));
  const AlignedBuffer<T>& rows = rows_of<T>(n, d);
  const auto labels = random_labels(n, n_classes, 8);
  for (auto _ : state) {
    ClassMoments moments(n_classes, d);
    moments.update<T>(row_major(rows.data(), n, d), {labels.data(), n}, {}, n_threads);
    benchmark::DoNotOptimize(moments.weight(0));
  }
  count(state, "flops",
        static_cast<double>(n) * static_cast<double>(d) * static_cast<double>(d + 1));
  count(state, "rows", static_cast<double>(n));
}

// Arguments: n, d, classes, threads, density in parts per thousand.
template <class T>
void moments_sparse(benchmark::State& state) {
  const index_t n = state.range(0), d = state.range(1), n_classes = state.range(2);
  const int n_threads = static_cast<int>(state.range(3));
  const auto rows = sparse_rows<T>(n, d, static_cast<double>(state.range(4)) / 1000.0, 9);
  const auto labels = random_labels(n, n_classes, 8);
  for (auto _ : state) {
    ClassMoments moments(n_classes, d);
    moments.update<T>(rows.view(), {labels.data(), n}, {}, n_threads);
    benchmark::DoNotOptimize(moments.weight(0));
  }
  count(state, "flops",
        static_cast<double>(n) * static_cast<double>(d) * static_cast<double>(d + 1));
  count(state, "rows", static_cast<double>(n));
}

// Arguments: d, classes, threads. Bytes: the used halves of two scatters read and of one written.
void moments_merge(benchmark::State& state) {
  const index_t d = state.range(0), n_classes = state.range(1), n = 20 * n_classes;
  const AlignedBuffer<double>& rows = rows_of<double>(n, d);
  const auto labels = random_labels(n, n_classes, 8);
  ClassMoments moments(n_classes, d), other(n_classes, d);
  std::vector<std::int32_t> same(to_size(n_classes));
  for (std::size_t c = 0; c < same.size(); ++c) same[c] = static_cast<std::int32_t>(c);
  moments.update<double>(row_major(rows.data(), n, d), {labels.data(), n}, {}, 1);
  other.update<double>(row_major(rows.data(), n, d), {labels.data(), n}, {}, 1);
  for (auto _ : state) {
    moments.merge(other, {same.data(), n_classes}, static_cast<int>(state.range(2)));
    benchmark::DoNotOptimize(moments.weight(0));
  }
  count(state, "bytes",
        12.0 * static_cast<double>(n_classes) * static_cast<double>(d) * static_cast<double>(d));
}

template <class T>
void floor_of_moments(benchmark::State& state) {
  floor_syrk<T>(state, state.range(0), state.range(1));
}

void shapes(benchmark::internal::Benchmark* b) {
  b->ArgNames({"n", "d", "classes", "threads"})->Unit(benchmark::kMillisecond)->UseRealTime();
  for (const std::int64_t threads : {1, 2}) {
    b->Args({60000, 784, 10, threads})
        ->Args({60000, 784, 1, threads})
        ->Args({200000, 54, 7, threads});
  }
}

void sparse_shapes(benchmark::internal::Benchmark* b) {
  b->ArgNames({"n", "d", "classes", "threads", "density_permille"})
      ->Unit(benchmark::kMillisecond)
      ->UseRealTime();
  for (const std::int64_t density : {10, 50, 100, 190}) b->Args({60000, 784, 10, 1, density});
  b->Args({60000, 784, 10, 2, 50});
}

void floors(benchmark::internal::Benchmark* b) {
  b->ArgNames({"n", "d"})->Unit(benchmark::kMillisecond)->UseRealTime();
  b->Args({60000, 784})->Args({200000, 54});
}

BENCHMARK(floor_of_moments<float>)->Apply(floors);
BENCHMARK(moments_dense<float>)->Apply(shapes);
BENCHMARK(moments_sparse<float>)->Apply(sparse_shapes);
BENCHMARK(floor_of_moments<double>)->Apply(floors);
BENCHMARK(moments_dense<double>)->Apply(shapes);
BENCHMARK(moments_sparse<double>)->Apply(sparse_shapes);
BENCHMARK(moments_merge)
    ->ArgNames({"d", "classes", "threads"})
    ->Args({784, 10, 1})
    ->Args({784, 10, 2})
    ->UseRealTime();

}  // namespace
}  // namespace eigenfeat::bench

BENCHMARK_MAIN();
