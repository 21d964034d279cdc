// Private to the pencils: solution of one item by one of the four solvers, and check of the result.
#pragma once

#include "eigenfeat/pencil.hpp"
#include "eigenfeat/scratch.hpp"
#include "pencil/factor.hpp"
#include "pencil/krylov.hpp"
#include "pencil/largest_eigenpairs.hpp"
#include "pencil/reduced_operator.hpp"

namespace eigenfeat {

// Tolerance of residuals, which every solver reaches by a wide margin.
template <class T>
inline constexpr double kDefaultTolerance = sizeof(T) == 4 ? 1e-4 : 1e-10;

template <class T>
struct ItemResult {
  VectorView<T> eigenvalues;  // m
  MatrixView<T> vectors;      // (m, d), row-major
  VectorView<T> residuals;    // m
  index_t found = 0;
  index_t iterations = 0;
  Solver solver = Solver::automatic;
  Status status = Status::ok;
};

// Keeps its scratch between items; each thread has one.
template <class T>
class ItemSolver {
 public:
  // options.solver must not be automatic; the factor must be prepared for solves if krylov may be
  // used.
  // compact: a shared copy of A without zero rows, or null.
  void solve(MatrixView<const T> a, const CompactMatrix<T>* compact, const Factor<T>& factor,
             const PencilOptions& options, int n_threads, ItemResult<T>& result);

  // Number of columns of a typical item of the batch, for the first check of krylov; 0 if unknown.
  void expect_columns(index_t columns) { expected_columns_ = columns; }

 private:
  bool by_krylov(const CompactMatrix<T>* compact, const PencilOptions& options,
                 ItemResult<T>& result);
  Status by_reduction(const PencilOptions& options, ItemResult<T>& result);
  MatrixView<const T> whole_lower();
  MatrixView<T> reduced(MatrixView<const T> lower);
  Status by_full(const PencilOptions& options);
  double retry_by_full(const PencilOptions& options, double worst, ItemResult<T>& result);
  index_t group_count(index_t columns) const { return (columns + group_ - 1) / group_; }
  void take_columns(MatrixView<const T> ascending, index_t n_vectors);
  double numerator_scale() const;
  double finish(const PencilOptions& options, index_t count, ItemResult<T>& result);
  void write_pair(index_t rank, double lambda, double residual, double norm,
                  ItemResult<T>& result) const;

  MatrixView<const T> a_;
  const Factor<T>* factor_ = nullptr;
  int n_threads_ = 1;
  index_t expected_columns_ = 0;
  Krylov<T> krylov_;
  AlignedBuffer<T> dense_, dense_b_, dense_vectors_, eigenvalues_;
  CompactMatrix<T> compact_;
  ReducedOperator<T> operator_;
  index_t group_ = 0;                   // number of columns of a group
  AlignedBuffer<T> reduced_;            // u of one group, row-major (order, group_)
  AlignedBuffer<T> vectors_, av_, bv_;  // v, A v, B v: all groups, each (d, group_)
  LargestEigenpairs largest_;
  LapackWork<T> work_;
};

}  // namespace eigenfeat
