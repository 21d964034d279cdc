// Batches of generalized symmetric eigenproblems: the largest eigenpairs of
//
//   A v = lambda B v,   A symmetric, B symmetric positive definite,   v^T B v = 1.
//
// A batch has some numerators A, some denominators B, and items (numerator, denominator); each
// denominator is factorised once, B = L L^T, however many items use it. A ridge is added on the
// way, B + diag(shifts), so that one matrix may serve as numerator and as denominator. Four
// solvers:
//
//   full    LAPACK's sygvd: every eigenpair. The reference for the others. About 9 d^3 flops.
//   subset  sygst to L^-1 A L^-T, then syevr for the wanted range. About 3 d^3 flops.
//   tridiagonal  likewise to L^-1 A L^-T, then own kernels for few wanted pairs: reduction to
//           tridiagonal form, multisection, inverse iteration; see largest_eigenpairs.hpp. Items
//           whose residuals are not at rounding, and more than few pairs, go to subset.
//   krylov  block Lanczos with full reorthogonalisation and thick restart on the operator
//           x -> W (A (W^T x)), W = L^-1; see krylov.hpp. About 4 d^2 flops a column; rows that are
//           zero in A, or in B but for the diagonal, are left out where they are many; A without
//           them is copied once for all items that share it.
//   automatic  the cheapest by a cost model fitted to bench_pencil.
//
// Wanted: the n_vectors largest, of these only those with lambda >= threshold.
// Eigenvalues descend. The entry of largest magnitude in each vector is positive (the first on
// ties).
//
//   residual = ||A v - lambda B v|| / (max(|lambda|, floor) ||B||_2 ||v||)
//
// is recomputed from A and B, and items whose residuals exceed the tolerance are solved again by full:
// the better result counts. There the floor is lambda_1 / 1000, or what rounding of A v allows if
// that is more. A krylov item that does not converge, or whose residual is above the tolerance, is
// solved again by tridiagonal. Its eigenvalues are Rayleigh quotients: their error is of the order of the
// residual's square over the gap, plus rounding.
//
// A denominator is singular to working precision when a squared pivot of its Cholesky factor is
// below d eps times its diagonal entry, a test that no scaling of rows and columns changes.
//
// Threads: parallel over denominators with their items where they are many, else over items; a batch
// with fewer items than threads and large d is tiled inside
// each item. Tiles have fixed sizes: every thread count gives the same bits.
// Scratch: 4/3 d^2 + 192 d numbers for each factor held (d^2 without krylov) and at most d^2 + (d + m) m for
// each thread, m <= max(3 n_vectors, 160) + 64 (krylov), or d^2 for each thread (subset), or twice that
// (full, tridiagonal; in float three times).
// T is float or double. Misuse throws std::invalid_argument; numerical outcomes are a Status per
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
  VectorView<T> eigenvalues;       // (n, m), row-major; beyond found[i]: NaN
  VectorView<T> vectors;           // (n, m, d), vector by vector; beyond found[i]: NaN
  VectorView<T> residuals;         // (n, m)
  VectorView<index_t> found;       // how many eigenpairs item i has
  VectorView<index_t> iterations;  // operator columns applied (krylov), else 0
  VectorView<int> solver;          // the Solver that made item i's result
  VectorView<int> status;          // Status
};

// The solver that `automatic` means for this size, by a cost model of the tier in use.
Solver choose_solver(index_t d, index_t n_vectors, double items_per_denominator);

// The test that solve_pencils makes of a denominator: whether B + diag(shifts), of d shifts, is
// positive definite to working precision. About d^3 / 3 flops, on the threads that it is given.
template <class T>
bool is_positive_definite(MatrixView<const T> matrix, VectorView<const T> shifts, int n_threads);

// About how many bytes solve_pencils takes beside the matrices, for items spread evenly over the
// denominators: factors, scratch of all threads, and the solution.
template <class T>
double pencil_bytes(index_t d, index_t n_items, index_t n_denominators,
                    const PencilOptions& options);

template <class T>
void solve_pencils(const PencilProblem<T>& problem, const PencilOptions& options,
                   const PencilSolution<T>& solution);

}  // namespace eigenfeat
