// Class-wise nearest neighbours, their means, and the scatters of LDG (Parrish 2012, chapter 3).
//
//   H_ij = the k references of class j that are nearest to query x_i,  mu_ij = their mean
//   D_ij = x_i - mu_ij
//   V = sum_i D_{i,g_i} D_{i,g_i}^T                 (3.9)
//   A = sum_i sum_j p_j D_ij D_ij^T                 (3.10)
//
// Neighbours: squared distances by gemm, blocks of queries times blocks of class-sorted references,
// about the references' mean. A gemm's distance is off by at most c (|x| + |y|)^2 with
// c = u (d / 2 + 16), u the unit roundoff of T and norms about the mean: references whose intervals
// overlap are put in order by distances recomputed in double from the rows as given, whose relative
// error is (d + 2) 2^-53, and rounded to 40 bits, so that equal distances are equal in any order of
// the columns. So order and membership are those of the recomputed distances; ties go to the
// reference of the lower row number. Cost: 2 m n d flops for m queries and n references, with a
// block of queries, one of references, their products and lists of candidates for each thread; half
// the flops where the references are the queries, wide and many, and the candidates of all fit into
// 96 MiB.
//
// Scatters: the rows D, class by class, by rank updates, n G d^2 flops for V and A; or, for A, the
// form X^T L X of (3.25) with L applied and never formed, 2 n d^2 + 4 n G k d. D is a mean of
// differences, so columns far from zero lose nothing. Products of float rows are float over at most
// 4,096 rows, and sums of those double.
//
// Every result is the same bits for every number of threads.
#pragma once

#include <cstdint>
#include <vector>

#include "eigenfeat/status.hpp"
#include "eigenfeat/view.hpp"

namespace eigenfeat {

template <class T>
struct LocalRows {
  MatrixView<const T> references;        // (n, d) row-major
  VectorView<const std::int32_t> codes;  // (n,) in [0, n_classes)
  index_t n_classes = 0;
  MatrixView<const T> queries;  // (m, d) row-major; references where same
  bool same = false;            // the queries are the references: none is its own neighbour
  VectorView<const std::int32_t> groups;  // (n,), only where same: none of the own group, either
};

// neighbours: (m, n_classes, n_neighbors) row numbers of references, nearest first; -1 where a
// class has too few. Throws std::invalid_argument for rows that are not finite or as large as
// 1e150.
template <class T>
void find_local_neighbours(const LocalRows<T>& rows, index_t n_neighbors,
                           VectorView<index_t> neighbours, int n_threads);

template <class T>
struct LocalPairs {
  MatrixView<const T> references;              // (n, d) row-major
  MatrixView<const T> queries;                 // (m, d) row-major
  VectorView<const std::int32_t> query_codes;  // (m,) in [0, n_classes)
  VectorView<const index_t> neighbours;        // (m, n_classes, n_neighbors), -1 last: none
  index_t n_classes = 0;
  index_t n_neighbors = 0;
};

enum class ScatterMethod { automatic, rows, graph };

// The cheaper way to A by the cost rule: graph where G - 1 gemm passes cost more than the
// neighbours' additions.
ScatterMethod choose_scatter_method(index_t d, index_t n_classes, index_t n_neighbors);

// within <- V, weighted <- A: (d, d), both triangles. priors: n_classes numbers >= 0. A pair (i, j)
// without neighbours adds nothing. Throws std::invalid_argument for neighbours out of range.
template <class T>
void local_scatters(const LocalPairs<T>& pairs, VectorView<const double> priors,
                    ScatterMethod method, MatrixView<double> within, MatrixView<double> weighted,
                    int n_threads);

// Throws std::invalid_argument unless neighbours fit the shape and are row numbers or -1.
template <class T>
void check_neighbours(const LocalPairs<T>& pairs);

// Discriminants of local QDA with diagonal covariances: for the mean and variances (of maximum
// likelihood) of the first counts[k] neighbours of class c of query i, and s_j = variance + ridge,
//   scores[(k m + i) n_classes + c] = -1/2 sum_j ((x_ij - mean_j)^2 / s_j + log s_j),
// minus infinity where a class has no neighbours. counts ascend; query_codes is not read. Sums over
// rows are T, over columns double. 3 flops a neighbour and column; only numbers per thread.
template <class T>
void local_discriminants(const LocalPairs<T>& pairs, VectorView<const index_t> counts, double ridge,
                         VectorView<double> scores, int n_threads);

// The Gaussians themselves: means and variances, ridge added, of all the neighbours of each pair.
// Both (m, n_classes, d), flat; NaN where a class has no neighbours.
template <class T>
void local_gaussians(const LocalPairs<T>& pairs, double ridge, VectorView<double> means,
                     VectorView<double> variances, int n_threads);

}  // namespace eigenfeat
