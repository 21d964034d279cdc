// Envelopes of the multiclass hinge, as rows are moved by an SVM. "items" counts rows.
#include "eigenfeat/hinge_envelope.hpp"

#include <cmath>
#include <vector>

#include "bench_support.hpp"

namespace eigenfeat::bench {
namespace {

// Scores and Gram matrix of a random model of k classes in d columns.
struct Model {
  Model(index_t n, index_t d, index_t k)
      : w(normal_numbers<double>(k * d, 1)),
        x(normal_numbers<double>(n * d, 2)),
        scores(touched<double>(n * k)),
        gram(touched<double>(k * k)),
        labels(static_cast<std::size_t>(n)),
        costs(static_cast<std::size_t>(n), 0.1) {
    const double unit = 1.0 / std::sqrt(static_cast<double>(d));
    for (index_t i = 0; i < k * d; ++i) w[i] *= unit;
    multiply(x.data(), n, w.data(), k, d, scores.data());
    multiply(w.data(), k, w.data(), k, d, gram.data());
    for (index_t i = 0; i < n; ++i) {
      labels[static_cast<std::size_t>(i)] = static_cast<std::int32_t>(i % k);
    }
  }
  static void multiply(const double* a, index_t n, const double* b, index_t k, index_t d,
                       double* out) {
    for (index_t i = 0; i < n; ++i) {
      for (index_t c = 0; c < k; ++c) {
        double sum = 0.0;
        for (index_t j = 0; j < d; ++j) sum += a[i * d + j] * b[c * d + j];
        out[i * k + c] = sum;
      }
    }
  }
  AlignedBuffer<double> w, x, scores, gram;
  std::vector<std::int32_t> labels;
  std::vector<double> costs;
};

// Arguments: rows, d, classes, the variance in hundredths, threads. Each call starts from zero.
void envelopes(benchmark::State& state) {
  const index_t n = state.range(0), d = state.range(1), k = state.range(2);
  const auto size = static_cast<std::size_t>(n);
  const Model model(n, d, k);
  const HingeRows rows{row_major<const double>(model.scores.data(), n, k),
                       row_major<const double>(model.gram.data(), k, k),
                       {model.labels.data(), n},
                       {model.costs.data(), n},
                       1.0,
                       0.01 * static_cast<double>(state.range(3))};
  AlignedBuffer<double> a = touched<double>(n * k);
  std::vector<double> values(size), gaps(size);
  for (auto _ : state) {
    std::fill(a.data(), a.data() + n * k, 0.0);
    hinge_envelope(rows, {}, row_major(a.data(), n, k), {values.data(), n}, {gaps.data(), n},
                   static_cast<int>(state.range(4)));
    benchmark::ClobberMemory();
  }
  count(state, "items", static_cast<double>(n));
}

BENCHMARK(envelopes)
    ->Args({10000, 50, 10, 100, 1})
    ->Args({10000, 50, 10, 100, 2})
    ->Args({10000, 50, 26, 100, 1})
    ->Args({10000, 50, 10, 1, 1})
    ->UseRealTime();

}  // namespace
}  // namespace eigenfeat::bench
