#include "eigenfeat/logit.hpp"

#include <string>

#include "base/shape_text.hpp"
#include "eigenfeat/status.hpp"
#include "eigenfeat/vector.hpp"
#include "expansion/feature_groups.hpp"
#include "logit/softmax.hpp"

namespace eigenfeat {
namespace {

void check_labels(VectorView<const std::int32_t> labels, VectorView<const double> weights,
                  index_t n, index_t k) {
  require(labels.size == n, "labels", std::to_string(n) + " entries", std::to_string(labels.size));
  require(weights.empty() || weights.size == n, "weights", std::to_string(n) + " entries",
          std::to_string(weights.size));
  for (index_t i = 0; i < n; ++i) {
    if (labels[i] >= 0 && labels[i] < k) continue;
    refuse("labels", "indices in [0, " + std::to_string(k) + ")",
           std::to_string(labels[i]) + " in row " + std::to_string(i));
  }
}

template <class T>
void check_arguments(const FeatureRows<T>& features, VectorView<const std::int32_t> labels,
                     VectorView<const double> weights, MatrixView<const double> coefficients,
                     MatrixView<double> gradient) {
  features.check();
  const index_t n = features.rows(), p = features.cols(), k = coefficients.cols;
  require(coefficients.rows == p && coefficients.is_row_major() && k >= 1, "coefficients",
          std::to_string(p) + " rows", std::to_string(coefficients.rows));
  require(gradient.rows == p && gradient.cols == k && gradient.is_row_major(), "gradient",
          "the shape of the coefficients, " + shape_text(p, k), shape_text(gradient));
  check_labels(labels, weights, n, k);
}

}  // namespace

template <class T>
LogitTerms logit_gradient(const FeatureRows<T>& features, VectorView<const std::int32_t> labels,
                          VectorView<const double> weights, double energy_weight,
                          MatrixView<const double> coefficients, MatrixView<double> gradient,
                          int n_threads) {
  check_arguments(features, labels, weights, coefficients, gradient);
  const index_t k = coefficients.cols;
  const NarrowLayout<T> layout(features, k);
  const index_t width = layout.width;
  const AlignedBuffer<T> w = layout.laid_out(coefficients);
  const Groups groups = layout.groups(features.rows());
  // One number for each tile, so that the order of summation does not depend on the threads.
  Vector<LogitTerms> terms((features.rows() + groups.tile - 1) / groups.tile);
  sum_over_groups<T>(features, layout, gradient, n_threads,
                     [&](const LoadedTile<T>& tile, TileScratch<T>& scratch, T* g) {
                       scratch.scores.reserve(tile.rows * width);
                       T* z = scratch.scores.data();
                       tile.scores(w.data(), z);
                       terms[tile.begin / groups.tile] = softmax_residuals<T>(
                           row_major(z, tile.rows, k, width), labels.data + tile.begin,
                           weights.empty() ? nullptr : weights.data + tile.begin, energy_weight);
                       tile.products(z, g);
                     });
  LogitTerms total;
  for (const LogitTerms& part : terms) {
    total.loss += part.loss;
    total.energy += part.energy;
  }
  return total;
}

template LogitTerms logit_gradient<float>(const FeatureRows<float>&, VectorView<const std::int32_t>,
                                          VectorView<const double>, double,
                                          MatrixView<const double>, MatrixView<double>, int);
template LogitTerms logit_gradient<double>(const FeatureRows<double>&,
                                           VectorView<const std::int32_t>, VectorView<const double>,
                                           double, MatrixView<const double>, MatrixView<double>,
                                           int);

}  // namespace eigenfeat
