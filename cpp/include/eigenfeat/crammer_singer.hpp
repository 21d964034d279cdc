// Dual solvers of the multiclass support vector machine of Crammer and Singer (2002).
//
//   primal  P(W) = 1/2 |W|^2 + sum_i C_i max_y (margin [y != y_i] + (w_y - w_{y_i})^T x_i)
//   dual    D(a) = margin sum_i a_i^{y_i} - 1/2 |W(a)|^2,   W(a) = sum_i x_i a_i^T
//           a_i = C_i e_{y_i} - b_i,   b_i >= 0,   sum_y b_i^y = C_i
//
// W is (p, k); the rows of a sum to 0. Everything that W(a) attains obeys P - D >= P - min P, and
//
//   P - D = sum_i gap_i,   gap_i = C_i max_y g_i^y - sum_y b_i^y g_i^y >= 0,
//           g_i^y = margin [y != y_i] + w_y^T x_i
//
// is the bound on the error that is reported. A constant feature is penalised like the others.
//
// sequential (Keerthi et al. 2008): one row at a time, D is maximised exactly over b_i, which is the
//   projection of b_i + g_i / |x_i|^2 on the simplex of size C_i (by sorting). An epoch is a full
//   pass, which finds P, D and the rows that violate their optimality conditions, after sweeps over
//   these rows alone in random orders: until the violation that they show has become a small part
//   of the gap. Rows whose own gap is negligible, and those at a vertex that is optimal by a wide
//   margin, drop out of the sweeps until the next full pass.
// frank_wolfe (Lacoste-Julien et al. 2013, in minibatches): for a batch of rows, s_i = C_i e_y at the
//   greatest g_i^y, and b moves towards s by the exact step min(1, sum gap_i / |dW|^2). An epoch is
//   every row once, in a random order, and a full pass.
//
// Shapes: rows (n, d) dense row-major or CSR; dense rows with more zeros than entries are compressed
// (a copy of them). W has float32 or float64 entries, as the rows do; duals are double, and in every
// full pass W is summed anew from them in double. So float certifies gaps down to about 1e-6 P.
// Errors: std::invalid_argument naming what does not fit.
// Threads: full passes are shared, and so are compression and the batches of frank_wolfe where they
// are large; sweeps run on one thread, for each step needs the one before. Tiles depend on sizes
// alone and merge in order: every thread count gives the same bits.
// Cost: 2 q k flops a row for its scores and as much for a step that changes all k classes, with q
// entries in the row. Memory: 8 n k bytes of duals, 20 p k of weights, and sums of the full pass
// (8 p k bytes a group of rows, 64 MB at most unless p k alone is more).
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
  double constant = 0.0;                  // value of a last feature; 0: there is none
};

struct SvmOptions {
  DualSolver solver = DualSolver::sequential;
  index_t batch = 16;  // rows of a step of frank_wolfe
  std::uint64_t seed = 0;
};

// The rows, labels and costs must outlive the solver.
template <class T>
class CrammerSinger {
 public:
  CrammerSinger(MatrixView<const T> rows, const SvmProblem& problem, const SvmOptions& options,
                int n_threads);
  CrammerSinger(const CsrView<T>& rows, const SvmProblem& problem, const SvmOptions& options,
                int n_threads);
  CrammerSinger(CrammerSinger&&) noexcept;
  ~CrammerSinger();

  // Starts from these a (n, k): entries b_i that are not feasible are projected on their simplex.
  void start(MatrixView<const double> duals, int n_threads);

  // At most so many epochs; fewer once gap() <= tolerance * primal(). Returns how many there were.
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
