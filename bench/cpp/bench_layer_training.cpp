// Steps of jointly trained layers, in flops of their matrix products, beside one thread's gemm.
#include "eigenfeat/layer_training.hpp"

#include <cmath>
#include <vector>

#include "bench_support.hpp"

namespace eigenfeat::bench {
namespace {

void peak(benchmark::State& state) {
  floor_gemm<float>(state, 1024, 1024, 1024);
}

// Arguments: columns, directions of the only layer, whether rows are shifted, threads.
void steps(benchmark::State& state) {
  const index_t n = 250, d = state.range(0), n_directions = state.range(1), k = 10,
                p = 2 * n_directions;
  const bool shifted = state.range(2) != 0;
  AlignedBuffer<float> x = normal_numbers<float>(n * d, 1),
                       v = normal_numbers<float>(d * n_directions, 2);
  const AlignedBuffer<float> w = normal_numbers<float>(p * k, 3);
  const AlignedBuffer<float> zeros = touched<float>(std::max(p, k));
  const float unit = 1.0F / std::sqrt(static_cast<float>(d));
  for (index_t i = 0; i < d * n_directions; ++i) v[i] *= unit;
  TrainedLayers<float> layers;
  layers.directions.push_back(row_major<const float>(v.data(), d, n_directions));
  layers.offsets.push_back({zeros.data(), n_directions});
  layers.powers.push_back({1});
  layers.rates.push_back({1e-3F, 1e-3F});
  const TrainedLogit<float> logit{row_major<const float>(w.data(), p, k),
                                  {zeros.data(), k},
                                  {zeros.data(), p},
                                  {zeros.data(), p},
                                  0.0F,
                                  false};
  LayerTraining<float> training(layers, logit);
  const std::vector<std::int32_t> labels = random_labels(n, k, 4);
  for (auto _ : state) {
    training.step(row_major<const float>(x.data(), n, d), {labels.data(), n}, {},
                  shifted ? 1.0F : 0.0F, 1.0F, static_cast<int>(state.range(3)));
  }
  // Forward and gradient: 2 products. With shifted rows also backward to the rows, and forward and
  // gradient for the shifted rows: 5 products.
  const double products = 2.0 * static_cast<double>(n) * static_cast<double>(d * n_directions);
  count(state, "flops", products * (shifted ? 5.0 : 2.0));
}

BENCHMARK(peak);
BENCHMARK(steps)
    ->Args({784, 900, 0, 1})
    ->Args({784, 900, 1, 1})
    ->Args({784, 900, 1, 2})
    ->Args({54, 840, 1, 1})
    ->UseRealTime();

}  // namespace
}  // namespace eigenfeat::bench
