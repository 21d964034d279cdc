// The fused logit pass beside two plain gemms on features in memory, and the machine's sgemm; the
// metric beside one ssyrk. "flops" counts 4 n p k for a pass, n p^2 + p^3 / 3 for a metric.
#include <algorithm>
#include <cmath>
#include <memory>

#include "bench_support.hpp"
#include "eigenfeat/logit.hpp"

namespace eigenfeat::bench {
namespace {

// Gradients at weights that are not 0, so that no exponential is trivial.
template <class T>
void run_pass(benchmark::State& state, const FeatureRows<T>& rows, index_t k, int n_threads) {
  const index_t n = rows.rows(), p = rows.cols();
  const auto labels = random_labels(n, k, 3);
  AlignedBuffer<double> w = normal_numbers<double>(p * k, 4), g = touched<double>(p * k);
  for (index_t i = 0; i < p * k; ++i) w[i] *= 0.01;
  for (auto _ : state) {
    benchmark::DoNotOptimize(logit_gradient<T>(rows, {labels.data(), n}, {}, 0.05,
                                               row_major<const double>(w.data(), p, k),
                                               row_major(g.data(), p, k), n_threads));
    benchmark::ClobberMemory();
  }
  count(state, "flops",
        4.0 * static_cast<double>(n) * static_cast<double>(p) * static_cast<double>(k));
}

// Arguments: n, p, k, threads.
template <class T>
void pass_dense(benchmark::State& state) {
  const index_t n = state.range(0), p = state.range(1);
  const AlignedBuffer<T> x = normal_numbers<T>(n * p, 1);
  FeatureRows<T> rows;
  rows.dense = row_major<const T>(x.data(), n, p);
  rows.constant = true;
  run_pass(state, rows, state.range(2), static_cast<int>(state.range(3)));
}

// Arguments: n, directions (six features each), k, threads; projections are stored.
template <class T>
void pass_half_waves(benchmark::State& state) {
  const index_t n = state.range(0), n_directions = state.range(1);
  const AlignedBuffer<T> projections = normal_numbers<T>(n * n_directions, 1);
  FeatureRows<T> rows;
  rows.projections = row_major<const T>(projections.data(), n, n_directions);
  rows.expanded = true;
  run_pass(state, rows, state.range(2), static_cast<int>(state.range(3)));
}

// As above, with 784 inputs projected in every pass.
template <class T>
void pass_projected(benchmark::State& state) {
  const index_t n = state.range(0), n_directions = state.range(1), d = 784;
  const AlignedBuffer<T> x = normal_numbers<T>(n * d, 1),
                         v = normal_numbers<T>(d * n_directions, 2);
  FeatureRows<T> rows;
  rows.dense = row_major<const T>(x.data(), n, d);
  rows.directions = row_major<const T>(v.data(), d, n_directions);
  rows.expanded = true;
  run_pass(state, rows, state.range(2), static_cast<int>(state.range(3)));
}

// Arguments: n, p, k, threads; one entry in ten.
template <class T>
void pass_sparse(benchmark::State& state) {
  const auto x = sparse_rows<T>(state.range(0), state.range(1), 0.1, 1);
  FeatureRows<T> rows;
  rows.sparse = x.view();
  run_pass(state, rows, state.range(2), static_cast<int>(state.range(3)));
}

// The pass without fusion: all features in memory (n, p), two gemms with (p, k), a softmax between.
// Arguments: n, p, k; one thread.
template <class T>
void plain_gemms(benchmark::State& state) {
  const index_t n = state.range(0), p = state.range(1), k = state.range(2);
  const AlignedBuffer<T> x = normal_numbers<T>(n * p, 1);
  AlignedBuffer<T> w = normal_numbers<T>(p * k, 2), z = touched<T>(n * k), g = touched<T>(p * k);
  for (index_t i = 0; i < p * k; ++i) w[i] *= T(0.01);
  const MatrixView<const T> features = column_major<const T>(x.data(), p, n);
  for (auto _ : state) {
    gemm<T>(Op::none, Op::none, T(1), column_major<const T>(w.data(), k, p), features, T(0),
            column_major(z.data(), k, n));
    for (index_t i = 0; i < n; ++i) {
      T* row = z.data() + i * k;
      const T top = *std::max_element(row, row + k);
      T sum = 0;
      for (index_t c = 0; c < k; ++c) sum += row[c] = std::exp(row[c] - top);
      for (index_t c = 0; c < k; ++c) row[c] /= sum;
      row[i % k] -= T(1);
    }
    gemm<T>(Op::none, Op::transpose, T(1), column_major<const T>(z.data(), k, n), features, T(0),
            column_major(g.data(), k, p));
    benchmark::ClobberMemory();
  }
  count(state, "flops",
        4.0 * static_cast<double>(n) * static_cast<double>(p) * static_cast<double>(k));
}

template <class T>
void peak(benchmark::State& state) {
  floor_gemm<T>(state, 1024, 1024, 1024);
}

void floor_of_gram(benchmark::State& state) {
  floor_syrk<float>(state, state.range(0), state.range(1));
}

std::unique_ptr<Metric> metric_of(const AlignedBuffer<float>& x, index_t n, index_t p,
                                  Metric::Products products, int n_threads) {
  FeatureRows<float> rows;
  rows.dense = row_major<const float>(x.data(), n, p);
  AlignedBuffer<double> scale(p), diagonal(p);
  std::fill(scale.data(), scale.data() + p, 1.0);
  std::fill(diagonal.data(), diagonal.data() + p, std::sqrt(static_cast<double>(n)));
  return Metric::make<float>(rows, {}, {scale.data(), p}, {diagonal.data(), p}, 0.5, products,
                             n_threads);
}

// Arguments: n, p, threads.
void metric_make(benchmark::State& state, Metric::Products products) {
  const index_t n = state.range(0), p = state.range(1);
  const AlignedBuffer<float> x = normal_numbers<float>(n * p, 1);
  for (auto _ : state)
    benchmark::DoNotOptimize(metric_of(x, n, p, products, static_cast<int>(state.range(2))));
  const double order = static_cast<double>(p);
  count(state, "flops", order * order * (static_cast<double>(n) + order / 3.0));
}

// Arguments: p, k, threads.
void metric_solve(benchmark::State& state) {
  const index_t p = state.range(0), k = state.range(1), n = 256;
  const AlignedBuffer<float> x = normal_numbers<float>(n * p, 1);
  const auto metric = metric_of(x, n, p, Metric::Products::single, 0);
  const AlignedBuffer<double> b = normal_numbers<double>(p * k, 2);
  AlignedBuffer<double> out = touched<double>(p * k);
  for (auto _ : state) {
    metric->solve(row_major<const double>(b.data(), p, k), row_major(out.data(), p, k),
                  static_cast<int>(state.range(2)));
    benchmark::ClobberMemory();
  }
  const double order = static_cast<double>(p);
  count(state, "flops", 2.0 * order * order * static_cast<double>(k));
  count(state, "bytes", 4.0 * order * order);  // the factor, read twice
}

using Benchmark = benchmark::internal::Benchmark;

void with_units(Benchmark* b) {
  b->Unit(benchmark::kMillisecond)->UseRealTime();
}

void dense_shapes(Benchmark* b) {
  with_units(b);
  b->ArgNames({"n", "p", "k", "threads"});
  b->Args({6000, 1000, 10, 1})->Args({6000, 1000, 10, 2})->Args({6000, 1000, 100, 1});
}

// 1,822 directions are the 10,932 features of GEM on MNIST.
void wave_shapes(Benchmark* b) {
  with_units(b);
  b->ArgNames({"n", "directions", "k", "threads"});
  b->Args({4096, 1822, 10, 1})->Args({4096, 1822, 10, 2});
}

void plain_shapes(Benchmark* b) {
  with_units(b);
  b->ArgNames({"n", "p", "k"})->Args({6000, 1000, 10})->Args({4096, 10932, 10});
}

void gram_shapes(Benchmark* b) {
  with_units(b);
  b->ArgNames({"n", "p"})->Args({4096, 2048});
}

void metric_shapes(Benchmark* b) {
  with_units(b);
  b->ArgNames({"n", "p", "threads"})->Args({4096, 2048, 1})->Args({4096, 2048, 2});
}

void solve_shapes(Benchmark* b) {
  with_units(b);
  b->ArgNames({"p", "k", "threads"})->Args({1000, 10, 1})->Args({4096, 10, 1});
  b->Args({4096, 10, 2});
}

BENCHMARK(peak<float>)->Apply(with_units);
BENCHMARK(pass_dense<float>)->Apply(dense_shapes);
BENCHMARK(pass_half_waves<float>)->Apply(wave_shapes);
BENCHMARK(pass_projected<float>)->Apply(wave_shapes);
BENCHMARK(pass_sparse<float>)->Apply(dense_shapes);
BENCHMARK(plain_gemms<float>)->Apply(plain_shapes);
BENCHMARK(peak<double>)->Apply(with_units);
BENCHMARK(pass_dense<double>)->Apply(dense_shapes);
BENCHMARK(plain_gemms<double>)->Apply(plain_shapes);
BENCHMARK(floor_of_gram)->Apply(gram_shapes);
BENCHMARK_CAPTURE(metric_make, single, Metric::Products::single)->Apply(metric_shapes);
BENCHMARK_CAPTURE(metric_make, coarse, Metric::Products::coarse)->Apply(metric_shapes);
BENCHMARK(metric_solve)->Apply(solve_shapes);

}  // namespace
}  // namespace eigenfeat::bench

BENCHMARK_MAIN();
