// Batches of generalized symmetric eigenproblems: the largest eigenpairs of
//
//   A v = lambda B v,   A symmetric, B symmetric positive definite,   v^T B v = 1.
//
// A batch has numerators A, denominators B, and items, each a pair of a numerator and a denominator.
// Each denominator is factorised once, B = L L^T, for all its items. A ridge is added to a copy,
// B + diag(shifts), so that a matrix may be both a numerator and a denominator. Solvers:
//
//   full    LAPACK's sygvd: every eigenpair. The reference for other solvers. About 9 d^3 flops.
//   subset  sygst to L^-1 A L^-T, then syevr for the wanted range. About 3 d^3 flops.
//   tridiagonal  reduction to L^-1 A L^-T, then kernels of the core for few pairs: reduction to
//           tridiagonal form, multisection, inverse iteration; see largest_eigenpairs.hpp. Items with
//           residuals above rounding errors, or with many pairs, are solved by subset.
//   krylov  block Lanczos with full reorthogonalisation and thick restart on the operator
//           x -> W (A (W^T x)), W = L^-1; see krylov.hpp. About 4 d^2 flops for each column. If many rows
//           are zero in A, or in B except for the diagonal, they are left out; A without these rows is
//           copied once for all items that share it.
//   automatic  the cheapest solver by a cost model fitted to bench_pencil.
//
// The result has the n_vectors largest eigenvalues with lambda >= threshold, in descending order. The
// entry of largest magnitude in each vector (the first of equal ones) is positive.
//
//   residual = ||A v - lambda B v|| / (max(|lambda|, floor) ||B||_2 ||v||)
//
// is computed from A and B, where the floor is lambda_1 / 1000, or the rounding error of A v if
// that is larger. An item with a residual above the tolerance is solved again by full, and the
// result with the smaller residual is used; a krylov item that does not converge, or has such a
// residual, is solved again by tridiagonal. Eigenvalues of krylov are Rayleigh quotients: their
// error is of the order of the squared residual over the gap, plus rounding.
//
// A denominator is singular to working precision when a squared pivot of its Cholesky factor is
// below d eps times its diagonal entry; this test does not depend on the scaling of rows and columns.
//
// Threads: over denominators with their items if there are many denominators, otherwise over items;
// if items are fewer than threads and d is large, over tiles within each item. Tiles have fixed
// sizes: results are bit-for-bit identical for any number of threads.
// Scratch: 4/3 d^2 + 192 d numbers for each stored factor (d^2 without krylov), and for each thread
// krylov: at most d^2 + (d + m) m with m <= max(3 n_vectors, 160) + 64; subset: d^2; full and
// tridiagonal: 2 d^2, in float 3 d^2.
// T is float or double. Misuse throws std::invalid_argument. Numerical outcomes are a Status for each
// item.
#pragma once

#include <limits>
#include <utility>

#include "eigenfeat/status.hpp"
#include "eigenfeat/vector.hpp"
#include "eigenfeat/view.hpp"

namespace eigenfeat {

enum class Solver { automatic, full, subset, tridiagonal, krylov };

struct PencilOptions {
  index_t n_vectors = 0;
  double threshold = -std::numeric_limits<double>::infinity();
  Solver solver = Solver::automatic;
  double tolerance = 0.0;  // on the residual; 0: 1e-10 (double), 1e-4 (float)
  int n_threads = 0;
};

template <class T>
struct PencilProblem {
  Vector<MatrixView<const T>> numerators;    // (d, d) each, symmetric, both triangles
  Vector<MatrixView<const T>> denominators;  // (d, d) each, symmetric, both triangles
  Vector<T> shifts;  // added to each denominator's diagonal: one number each, or d each
  Vector<std::pair<index_t, index_t>> items;  // (numerator, denominator)
};

// Arrays that the caller owns, n = number of items, m = options.n_vectors.
template <class T>
struct PencilSolution {
  VectorView<T> eigenvalues;       // (n, m), row-major; NaN after found[i]
  VectorView<T> vectors;           // (n, m, d), vector by vector; NaN after found[i]
  VectorView<T> residuals;         // (n, m)
  VectorView<index_t> found;       // number of eigenpairs of item i
  VectorView<index_t> iterations;  // operator columns applied (krylov), else 0
  VectorView<int> solver;          // the Solver of the result of item i
  VectorView<int> status;          // Status
};

// The solver that `automatic` selects for this size, by the cost model of the tier in use.
Solver choose_solver(index_t d, index_t n_vectors, double items_per_denominator);

// The test of a denominator in solve_pencils: whether B + diag(shifts), with d shifts, is positive
// definite to working precision. About d^3 / 3 flops, on n_threads threads.
template <class T>
bool is_positive_definite(MatrixView<const T> matrix, VectorView<const T> shifts, int n_threads);

// Approximate memory of solve_pencils in bytes, without the matrices, for items spread evenly over
// the denominators: factors, scratch of all threads, and the solution.
template <class T>
double pencil_bytes(index_t d, index_t n_items, index_t n_denominators,
                    const PencilOptions& options);

template <class T>
void solve_pencils(const PencilProblem<T>& problem, const PencilOptions& options,
                   const PencilSolution<T>& solution);

}  // namespace eigenfeat
