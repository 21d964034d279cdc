// Epochs of the dual SVM solvers on dense rows and on rows of which a fifth of the entries is
// nonzero. "rows" counts the rows of an epoch; the classes overlap, so that many rows stay active.
#include "bench_support.hpp"
#include "eigenfeat/crammer_singer.hpp"

namespace eigenfeat::bench {
namespace {

template <class T>
AlignedBuffer<T> class_rows(index_t n, index_t d, index_t k, double density,
                            const std::vector<std::int32_t>& labels) {
  Random random(5);
  AlignedBuffer<T> x = AlignedBuffer<T>::zeros(n * d);
  for (index_t i = 0; i < n; ++i) {
    for (index_t j = 0; j < d; ++j) {
      if (random.uniform() >= density) continue;
      const double own = j % k == labels[to_size(i)] ? 0.5 : 0.0;
      x[i * d + j] = static_cast<T>(0.3 * random.normal() + own);
    }
  }
  return x;
}

template <class T>
void run_epochs(benchmark::State& state, DualSolver kind, double density) {
  const index_t n = state.range(0), d = state.range(1), k = state.range(2);
  const int n_threads = static_cast<int>(state.range(3));
  const auto labels = random_labels(n, k, 3);
  const std::vector<double> costs(to_size(n), 0.01);
  const AlignedBuffer<T> x = class_rows<T>(n, d, k, density, labels);
  const SvmProblem problem{{labels.data(), n}, {costs.data(), n}, k, 1.0, 1.0};
  double gap = 0.0;
  for (auto _ : state) {
    CrammerSinger<T> solver(row_major<const T>(x.data(), n, d), problem, {kind, 16, 0}, n_threads);
    solver.run(2, 0.0, n_threads);
    gap = solver.gap() / solver.primal();
  }
  count(state, "rows", 2.0 * static_cast<double>(n));
  show(state, "gap", gap);
}

// Arguments: n, d, k, threads.
template <class T>
void sequential_dense(benchmark::State& state) {
  run_epochs<T>(state, DualSolver::sequential, 1.0);
}
template <class T>
void sequential_fifth(benchmark::State& state) {
  run_epochs<T>(state, DualSolver::sequential, 0.2);
}
template <class T>
void frank_wolfe_fifth(benchmark::State& state) {
  run_epochs<T>(state, DualSolver::frank_wolfe, 0.2);
}

void sizes(benchmark::internal::Benchmark* bench) {
  for (const int n_threads : {1, 2}) {
    bench->Args({10000, 784, 10, n_threads});
    bench->Args({5000, 1000, 26, n_threads});
  }
  bench->Unit(benchmark::kMillisecond)->UseRealTime();
}

BENCHMARK_TEMPLATE(sequential_dense, float)->Apply(sizes);
BENCHMARK_TEMPLATE(sequential_dense, double)->Apply(sizes);
BENCHMARK_TEMPLATE(sequential_fifth, float)->Apply(sizes);
BENCHMARK_TEMPLATE(frank_wolfe_fifth, float)->Apply(sizes);

}  // namespace
}  // namespace eigenfeat::bench
