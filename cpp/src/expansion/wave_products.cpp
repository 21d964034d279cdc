#include "expansion/wave_products.hpp"

#include "eigenfeat/vector.hpp"

namespace eigenfeat {
namespace {
constexpr index_t kMaxColumns = 64;  // wider matrices are multiplied by gemm
}

template <class T>
bool has_wave_products(const FeatureRows<T>& features, index_t k) {
  const Expansion& expansion = features.expansion;
  const bool waves = expansion.wave == Wave::half_wave || expansion.wave == Wave::shifted;
  const index_t directions =
      features.projections.data != nullptr ? features.projections.cols : features.directions.cols;
  return features.expanded && waves && !expansion.include_input &&
         expansion.powers == Vector<int>{1, 2, 3} && directions >= wave_unit<T>() &&
         k <= kMaxColumns;
}

template <class T>
void pack_projections(MatrixView<const T> projections, T* packed) {
  const index_t rows = projections.rows;
  for (index_t r = 0; r < rows; ++r)
    kernels<WaveProductKernels<T>>().pack(projections.row(r), projections.cols, rows,
                                          packed + r * wave_unit<T>());
}

template bool has_wave_products<float>(const FeatureRows<float>&, index_t);
template bool has_wave_products<double>(const FeatureRows<double>&, index_t);
template void pack_projections<float>(MatrixView<const float>, float*);
template void pack_projections<double>(MatrixView<const double>, double*);

}  // namespace eigenfeat
