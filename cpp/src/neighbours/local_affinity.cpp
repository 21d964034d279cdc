#include "eigenfeat/local_affinity.hpp"

#include <algorithm>
#include <cmath>
#include <string>

#include "base/shape_text.hpp"
#include "base/tile_products.hpp"
#include "eigenfeat/parallel.hpp"
#include "eigenfeat/vector.hpp"
#include "kernels/affinity_kernels.hpp"
#include "kernels/distance_kernels.hpp"
#include "neighbours/local_laplacian.hpp"

namespace eigenfeat {
namespace {

constexpr index_t kSlice = 256;  // maximum number of rows of a product
constexpr index_t kRun = 1024;   // approximate number of rows of a task if there are few tiles
constexpr index_t kTasks = 32;   // sufficient number of tasks

// Rows of consecutive classes that are added together. Either all classes have half of L X, or all
// have L X.
struct Slice {
  index_t begin = 0, end = 0, first_class = 0;
  bool half = false;
};

Vector<Slice> slices_of(const Vector<AffinityClass>& classes) {
  Vector<Slice> slices;
  for (index_t i = 0; i < classes.size(); ++i) {
    const AffinityClass& c = classes[i];
    for (index_t row = c.begin; row < c.begin + c.count;) {
      if (slices.empty() || slices.back().half == c.kept ||
          slices.back().end - slices.back().begin == kSlice)
        slices.push_back({row, row, i, !c.kept});
      Slice& slice = slices.back();
      slice.end = std::min(c.begin + c.count, slice.begin + kSlice);
      row = slice.end;
    }
  }
  return slices;
}

// sums[s] = X^T Y_s, plus Y_s^T X if Y_s has half of L X; Y_s = laplacian[s, c] L X + plain[s, c] X.
class WeightedProducts {
 public:
  WeightedProducts(const LocalLaplacian& local, MatrixView<const double> laplacian,
                   MatrixView<const double> plain, index_t n, index_t d)
      : local_(local), weights_{laplacian, plain}, slices_(slices_of(local.classes())), d_(d) {
    const index_t n_panels = local.rows().count(), most = d > 256 ? 6 : 2;
    for (index_t first = 0; first < n_panels; first += most) {
      const index_t last = std::min(first + most, n_panels);
      for (index_t right = 0; right < last; ++right) tiles_.push_back({first, last, right});
    }
    size_ = most * kTileWidth * kTileWidth;
    n_runs_ = std::clamp<index_t>(std::min(n / kRun, kTasks / n_tiles()), 1, kTasks);
    parts_ = AlignedBuffer<double>::zeros(n_runs_ * n_tiles() * laplacian.rows * size_);
  }

  void run(VectorView<double> sums, int n_threads) {
    PerThread<AlignedBuffer<double>> scratch(resolve_threads(n_threads));
    for_blocks(n_tiles() * n_runs_, n_threads, [&](index_t task, int thread) {
      scratch[thread].reserve(kSlice * kTileWidth);
      for (index_t sum = 0; sum < weights_.laplacian.rows; ++sum)
        add_tile(task / n_runs_, task % n_runs_, sum, scratch[thread].data());
    });
    for_blocks(n_tiles(), n_threads, [&](index_t tile, int) { write_tile(tile, sums); });
  }

 private:
  struct Weights {
    MatrixView<const double> laplacian, plain;
  };
  struct Tile {  // panels [first, last) of X times a panel of Y
    index_t first = 0, last = 0, right = 0;
  };

  index_t n_tiles() const { return tiles_.size(); }
  double* part(index_t tile, index_t run, index_t sum, index_t panel) {
    const index_t at = (tile * n_runs_ + run) * weights_.laplacian.rows + sum;
    const Tile& t = tiles_[tile];
    return parts_.data() + at * size_ +
           (panel - t.first) * kTileWidth * local_.rows().width(t.right);
  }

  void add_tile(index_t tile, index_t run, index_t sum, double* y) {
    const Tile& t = tiles_[tile];
    const Panels& x = local_.rows();
    const index_t n = slices_.size();
    for (index_t i = n * run / n_runs_; i < n * (run + 1) / n_runs_; ++i) {
      const Slice& slice = slices_[i];
      const index_t rows = slice.end - slice.begin;
      weigh(slice, sum, t.right, y);
      for (index_t p = t.first; p < t.last; ++p)
        eigenfeat::add_products<double>(
            row_major(x.row(p, slice.begin), rows, x.columns(p), x.width(p)), y, x.width(t.right),
            x.columns(t.right), part(tile, run, sum, p));
      for (index_t p = t.first; p < t.last && slice.half; ++p) {
        weigh(slice, sum, p, y);
        eigenfeat::add_products<double>(row_major<const double>(y, rows, x.columns(p), x.width(p)),
                                        x.row(t.right, slice.begin), x.width(t.right),
                                        x.columns(t.right), part(tile, run, sum, p));
      }
    }
  }

