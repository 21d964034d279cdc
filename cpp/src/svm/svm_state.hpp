// Private to the multiclass SVM: the problem, its duals, and operations of both solvers.
#pragma once

#include <cstdint>

#include "base/random_order.hpp"
#include "eigenfeat/crammer_singer.hpp"
#include "eigenfeat/scratch.hpp"
#include "eigenfeat/vector.hpp"
#include "svm/simplex.hpp"
#include "svm/svm_rows.hpp"

namespace eigenfeat {

// State of a row at given scores. A vertex is a b_i with a single positive entry.
struct RowReport {
  double gap = 0.0;
  double violation = 0.0;  // largest g minus the smallest g with b > 0
  double slack = 0.0;      // at an optimal vertex: lead of its class over the next class
};

template <class T>
struct CrammerSinger<T>::State {
  State(SvmRows<T> read, const SvmProblem& given, const SvmOptions& chosen);

  // Scores of row i become g_i: the margin is subtracted from the score of the row's label, and the
  // padding is -infinity. Returns the largest entry.
  T margins(index_t i, T* scores) const;
  RowReport report(index_t i, const T* g, T greatest) const;
  // Maximises the dual over b_i, and sets delta for the change W += x_i delta^T.
  void exact_step(index_t i, const T* g);
  void move(index_t i);  // W += x_i delta^T, for the classes in changed

  void full_pass(int n_threads);
  void sum_weights(int n_threads);
  void objective_of_duals();
  void sweeps(double tolerance);
  double sweep(double negligible, double wide);
  void batches(int n_threads);
  double batch_scores(const Vector<index_t>& order, index_t begin, index_t end, int n_threads);
  double toward_corner(index_t i, index_t corner);
  void mix(index_t i, index_t corner, double step);
  void single_step(index_t i, index_t corner, double row_gap);
  void batch_step(const Vector<index_t>& order, index_t begin, index_t end, double gap);

  double* row(index_t i) { return b.data() + i * k; }
  const double* row(index_t i) const { return b.data() + i * k; }

  SvmRows<T> rows;
  VectorView<const std::int32_t> labels;
  VectorView<const double> costs;
  index_t n, p, k, width;
  double margin;
  SvmOptions options;
  RandomOrder random;

  AlignedBuffer<double> b;                                   // (n, k): C_i e_{y_i} - a_i
  Vector<std::uint8_t> moved;                                // rows with a_i != 0
  AlignedBuffer<double> exact;                               // W, summed in the last full pass
  AlignedBuffer<T> w;                                        // W, changed by steps
  AlignedBuffer<T> by_class;                                 // W sorted by class, for a pass
  AlignedBuffer<T> mask;                                     // 0; -infinity in the padding
  double primal = 0.0, dual = 0.0, gap = 0.0, energy = 0.0;  // energy: |W|^2
  bool passed = false;  // whether there was a full pass since the caller's last change
  Vector<float> slack;  // slack of each row in the last full pass; negative for a violation
  Vector<index_t> active;

  // Scratch for steps.
  SimplexProjection project;
  Vector<double> z, fresh;
  Vector<index_t> changed;
  AlignedBuffer<T> delta, scores;
  // Scratch for batches.
  Vector<index_t> corners;
  Vector<double> gaps;
  AlignedBuffer<T> direction;
};

}  // namespace eigenfeat
