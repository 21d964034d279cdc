// The class-wise search beside one thread's gemm of the same distances, the two forms of A beside
// each other, and discriminants. "flops": 2 n^2 d for the search, n G d^2 for A by rows.
#include "bench_support.hpp"
#include "eigenfeat/local_means.hpp"

namespace eigenfeat::bench {
namespace {

constexpr index_t kClasses = 10;

template <class T>
struct Problem {
  Problem(index_t size, index_t columns, index_t k)
      : n(size),
        d(columns),
        rows(normal_numbers<T>(n * d, 1)),
        codes(random_labels(n, kClasses, 2)),
        lists(to_size(n * kClasses * k)),
        n_neighbors(k) {
    search(0);
  }
  MatrixView<const T> view() const { return row_major<const T>(rows.data(), n, d); }
  VectorView<const std::int32_t> labels() const { return {codes.data(), n}; }
  void search(int n_threads) {
    find_local_neighbours<T>({view(), labels(), kClasses, view(), true, {}}, n_neighbors,
                             {lists.data(), static_cast<index_t>(lists.size())}, n_threads);
  }
  LocalPairs<T> pairs() const {
    return {view(),   view(),     labels(), {lists.data(), static_cast<index_t>(lists.size())},
            kClasses, n_neighbors};
  }

  index_t n, d;
  AlignedBuffer<T> rows;
  std::vector<std::int32_t> codes;
  std::vector<index_t> lists;
  index_t n_neighbors;
};

// Arguments: n, d, neighbours, threads.
template <class T>
void neighbours(benchmark::State& state) {
  Problem<T> problem(state.range(0), state.range(1), state.range(2));
  for (auto _ : state) {
    problem.search(static_cast<int>(state.range(3)));
    benchmark::ClobberMemory();
  }
  const double n = static_cast<double>(problem.n);
  count(state, "flops", 2.0 * n * n * static_cast<double>(problem.d));
}

// Arguments: n, d, neighbours, threads.
template <class T, ScatterMethod kMethod>
void scatters(benchmark::State& state) {
  const Problem<T> problem(state.range(0), state.range(1), state.range(2));
  const index_t d = problem.d;
  AlignedBuffer<double> within = touched<double>(d * d), weighted = touched<double>(d * d);
  const std::vector<double> priors(to_size(kClasses), 1.0 / static_cast<double>(kClasses));
  for (auto _ : state) {
    local_scatters<T>(problem.pairs(), {priors.data(), kClasses}, kMethod,
                      row_major(within.data(), d, d), row_major(weighted.data(), d, d),
                      static_cast<int>(state.range(3)));
    benchmark::ClobberMemory();
  }
  count(state, "flops",
        static_cast<double>(problem.n) * static_cast<double>(kClasses) * static_cast<double>(d) *
            static_cast<double>(d));
}

// Arguments: n, d, neighbours, threads; counts 1, 2, 4, ... up to the neighbours.
template <class T>
void discriminants(benchmark::State& state) {
  const Problem<T> problem(state.range(0), state.range(1), state.range(2));
  std::vector<index_t> counts;
  for (index_t count = 1; count <= problem.n_neighbors; count *= 2) counts.push_back(count);
  const index_t n_counts = static_cast<index_t>(counts.size());
  AlignedBuffer<double> scores = touched<double>(n_counts * problem.n * kClasses);
  for (auto _ : state) {
    local_discriminants<T>(problem.pairs(), {counts.data(), n_counts}, 1e-4,
                           {scores.data(), scores.size()}, static_cast<int>(state.range(3)));
    benchmark::ClobberMemory();
  }
  count(state, "neighbours", static_cast<double>(problem.lists.size()));
}

template <class T>
void floor_of_distances(benchmark::State& state) {
  floor_gemm<T>(state, 512, state.range(0), 256);
}

void shapes(benchmark::internal::Benchmark* b) {
  b->Unit(benchmark::kMillisecond)->UseRealTime();
  b->ArgNames({"n", "d", "neighbours", "threads"});
  b->Args({3000, 784, 8, 1})->Args({3000, 784, 8, 2})->Args({3000, 784, 128, 1});
  b->Args({3000, 32, 8, 1});
}

void floors(benchmark::internal::Benchmark* b) {
  b->Unit(benchmark::kMillisecond)->UseRealTime()->ArgNames({"d"})->Args({784})->Args({32});
}

BENCHMARK(floor_of_distances<float>)->Apply(floors);
BENCHMARK(neighbours<float>)->Apply(shapes);
BENCHMARK(neighbours<double>)->Apply(shapes);
BENCHMARK(scatters<float, ScatterMethod::rows>)->Apply(shapes);
BENCHMARK(scatters<float, ScatterMethod::graph>)->Apply(shapes);
BENCHMARK(discriminants<float>)->Apply(shapes);

}  // namespace
}  // namespace eigenfeat::bench

BENCHMARK_MAIN();
