// Joint training of layers of directions and of the logit on their features, by gradient steps.
//
//   h_0 = x,  p_l = h_(l-1) V_l + o_l,  h_l = (sqrt(1 + max(0, s p_l)) - 1)^a     for l = 1..L
//   z = W^T f + b,  f = h_L or [h_(L-1), h_L]
//   objective: sum_i w_i (loss(x_i) + loss(x_i + r_i)) / n,  loss = -log softmax(z)_y
//   r_i = shift g_i / |g_i|,  g_i = d loss(x_i) / d x_i
//
// s is + and -, a are the powers of a layer, in the order of expansion.hpp. To first order, r_i is
// the shift of length `shift` that increases the loss most (Goodfellow, Shlens and Szegedy 2015); the
// gradient treats it as constant. If shift is 0, the objective has the first term alone.
//
// A step changes the parameters by Adam (Kingma and Ba 2015, Algorithm 1, decays 0.9 and 0.999)
// along the gradient of a batch of rows. The learning rate of an array is its own rate times
// `rate`; each row of W has its own rate. The gradient of W is computed with the centre m of the
// features subtracted, as if z were W^T (f - m) + c.
//
// Cost of a step of B rows, in gemm by tiles of fixed size: 10 B d F flops with a shift and 4 B d F
// without one for the first layer, 12 B d F and 6 B d F for later layers; 24 bytes of traffic for
// each parameter in Adam. Memory: three arrays of the size of the parameters, a tile of a gradient
// (512 x 1024) for each thread, and 2 B rows of all p_l, h_l and their gradients. T is the type of
// all numbers. Results are bit-for-bit identical for any number of threads. Errors:
// std::invalid_argument that names the argument.
#pragma once

#include <cstdint>
#include <memory>
#include <utility>

#include "eigenfeat/expansion.hpp"
#include "eigenfeat/vector.hpp"
#include "eigenfeat/view.hpp"

namespace eigenfeat {

// The layers before training; each list has one entry for each layer. Arrays are copied.
template <class T>
struct TrainedLayers {
  Vector<MatrixView<const T>> directions;  // (d, F) row-major
  Vector<VectorView<const T>> offsets;     // (F,)
  Vector<Vector<int>> powers;
  Vector<std::pair<T, T>> rates;  // learning rates of the directions and of the offset
};

// The logit before training. Arrays are copied.
template <class T>
struct TrainedLogit {
  MatrixView<const T> weights;    // (p, k) row-major
  VectorView<const T> intercept;  // (k,)
  VectorView<const T> centre;     // (p,)
  VectorView<const T> rates;      // (p,): learning rates of the rows of the weights
  T intercept_rate = T(0);
  bool includes_input = false;  // whether f begins with the input of the last layer
};

// Weighted mean losses of the rows of a step, before the step.
struct TrainingLosses {
  double loss = 0.0;
  double shifted = 0.0;  // of the shifted rows; 0 without a shift
};

// out (n, d) <- (rows - centre) / scale with centre and scale (d,), in float64; 0 if scale is
// infinite.
template <class T>
void standardise(MatrixView<const T> rows, VectorView<const double> centre,
                 VectorView<const double> scale, MatrixView<float> out, int n_threads);

template <class T>
class LayerTraining {
 public:
  LayerTraining(const TrainedLayers<T>& layers, const TrainedLogit<T>& logit);
  ~LayerTraining();
  LayerTraining(const LayerTraining&) = delete;
  LayerTraining& operator=(const LayerTraining&) = delete;

  // rows: row-major (B, d), finite; labels in [0, k); row_weights: nonnegative, of mean 1 over all
  // rows of a data set, or empty (all ones); shift >= 0 and finite; rate >= 0.
  TrainingLosses step(MatrixView<const T> rows, VectorView<const std::int32_t> labels,
                      VectorView<const T> row_weights, T shift, T rate, int n_threads);

  // The current arrays; outputs have the shapes of TrainedLayers and TrainedLogit.
  void layer(index_t number, MatrixView<T> directions, VectorView<T> offset) const;
  void logit(MatrixView<T> weights, VectorView<T> intercept) const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace eigenfeat
