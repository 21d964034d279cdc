// Class-wise nearest neighbours, their means, and the scatters of LDG (Parrish 2012, chapter 3).
//
//   H_ij = the k references of class j that are nearest to query x_i,  mu_ij = their mean
//   D_ij = x_i - mu_ij
//   V = sum_i D_{i,g_i} D_{i,g_i}^T                 (3.9)
//   A = sum_i sum_j p_j D_ij D_ij^T                 (3.10)
//
// Neighbours: gemm computes squared distances between blocks of queries and blocks of references,
// sorted by class, with the mean of the references subtracted. The error of such a distance is at
// most c (|x| + |y|)^2 with c = u (d / 2 + 16), where u is the unit roundoff of T and norms are
// about the mean. If the error intervals of references overlap, their distances are computed again
// in double from the original rows, with a relative error of (d + 2) 2^-53, and rounded to 40 bits,
// so that equal distances are equal in any order of the columns. Neighbours are chosen and ordered
// by the rounded distances; ties go to the reference with the lower row number. Cost: 2 m n d flops
// for m queries and n references; each thread has a block of queries, a block of references, their
// products and lists of candidates. If the queries are the references, with many rows and columns,
// and the candidates of all queries fit into 96 MiB, the cost is half.
//
// Scatters: rank updates with the rows D_ij, class by class, take n G d^2 flops for V and A. For A
// there is also the form X^T L X of (3.25), where L is applied and never formed: 2 n d^2 + 4 n G k d
// flops. D_ij is a mean of differences, so that columns far from zero lose no digits. Products of
// float rows are summed in float over at most 4,096 rows, and these sums are added in double.
//
// Results are bit-for-bit identical for any number of threads.
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
  MatrixView<const T> queries;  // (m, d) row-major; the references if `same`
  bool same = false;  // whether the queries are the references; no row is its own neighbour
  VectorView<const std::int32_t> groups;  // (n,), only if `same`: rows of a group are no neighbours
};

// neighbours: (m, n_classes, n_neighbors) row numbers of references, nearest first; -1 if a class has
// fewer. Throws std::invalid_argument for rows with entries that are not finite, or 1e150 or larger.
template <class T>
void find_local_neighbours(const LocalRows<T>& rows, index_t n_neighbors,
                           VectorView<index_t> neighbours, int n_threads);

template <class T>
struct LocalPairs {
  MatrixView<const T> references;              // (n, d) row-major
  MatrixView<const T> queries;                 // (m, d) row-major
  VectorView<const std::int32_t> query_codes;  // (m,) in [0, n_classes)
  VectorView<const index_t> neighbours;        // (m, n_classes, n_neighbors); -1, at the end: none
  index_t n_classes = 0;
  index_t n_neighbors = 0;
};

enum class ScatterMethod { automatic, rows, graph };

// The cheaper method for A by a cost rule: graph, if G - 1 gemm passes cost more than adding the
// neighbours.
ScatterMethod choose_scatter_method(index_t d, index_t n_classes, index_t n_neighbors);

// within <- V, weighted <- A: (d, d), both triangles. priors: (n_classes,), nonnegative. Pairs (i, j)
// without neighbours are left out. Throws std::invalid_argument for neighbours out of range.
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
// minus infinity if a class has no neighbours. counts ascend; query_codes is not read. Sums over rows
// are in T, sums over columns in double. 3 flops for each neighbour and column; no scratch arrays.
template <class T>
void local_discriminants(const LocalPairs<T>& pairs, VectorView<const index_t> counts, double ridge,
                         VectorView<double> scores, int n_threads);

// The Gaussians: means, and variances plus the ridge, of all neighbours of each pair. Both outputs
// are (m, n_classes, d), flat; NaN if a class has no neighbours.
template <class T>
void local_gaussians(const LocalPairs<T>& pairs, double ridge, VectorView<double> means,
                     VectorView<double> variances, int n_threads);

}  // namespace eigenfeat
