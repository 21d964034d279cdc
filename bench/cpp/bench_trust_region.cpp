// Minima and certified signs of quadratics over balls. "items" counts quadratics.
#include "eigenfeat/trust_region.hpp"

#include <vector>

#include "bench_support.hpp"

namespace eigenfeat::bench {
namespace {

struct Quadratics {
  Quadratics(index_t n, index_t d, bool is_dense)
      : a(normal_numbers<double>(is_dense ? n * d * d : n * d, 1)),
        g(normal_numbers<double>(n * d, 2)),
        radii(static_cast<std::size_t>(n), 1.0) {
    problem.dense = is_dense;
    problem.curvatures = row_major<const double>(a.data(), is_dense ? n * d : n, d);
    problem.slopes = row_major<const double>(g.data(), n, d);
    problem.radii = {radii.data(), n};
    for (index_t i = 0; is_dense && i < n; ++i) {
      double* one = a.data() + i * d * d;
      for (index_t j = 0; j < d; ++j) {
        for (index_t k = 0; k < j; ++k) one[j * d + k] = one[k * d + j];
      }
    }
  }
  AlignedBuffer<double> a, g;
  std::vector<double> radii;
  BallProblem problem;
};

// Arguments: items, d, threads.
void minima(benchmark::State& state, bool dense) {
  const index_t n = state.range(0), d = state.range(1);
  const auto size = static_cast<std::size_t>(n);
  const Quadratics quadratics(n, d, dense);
  AlignedBuffer<double> x = touched<double>(n * d);
  std::vector<double> values(size), multipliers(size), gaps(size), residuals(size);
  std::vector<int> hard(size), iterations(size), status(size);
  const BallMinima out{{values.data(), n},     row_major(x.data(), n, d), {multipliers.data(), n},
                       {gaps.data(), n},       {residuals.data(), n},     {hard.data(), n},
                       {iterations.data(), n}, {status.data(), n}};
  for (auto _ : state) {
    minimise_over_ball(quadratics.problem, out, static_cast<int>(state.range(2)));
    benchmark::ClobberMemory();
  }
  count(state, "items", static_cast<double>(n));
}

// Arguments: items, d, the constant in tenths.
void signs(benchmark::State& state) {
  const index_t n = state.range(0), d = state.range(1);
  const auto size = static_cast<std::size_t>(n);
  const Quadratics quadratics(n, d, false);
  const std::vector<double> constants(size, 0.1 * static_cast<double>(state.range(2)));
  std::vector<double> lower(size), upper(size);
  std::vector<int> verdicts(size), passes(size);
  for (auto _ : state) {
    certify_over_ball(
        quadratics.problem, {constants.data(), n},
        {{verdicts.data(), n}, {lower.data(), n}, {upper.data(), n}, {passes.data(), n}}, 1);
    benchmark::ClobberMemory();
  }
  count(state, "items", static_cast<double>(n));
}

BENCHMARK_CAPTURE(minima, dense, true)->Args({200, 100, 1})->Args({200, 100, 2})->UseRealTime();
BENCHMARK_CAPTURE(minima, diagonal, false)->Args({10000, 26, 1})->Args({100, 1024, 1});
BENCHMARK(signs)->Args({10000, 26, 50})->Args({10000, 26, 90})->Args({100, 1024, 500});

}  // namespace
}  // namespace eigenfeat::bench
