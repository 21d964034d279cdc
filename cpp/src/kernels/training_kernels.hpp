// Private to the training of layers: slopes of half waves, and Adam's step.
#pragma once

#include "kernels/family.hpp"

namespace eigenfeat {

// Constants of a step of Adam, common to all entries of an array.
template <class T>
struct AdamStep {
  T rate;           // learning rate times 1 / (1 - 0.9^t)
  T square_factor;  // 1 / (1 - 0.999^t)
};

template <class T>
struct TrainingKernels {
  // slopes[f] = sum over signs and powers of gradients[sign * n_powers * n + k * n + f] times the
  // derivative of that shifted wave at p[f]; 0 at p = 0.
  void (*wave_slopes)(const int* powers, index_t n_powers, const T* p, const T* gradients,
                      index_t n, T* slopes);
  // Updates means, squares and values by a step along the negative gradient.
  void (*adam)(const AdamStep<T>& step, const T* gradient, index_t n, T* means, T* squares,
               T* values);
};
EIGENFEAT_FAMILY(TrainingKernels<float>);
EIGENFEAT_FAMILY(TrainingKernels<double>);

}  // namespace eigenfeat
