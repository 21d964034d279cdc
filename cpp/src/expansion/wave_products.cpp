#include "expansion/wave_products.hpp"

#include <algorithm>

#include "eigenfeat/vector.hpp"

namespace eigenfeat {
namespace {
constexpr index_t kMaxColumns = 64;
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
  const index_t rows = projections.rows, n = projections.cols, unit = wave_unit<T>();
  for (index_t r = 0; r < rows; ++r) {
    const T* from = projections.row(r);
    for (index_t first = 0; first < n; first += unit) {
      T* to = packed + (first / unit * rows + r) * unit;
      const index_t count = std::min(unit, n - first);
      std::copy(from + first, from + first + count, to);
      std::fill(to + count, to + unit, T(0));
    }
  }
}

template bool has_wave_products<float>(const FeatureRows<float>&, index_t);
template bool has_wave_products<double>(const FeatureRows<double>&, index_t);
template void pack_projections<float>(MatrixView<const float>, float*);
template void pack_projections<double>(MatrixView<const double>, double*);

}  // namespace eigenfeat
