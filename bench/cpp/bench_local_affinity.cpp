// Local scatters of LFDA's two sums beside the machine's dgemm. "flops" counts what the definition
// needs: n_c^2 (2 d + 20) for affinities and products of each class, and 4 n d^2 for both sums.
#include <vector>

#include "bench_support.hpp"
#include "eigenfeat/local_affinity.hpp"

namespace eigenfeat::bench {
namespace {

// Arguments: n, d, classes, threads.
void sums(benchmark::State& state) {
  const index_t n = state.range(0), d = state.range(1), classes = state.range(2);
  const AlignedBuffer<double> x = normal_numbers<double>(n * d, 1);
  const std::vector<index_t> counts(to_size(classes), n / classes);
  const std::vector<double> weights(to_size(2 * classes), 0.5);
  AlignedBuffer<double> out = touched<double>(2 * d * d);
  const auto table = row_major<const double>(weights.data(), 2, classes);
  const AffinityRows rows{row_major<const double>(x.data(), n, d), {counts.data(), classes}, 7};
  for (auto _ : state) {
    affinity_sums(rows, table, table, {out.data(), 2 * d * d}, static_cast<int>(state.range(3)));
    benchmark::ClobberMemory();
  }
  const double n_class = static_cast<double>(n / classes), width = static_cast<double>(d);
  count(state, "flops",
        static_cast<double>(n) * (n_class * (2.0 * width + 20.0) + 4.0 * width * width));
}

void peak(benchmark::State& state) {
  floor_gemm<double>(state, 1024, 1024, 1024);
}

void with_units(benchmark::internal::Benchmark* b) {
  b->Unit(benchmark::kMillisecond)->UseRealTime();
}

void shapes(benchmark::internal::Benchmark* b) {
  with_units(b);
  b->ArgNames({"n", "d", "classes", "threads"});
  for (const index_t threads : {1, 2}) {
    b->Args({5000, 10, 2, threads})->Args({5000, 20, 10, threads});
    b->Args({5000, 50, 5, threads})->Args({5000, 100, 10, threads});
    b->Args({5000, 784, 10, threads});
  }
}

BENCHMARK(peak)->Apply(with_units);
BENCHMARK(sums)->Apply(shapes);

}  // namespace
}  // namespace eigenfeat::bench

BENCHMARK_MAIN();
