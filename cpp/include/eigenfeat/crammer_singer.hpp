// Dual solvers of the multiclass support vector machine of Crammer and Singer (2002).
//
//   primal  P(W) = 1/2 |W|^2 + sum_i C_i max_y (margin [y != y_i] + (w_y - w_{y_i})^T x_i)
//   dual    D(a) = margin sum_i a_i^{y_i} - 1/2 |W(a)|^2,   W(a) = sum_i x_i a_i^T
//           a_i = C_i e_{y_i} - b_i,   b_i >= 0,   sum_y b_i^y = C_i
//
// W is (p, k); the rows of a sum to 0. For every feasible a, P(W(a)) - D(a) >= P(W(a)) - min P. The
// difference
//
//   P - D = sum_i gap_i,   gap_i = C_i max_y g_i^y - sum_y b_i^y g_i^y >= 0,
//           g_i^y = margin [y != y_i] + w_y^T x_i
//
// is the error bound that is reported. A constant feature is penalised like all other features.
//
// sequential (Keerthi et al. 2008): one row at a time, D is maximised exactly over b_i, which is the
//   projection of b_i + g_i / |x_i|^2 on the simplex of size C_i (by sorting). An epoch consists of
//   sweeps and a full pass. Sweeps visit, in random orders, the rows that violated their optimality
//   conditions in the last full pass, until their violation is a small part of the gap. The full pass
//   computes P and D, and finds the violating rows again. Rows with a negligible gap, and rows at a
//   vertex that is optimal by a wide margin, leave the sweeps until the next full pass.
// frank_wolfe (Lacoste-Julien et al. 2013, in minibatches): for a batch of rows, s_i = C_i e_y for
//   the largest g_i^y, and b moves towards s by the exact step min(1, sum gap_i / |dW|^2). An epoch visits
//   every row once, in a random order, and makes a full pass.
//
// Shapes: rows (n, d) dense row-major or CSR; dense rows that are mostly zero are copied in
// compressed form. W has the type of the rows, float32 or float64. Duals are double, and every full
// pass sums W anew from the duals in double, so that float32 certifies gaps down to about 1e-6 P.
// Errors: std::invalid_argument that names the argument.
// Threads: full passes, compression and large batches of frank_wolfe run in parallel. Sweeps run on
// one thread, because each step needs the previous one. Tiles depend on sizes alone and are merged in
// order: results are bit-for-bit identical for any number of threads.
// Cost: 2 q k flops for the scores of a row with q entries, and 2 q k for a step that changes all k
// classes. Memory: 8 n k bytes for duals, 20 p k bytes for weights, and the sums of a full pass, 8
// p k bytes for each group of rows, at most 64 MB unless p k alone needs more.
#pragma once

#include <cstdint>
#include <memory>

#include "eigenfeat/view.hpp"

namespace eigenfeat {

enum class DualSolver { sequential, frank_wolfe };

struct SvmProblem {
  VectorView<const std::int32_t> labels;  // n indices in [0, k)
  VectorView<const double> costs;         // C_i: n positive numbers
  index_t n_classes = 0;                  // k >= 2
  double margin = 1.0;                    // > 0
  double constant = 0.0;                  // value of a last feature; 0: no such feature
};

struct SvmOptions {
  DualSolver solver = DualSolver::sequential;
  index_t batch = 16;  // rows of a step of frank_wolfe
  std::uint64_t seed = 0;
};

// Rows, labels and costs must outlive the solver.
template <class T>
class CrammerSinger {
 public:
  CrammerSinger(MatrixView<const T> rows, const SvmProblem& problem, const SvmOptions& options,
                int n_threads);
  CrammerSinger(const CsrView<T>& rows, const SvmProblem& problem, const SvmOptions& options,
                int n_threads);
  CrammerSinger(CrammerSinger&&) noexcept;
  ~CrammerSinger();

  // Starts from duals a (n, k). Infeasible b_i are projected on their simplex.
  void start(MatrixView<const double> duals, int n_threads);

  // Runs epochs until gap() <= tolerance * primal(), or the given number. Returns the number of
  // epochs.
  index_t run(index_t epochs, double tolerance, int n_threads);

  double primal() const;
  double dual() const;
  double gap() const;
  index_t support() const;                     // rows with a_i != 0
  index_t features() const;                    // p
  void weights(MatrixView<double> out) const;  // (k, p)
  void duals(MatrixView<double> out) const;    // a (n, k)

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace eigenfeat