  // out: a panel of Y_s
  void weigh(const Slice& slice, index_t sum, index_t panel, double* out) const {
    const index_t width = local_.rows().width(panel);
    index_t i = slice.first_class;
    for (index_t row = slice.begin; row < slice.end; ++i) {
      const AffinityClass& c = local_.classes()[i];
      const index_t end = std::min(c.begin + c.count, slice.end);
      const double plain = weights_.plain(sum, i);
      kernels<AffinityKernels>().weighted_sum(
          weights_.laplacian(sum, i), local_.laplacian().row(panel, row),
          slice.half ? 0.5 * plain : plain, local_.rows().row(panel, row), (end - row) * width,
          out + (row - slice.begin) * width);
      row = end;
    }
  }

  // Runs are added in order. The result is symmetric.
  void write_tile(index_t tile, VectorView<double> sums) {
    const Tile& t = tiles_[tile];
    const Panels& x = local_.rows();
    const index_t width = x.width(t.right), column = t.right * kTileWidth;
    for (index_t sum = 0; sum < weights_.laplacian.rows; ++sum) {
      double* out = sums.data + sum * d_ * d_;
      for (index_t p = std::max(t.first, t.right); p < t.last; ++p) {
        for (index_t a = 0; a < x.columns(p); ++a) {
          const index_t i = p * kTileWidth + a;
          for (index_t b = 0; b < x.columns(t.right) && column + b <= i; ++b) {
            double entry = 0.0;
            for (index_t run = 0; run < n_runs_; ++run)
              entry += part(tile, run, sum, p)[a * width + b];
            out[i * d_ + column + b] = out[(column + b) * d_ + i] = entry;
          }
        }
      }
    }
  }

  const LocalLaplacian& local_;
  Weights weights_;
  Vector<Slice> slices_;
  index_t d_;
  Vector<Tile> tiles_;
  index_t size_ = 0, n_runs_ = 1;
  AlignedBuffer<double> parts_;  // partial sums of every tile, run and sum
};

void check(const AffinityRows& rows, MatrixView<const double> laplacian,
           MatrixView<const double> plain, VectorView<double> sums) {
  const index_t d = rows.rows.cols;
  require(d >= 1, "X", "at least 1 column", std::to_string(d));
  require(rows.n_neighbors >= 1, "n_neighbors", "at least 1", std::to_string(rows.n_neighbors));
  index_t total = 0;
  for (index_t c = 0; c < rows.counts.size; ++c) {
    require(rows.counts[c] >= 0 && rows.counts[c] <= rows.rows.rows - total, "counts",
            "numbers >= 0 that sum to the samples of X, " + std::to_string(rows.rows.rows),
            std::to_string(rows.counts[c]));
    total += rows.counts[c];
  }
  require(total == rows.rows.rows, "counts",
          "numbers that sum to the samples of X, " + std::to_string(rows.rows.rows),
          std::to_string(total));
  require(laplacian.cols == rows.counts.size, "laplacian",
          std::to_string(rows.counts.size) + " columns, one per class",
          std::to_string(laplacian.cols));
  require(plain.rows == laplacian.rows && plain.cols == laplacian.cols, "plain",
          "the shape of laplacian, " + shape_text(laplacian.rows, laplacian.cols),
          shape_text(plain.rows, plain.cols));
  require(sums.size == laplacian.rows * d * d, "sums",
          std::to_string(laplacian.rows * d * d) + " numbers", std::to_string(sums.size));
  for (index_t i = 0; i < rows.rows.rows; ++i) {
    if (!std::isfinite(kernels<DistanceKernels<double>>().squared_norm(rows.rows.row(i), d)))
      refuse("X", "samples whose squares do not overflow",
             "an overflow in row " + std::to_string(i));
  }
}

}  // namespace

void affinity_sums(const AffinityRows& rows, MatrixView<const double> laplacian,
                   MatrixView<const double> plain, VectorView<double> sums, int n_threads) {
  check(rows, laplacian, plain, sums);
  const index_t d = rows.rows.cols;
  double work = 0.0;
  for (index_t c = 0; c < rows.counts.size; ++c)
    work += static_cast<double>(rows.counts[c]) * static_cast<double>(rows.counts[c]);
  work *= 3.0 * static_cast<double>(d + 10);
  const int threads = threads_for(work, n_threads);
  const LocalLaplacian local(rows, threads);
  WeightedProducts(local, laplacian, plain, rows.rows.rows, d).run(sums, threads);
}

}  // namespace eigenfeat
