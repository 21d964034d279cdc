// solve_pencils by its three solvers over the sizes that `automatic` chooses among, beside one
// thread's d x d x d gemm (the floor). choose_solver's constants are fitted to the times of
// bench/solver_costs.py.
//
// "flops" by the header's counts (full 9 d^3, subset 3 d^3, krylov 4 d^2 per column) compare a
// solver with the floor, not one solver with another.
#include <memory>
#include <utility>

#include "bench_support.hpp"
#include "eigenfeat/pencil.hpp"

namespace eigenfeat::bench {
namespace {

constexpr index_t kVectors = 20;
constexpr double kRidge = 0.1;  // times trace(B) / d

// Second moments of a simulated class: C = U diag(s) U^T + mean mean^T + noise I, with directions U
// that the classes share and variances s that fall like k^-1.5 and differ from class to class, like
// the variances of images.
template <class T>
AlignedBuffer<T> class_moment(index_t d, const AlignedBuffer<T>& directions, std::uint64_t seed) {
  Random random(seed);
  AlignedBuffer<T> scaled(d * d), result(d * d);
  for (index_t k = 0; k < d; ++k) {
    const double variance =
        std::pow(static_cast<double>(k + 1), -1.5) * std::exp(0.8 * random.normal());
    const T scale = static_cast<T>(std::sqrt(variance / static_cast<double>(d)));
    for (index_t i = 0; i < d; ++i) scaled[k * d + i] = scale * directions[k * d + i];
  }
  for (index_t i = 0; i < d; ++i) scaled[i] += static_cast<T>(0.05 * random.normal());
  syrk<T>(Triangle::lower, Op::none, T(1), column_major<const T>(scaled.data(), d, d), T(0),
          column_major(result.data(), d, d));
  for (index_t j = 0; j < d; ++j) {
    result[j * d + j] += T(1e-4);
    for (index_t i = j + 1; i < d; ++i) result[i * d + j] = result[j * d + i];
  }
  return result;
}

// Three classes; the numerators of items are the first two, and their denominator is the third.
template <class T>
struct Batch {
  index_t order = 0;
  std::vector<AlignedBuffer<T>> classes;
  PencilProblem<T> problem;

  void prepare(index_t d, index_t items_per_denominator) {
    if (order != d) {
      const AlignedBuffer<T> directions = normal_numbers<T>(d * d, 3);
      classes.clear();
      for (std::uint64_t seed = 11; seed < 14; ++seed)
        classes.push_back(class_moment(d, directions, seed));
      order = d;
    }
    problem = {};
    for (const auto& moment : classes)
      problem.numerators.push_back(row_major<const T>(moment.data(), d, d));
    problem.denominators.push_back(problem.numerators[2]);
    double trace = 0;
    for (index_t i = 0; i < d; ++i) trace += static_cast<double>(classes[2][i * d + i]);
    problem.shifts.push_back(static_cast<T>(kRidge * trace / static_cast<double>(d)));
    for (index_t i = 0; i < items_per_denominator; ++i) problem.items.emplace_back(i % 2, 0);
  }
};

template <class T>
Batch<T>& batch_of(index_t d, index_t items) {
  static Batch<T> batch;
  batch.prepare(d, items);
  return batch;
}

double flops_of(Solver solver, index_t d, double columns) {
  const double n = static_cast<double>(d);
  if (solver == Solver::full) return 9.0 * n * n * n;
  return solver == Solver::krylov ? 4.0 * n * n * columns : 3.0 * n * n * n;
}

// Arguments: d, solver (1 full, 2 subset, 3 tridiagonal, 4 krylov), items on one denominator, threads.
template <class T>
void pencil(benchmark::State& state) {
  const index_t d = state.range(0), n = state.range(2);
  PencilOptions options;
  options.n_vectors = kVectors;
  options.solver = static_cast<Solver>(state.range(1));
  options.n_threads = static_cast<int>(state.range(3));
  const Batch<T>& batch = batch_of<T>(d, n);
  std::vector<T> values(to_size(n * kVectors)), vectors(to_size(n * kVectors * d)),
      residuals(values.size());
  std::vector<index_t> found(to_size(n)), iterations(to_size(n));
  std::vector<int> solver(to_size(n)), status(to_size(n));
  const PencilSolution<T> solution{{values.data(), n * kVectors},
                                   {vectors.data(), n * kVectors * d},
                                   {residuals.data(), n * kVectors},
                                   {found.data(), n},
                                   {iterations.data(), n},
                                   {solver.data(), n},
                                   {status.data(), n}};
  for (auto _ : state) {
    solve_pencils<T>(batch.problem, options, solution);
    benchmark::ClobberMemory();
  }
  double columns = 0, worst = 0;
  int failed = 0, other_solver = 0;
  for (std::size_t i = 0; i < to_size(n); ++i) {
    columns += static_cast<double>(iterations[i]);
    failed += status[i] == static_cast<int>(Status::ok) ? 0 : 1;
    other_solver += solver[i] == static_cast<int>(options.solver) ? 0 : 1;
    for (index_t j = 0; j < found[i]; ++j) {
      worst = std::max(worst, static_cast<double>(residuals[i * to_size(kVectors) + to_size(j)]));
    }
  }
  const double items = static_cast<double>(n);
  count(state, "flops", items * flops_of(options.solver, d, columns / items));
  state.counters["item_seconds"] = benchmark::Counter(
      items, benchmark::Counter::kIsIterationInvariantRate | benchmark::Counter::kInvert);
  show(state, "columns", columns / items);
  show(state, "worst_residual", worst);
  show(state, "not_ok", failed);
  show(state, "fell_back", other_solver);
}

template <class T>
void floor_of_pencil(benchmark::State& state) {
  floor_gemm<T>(state, state.range(0), state.range(0), state.range(0));
}

constexpr std::int64_t kOrders[] = {64, 128, 256, 512, 784, 1500, 3600};

void floors(benchmark::internal::Benchmark* b) {
  b->ArgNames({"d"})->Unit(benchmark::kMillisecond)->UseRealTime();
  for (const std::int64_t d : kOrders) b->Args({d});
}

// The largest order takes minutes in the dense solvers: only one item is solved, once.
void sizes(benchmark::internal::Benchmark* b) {
  b->ArgNames({"d", "solver", "items", "threads"})->Unit(benchmark::kMillisecond)->UseRealTime();
  for (const std::int64_t d : kOrders) {
    for (const Solver solver :
         {Solver::full, Solver::subset, Solver::tridiagonal, Solver::krylov}) {
      for (const std::int64_t items : {1, 4}) {
        if (d > 2000 && items > 1 && solver != Solver::krylov) continue;
        b->Args({d, static_cast<std::int64_t>(solver), items, 1});
      }
      if (d == 784) b->Args({d, static_cast<std::int64_t>(solver), 9, 2});
    }
  }
}

BENCHMARK(floor_of_pencil<double>)->Apply(floors);
BENCHMARK(pencil<double>)->Apply(sizes);
BENCHMARK(floor_of_pencil<float>)->Apply(floors);
BENCHMARK(pencil<float>)->Apply(sizes);

}  // namespace
}  // namespace eigenfeat::bench

BENCHMARK_MAIN();
