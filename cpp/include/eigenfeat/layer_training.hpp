// Layers of directions and the logit above them, improved together by gradient steps.
//
//   h_0 = x,  p_l = h_(l-1) V_l + o_l,  h_l = (sqrt(1 + max(0, s p_l)) - 1)^a     for l = 1..L
//   z = W^T f + b,  f = h_L or [h_(L-1), h_L]
//   objective: sum_i w_i (loss(x_i) + loss(x_i + r_i)) / n,  loss = -log softmax(z)_y
//   r_i = shift g_i / |g_i|,  g_i = d loss(x_i) / d x_i
//
// s is + and -, a the powers of a layer, in the order of expansion.hpp. r_i
// is the shift of that length that raises the loss most, to first order (Goodfellow, Shlens and
// Szegedy 2015); it is held fixed in the gradient. Without a shift the objective is the first term.
//
// A step takes some rows and goes down their gradient by Adam (Kingma and Ba 2015, Algorithm 1, with
// decays of 0.9 and 0.999). Each array's step is its rate times `rate`; W's rows have a rate each, and
// W's gradient is taken with the features' centre m subtracted, as if z were W^T (f - m) + c.
//
// Cost of a step of B rows: for the first layer 10 B d F flops with a shift and 4 without, for others
// 12 and 6, in gemm, by tiles of fixed size; 24 bytes of traffic a parameter for Adam. Memory: three arrays of the
// parameters' size, a tile of a gradient (512 x 1024) for each thread, and 2 B rows of all p_l, h_l and
// their gradients. T is the type of everything.
// Every thread count gives the same bits. Errors: std::invalid_argument naming what does not fit.
#pragma once

#include <cstdint>
#include <memory>
#include <utility>

#include "eigenfeat/expansion.hpp"
#include "eigenfeat/vector.hpp"
#include "eigenfeat/view.hpp"

namespace eigenfeat {

// The layers to begin with, one entry of each list for a layer; arrays are copied.
template <class T>
struct TrainedLayers {
  Vector<MatrixView<const T>> directions;  // (d, F) row-major
  Vector<VectorView<const T>> offsets;     // (F,)
  Vector<Vector<int>> powers;
  Vector<std::pair<T, T>> rates;  // of directions and of the offset
};

// The logit to begin with; copied.
template <class T>
struct TrainedLogit {
  MatrixView<const T> weights;    // (p, k) row-major
  VectorView<const T> intercept;  // (k,)
  VectorView<const T> centre;     // (p,)
  VectorView<const T> rates;      // (p,)
  T intercept_rate = T(0);
  bool includes_input = false;  // whether f begins with the input of the last layer
};

// Sums of a step's rows, weighted and over their number, before the step.
struct TrainingLosses {
  double loss = 0.0;
  double shifted = 0.0;  // of the shifted rows; 0 without a shift
};

// out <- (rows - centre) / scale, all of (d,) columns, computed in float64; 0 where scale is infinite.
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

  // rows: row-major (B, d), finite; labels in [0, k); row_weights: nonnegative, of mean 1 over all rows
  // of a data set, or empty (all ones); shift >= 0 and finite; rate >= 0.
  TrainingLosses step(MatrixView<const T> rows, VectorView<const std::int32_t> labels,
                      VectorView<const T> row_weights, T shift, T rate, int n_threads);

  // What the arrays are now; out as in TrainedLayers and TrainedLogit.
  void layer(index_t number, MatrixView<T> directions, VectorView<T> offset) const;
  void logit(MatrixView<T> weights, VectorView<T> intercept) const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace eigenfeat
