#include "eigenfeat/box.hpp"

#include <cmath>
#include <string>

#include "base/shape_text.hpp"
#include "eigenfeat/parallel.hpp"
#include "eigenfeat/status.hpp"
#include "kernels/region_kernels.hpp"

namespace eigenfeat {
namespace {

// How far a coordinate goes from the centre.
double reach(double a, double g, double w) {
  const double vertex = std::fabs(g) / a;
  return a > 0.0 && vertex < w ? vertex : w;
}

}  // namespace

double box_fall(const double* curvatures, const double* slopes, const double* half_widths,
                double stretch, index_t n) {
  return kernels<RegionKernels>().box_fall(curvatures, slopes, half_widths, stretch, n);
}

void minimise_over_box(MatrixView<const double> curvatures, MatrixView<const double> slopes,
                       MatrixView<const double> half_widths, VectorView<double> values,
                       MatrixView<double> minimisers, int n_threads) {
  const index_t n = slopes.rows, d = slopes.cols;
  const auto require_fit = [&](MatrixView<const double> m, const char* name) {
    require(m.rows == n && m.cols == d && m.is_row_major(), name,
            "the shape of the slopes, " + shape_text(n, d), shape_text(m));
  };
  require_fit(curvatures, "curvatures");
  require_fit(half_widths, "half_widths");
  require(values.size == n, "values", std::to_string(n) + " entries", std::to_string(values.size));
  require_fit(minimisers, "minimisers");
  constexpr index_t kItems = 64;
  const double work = 10.0 * static_cast<double>(n) * static_cast<double>(d);
  for_ranges(n, kItems, threads_for(work, n_threads), [&](index_t begin, index_t end, int) {
    for (index_t i = begin; i < end; ++i) {
      const double *a = curvatures.row(i), *g = slopes.row(i), *w = half_widths.row(i);
      values[i] = 0.0 - box_fall(a, g, w, 1.0, d);
      for (index_t j = 0; j < d; ++j) {
        const double t = reach(a[j], g[j], w[j]);
        minimisers(i, j) = g[j] > 0.0 ? -t : t;
      }
    }
  });
}

}  // namespace eigenfeat
