// Class moments: first and second moments of the rows of each class.
//
//   W_c = sum_i w_i,   mu_c = sum_i w_i x_i / W_c,   S_c = sum_i w_i (x_i - mu_c)(x_i - mu_c)^T
//   second moment  C_c = S_c / W_c + mu_c mu_c^T   (Karampatziakis and Mineiro 2014, eq. 2)
//   covariance     S_c / W_c
//
// over the rows of class c. A mean is stored as an unevaluated sum of two doubles, so that
// differences of means far from zero keep their digits. S_c is stored in double, in its lower
// triangle (row-major, d x d).
//
// update: the corrected two-pass algorithm over the batch, then a merge with the previous moments
// (Chan, Golub and LeVeque 1983). Rows are sorted by class, centred, weighted and packed into
// aligned panels; rank-k updates of fixed tiles add them to S_c. Products of float rows are float
// within a panel, and sums across panels are double. The relative error of a covariance is O(eps
// sqrt(n_c)) for any mean, with eps of the type of the rows.
// merge: S <- S_a + S_b + (W_a W_b / W) delta delta^T, delta = mu_b - mu_a.
//
// Threads: panels and tiles depend on d and on the class counts only, and one task sums each tile
// in row order: results are bit-for-bit identical for any number of threads.
// Cost of update: n d^2 flops (symmetric rank-k), two passes over the rows. Columns in which a
// class of the batch is zero are left out of the panels of the class, which halves the work for
// images.
// Scratch: panels of about 4 MB, two for each thread and at least four; for column-major rows also a
// copy of the rows in class order.
// Errors: std::invalid_argument for an entry that is not finite (names row and column), a label
// outside [0, n_classes), or a negative weight. An error leaves the moments unchanged.
#pragma once

#include <cstdint>

#include "eigenfeat/scratch.hpp"
#include "eigenfeat/vector.hpp"
#include "eigenfeat/view.hpp"

namespace eigenfeat {

class ClassMoments {
 public:
  ClassMoments(index_t n_classes, index_t n_features);

  index_t n_classes() const { return groups_.size(); }
  index_t n_features() const { return n_features_; }

  // Appends empty classes up to n_classes.
  void grow(index_t n_classes);

  // rows: (n, d), row-major, or column-major with any column stride; results do not depend on the
  // layout. labels: n class indices. weights: n nonnegative numbers, or empty (all ones).
  template <class T>
  void update(MatrixView<const T> rows, VectorView<const std::int32_t> labels,
              VectorView<const double> weights, int n_threads);

  template <class T>
  void update(const CsrView<T>& rows, VectorView<const std::int32_t> labels,
              VectorView<const double> weights, int n_threads);

  // rows: bytes (n, d), row-major, without weights. Integers give the exact scatter of a batch in any
  // order of the rows; it is rounded twice and merged with the previous moments. At most 2^23 rows
  // of a class. Cost: n d^2 / 2 products, 16 MB for a panel and 8 d^2 bytes for sums.
  void update(MatrixView<const std::uint8_t> rows, VectorView<const std::int32_t> labels,
              int n_threads);

  // Class c of other joins class class_map[c] of this one. other may not be *this.
  void merge(const ClassMoments& other, VectorView<const std::int32_t> class_map, int n_threads);

  double weight(index_t c) const { return group(c).weight; }
  // mean = high + low, |low| <= ulp(high)
  const Vector<double>& mean_high(index_t c) const { return group(c).mean_high; }
  const Vector<double>& mean_low(index_t c) const { return group(c).mean_low; }

  // out: (d, d) symmetric, both triangles. The class must have weight.
  void covariance(index_t c, MatrixView<double> out) const;
  void second_moment(index_t c, MatrixView<double> out) const;

  // Lower triangle of the centred scatter, packed by rows: d (d + 1) / 2 numbers; for files and
  // pickles.
  void packed_scatter(index_t c, VectorView<double> out) const;
  void restore(index_t c, double weight, VectorView<const double> mean_high,
               VectorView<const double> mean_low, VectorView<const double> packed_scatter);

  bool operator==(const ClassMoments& other) const;

 private:
  struct Group {
    double weight = 0.0;
    Vector<double> mean_high;
    Vector<double> mean_low;
    AlignedBuffer<double> scatter;  // empty until the class has weight
  };

  const Group& group(index_t c) const;
  Group& group(index_t c);
  void read_out(index_t c, bool about_mean, MatrixView<double> out) const;
  void prepare(Group& group) const;
  static void move_mean(Group& group, double added, const double* shift, const double* residual);
  void correct_shift(Group& group, double added, const double* residual, int n_threads) const;
  void merge_group(Group& mine, const Group& theirs, int n_threads);
  template <class T, class Rows>
  void update_rows(Rows rows, VectorView<const std::int32_t> labels,
                   VectorView<const double> weights, int n_threads);

  index_t n_features_ = 0;
  Vector<Group> groups_;
};

}  // namespace eigenfeat
