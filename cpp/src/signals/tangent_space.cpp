#include "eigenfeat/tangent_space.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>

#include "eigenfeat/parallel.hpp"
#include "eigenfeat/scratch.hpp"
#include "kernels/lane_eigen_kernels.hpp"

namespace eigenfeat {
namespace {

// Columns of an array of matrices side by side, see lane_eigen_kernels.hpp.
index_t padded(index_t columns) {
  return columns | 1;
}

// What one thread needs for a block of matrices, one in each lane.
class Block {
 public:
  Block(index_t d, index_t r)
      : kernels_(kernels<LaneEigenKernels>()),
        d_(d),
        r_(r),
        inputs_(d * padded(d) * kernels_.lanes),
        products_(std::max(d * padded(r), r * padded(r)) * kernels_.lanes),
        reduced_(r * padded(r) * kernels_.lanes),
        logs_(r * padded(r) * kernels_.lanes),
        values_(r * kernels_.lanes),
        work_(kLaneEigenWork * r * kernels_.lanes) {}

  void run(MatrixView<const double> matrices, MatrixView<const double> whitening, index_t first,
           MatrixView<double> vectors, MatrixView<double> extremes, VectorView<int> status) {
    const index_t count = std::min(kernels_.lanes, matrices.rows - first);
    fill(matrices, first);
    kernels_.multiply(inputs_.data(), d_, d_, whitening.data, r_, products_.data());
    kernels_.project(products_.data(), d_, whitening.data, r_, reduced_.data());
    for (index_t lane = 0; lane < kernels_.lanes; ++lane) scale(lane);
    const unsigned failed = kernels_.decompose(reduced_.data(), r_, values_.data(), work_.data());
    for (index_t lane = 0; lane < count; ++lane) {
      const index_t item = first + lane;
      const bool converged = (failed >> lane & 1u) == 0;
      status[item] = static_cast<int>(take_logs(lane, converged, extremes.row(item)));
    }
    kernels_.compose(reduced_.data(), values_.data(), r_, products_.data(), logs_.data());
    write(first, count, status, vectors);
  }

 private:
  double& reduced(index_t i, index_t j, index_t lane) {
    return reduced_[(i * padded(r_) + j) * kernels_.lanes + lane];
  }
  double& value(index_t i, index_t lane) { return values_[i * kernels_.lanes + lane]; }

  void fill(MatrixView<const double> matrices, index_t first) {
    const index_t lanes = kernels_.lanes;
    const double* from[kMostLanes];
    for (index_t l = 0; l < lanes; ++l)
      from[l] = matrices.row(std::min(first + l, matrices.rows - 1));
    for (index_t i = 0; i < d_; ++i) {
      const index_t row = i * padded(d_) * lanes;
      for (index_t j = 0; j < d_; ++j) {
        for (index_t l = 0; l < lanes; ++l) inputs_[row + j * lanes + l] = from[l][i * d_ + j];
      }
    }
  }

  // By a power of two, so that no square of an entry is out of range. What has no positive diagonal
  // is no covariance and becomes the identity.
  void scale(index_t lane) {
    double peak = 0.0;
    bool sound = true;
    for (index_t i = 0; i < r_; ++i) {
      const double entry = reduced(i, i, lane);
      sound = sound && entry > 0.0 && entry < std::numeric_limits<double>::infinity();
      peak = std::max(peak, entry);
    }
    sound_[lane] = sound;
    exponents_[lane] = sound ? std::ilogb(peak) : 0;
    const double factor = std::ldexp(1.0, -exponents_[lane]);
    for (index_t i = 0; i < r_; ++i) {
      for (index_t j = 0; j <= i; ++j) {
        double& entry = reduced(i, j, lane);
        entry = sound ? entry * factor : (i == j ? 1.0 : 0.0);
      }
    }
  }

  Status take_logs(index_t lane, bool converged, double* extremes) {
    double low = value(0, lane), high = low;
    for (index_t i = 1; i < r_; ++i) {
      low = std::min(low, value(i, lane));
      high = std::max(high, value(i, lane));
    }
    const double least = static_cast<double>(r_) * std::numeric_limits<double>::epsilon() * high;
    const bool positive = sound_[lane] && low > least;
    const double shift = static_cast<double>(exponents_[lane]) * std::log(2.0);
    for (index_t i = 0; i < r_; ++i)
      value(i, lane) = positive && converged ? std::log(value(i, lane)) + shift : 0.0;
    extremes[0] = std::ldexp(low, exponents_[lane]);
    extremes[1] = std::ldexp(high, exponents_[lane]);
    if (!sound_[lane]) {
      extremes[0] = extremes[1] = std::numeric_limits<double>::quiet_NaN();
      return Status::not_positive_definite;
    }
    if (!converged) return Status::not_converged;
    return positive ? Status::ok : Status::not_positive_definite;
  }

  void write(index_t first, index_t count, VectorView<int> status, MatrixView<double> vectors) {
    const double root = std::sqrt(2.0), nothing = std::numeric_limits<double>::quiet_NaN();
    index_t column = 0;
    for (index_t i = 0; i < r_; ++i) {
      const double* from = logs_.data() + (i * padded(r_) + i) * kernels_.lanes;
      for (index_t j = i; j < r_; ++j, ++column, from += kernels_.lanes) {
        for (index_t l = 0; l < count; ++l)
          vectors(first + l, column) = i == j ? from[l] : root * from[l];
      }
    }
    for (index_t l = 0; l < count; ++l) {
      if (status[first + l] == static_cast<int>(Status::ok)) continue;
      std::fill(vectors.row(first + l), vectors.row(first + l) + vectors.cols, nothing);
    }
  }

  static constexpr index_t kMostLanes = 16;
  const LaneEigenKernels& kernels_;
  index_t d_, r_;
  AlignedBuffer<double> inputs_, products_, reduced_, logs_, values_, work_;
  bool sound_[kMostLanes] = {};
  int exponents_[kMostLanes] = {};
};

}  // namespace

void tangent_vectors(MatrixView<const double> matrices, MatrixView<const double> whitening,
                     MatrixView<double> vectors, MatrixView<double> extremes,
                     VectorView<int> status, int n_threads) {
  const index_t n = matrices.rows, d = whitening.rows, r = whitening.cols;
  require(d >= 1 && r >= 1 && r <= d, "whitening", "shape (d, r) with 1 <= r <= d",
          "(" + std::to_string(d) + ", " + std::to_string(r) + ")");
  require(matrices.cols == d * d && (n <= 1 || matrices.is_row_major()), "matrices",
          std::to_string(d * d) + " contiguous entries each", std::to_string(matrices.cols));
  require(whitening.is_row_major() && whitening.row_stride == r, "whitening", "contiguous rows",
          "others");
  require(vectors.rows == n && vectors.cols == r * (r + 1) / 2 && extremes.rows == n &&
              extremes.cols == 2 && status.size == n,
          "vectors", "arrays that fit the matrices", "other sizes");
  const index_t lanes = kernels<LaneEigenKernels>().lanes;
  const double width = static_cast<double>(d);
  const int threads = threads_for(static_cast<double>(n) * 20.0 * width * width * width, n_threads);
  PerThread<Vector<Block>> blocks(threads);
  for_ranges(n, lanes, threads, [&](index_t first, index_t, int thread) {
    if (blocks[thread].empty()) blocks[thread].emplace_back(d, r);
    blocks[thread].front().run(matrices, whitening, first, vectors, extremes, status);
  });
}

}  // namespace eigenfeat
