// Private to the core: half waves of one row of projections.
#pragma once

#include "eigenfeat/expansion.hpp"
#include "kernels/family.hpp"

namespace eigenfeat {

template <class T>
struct WaveKernels {
  // out[sign * n_powers * n + k * n + f] = wave of (+p, -p)[sign] at powers[k], for n projections p;
  // polynomial has one sign. Not for Wave::none.
  void (*expand_row)(Wave wave, const int* powers, index_t n_powers, const T* p, index_t n, T* out);
};
EIGENFEAT_FAMILY(WaveKernels<float>);
EIGENFEAT_FAMILY(WaveKernels<double>);

}  // namespace eigenfeat
