#include "eigenfeat/tangent_space.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <complex>
#include <cstdlib>
#include <limits>
#include <mutex>
#include <string>
#include <vector>

#include "base/shape_text.hpp"
#include "eigenfeat/lapack.hpp"
#include "eigenfeat/parallel.hpp"
#include "eigenfeat/scratch.hpp"
#include "kernels/column_kernels.hpp"
#include "kernels/lane_log_kernels.hpp"

namespace eigenfeat {
namespace {

// Number of columns of an array with a matrix in each lane; see lane_log_kernels.hpp.
index_t padded(index_t columns) {
  return columns | 1;
}

// log z = sum_j (w_j / (1 + t_j) - w_j / (z + t_j)) for z in [e^-reach, e^reach], to rounding: the
// Gauss-Legendre rule for log z = int_0^inf (z - 1) / ((1 + t) (z + t)) dt in x in (-1, 1), where t
// = u^p and u = (1 + x) / (1 - x). For p = 1 this is the diagonal Pade approximant at 1; wider
// spectra use a larger p. The poles of the integrand are at u = z^(1/p) e^(i pi / p). The error
// with m nodes is rho^-2m, where rho is the sum of the half axes of the ellipse about [-1, 1]
// through the nearest pole.
class LogRule {
 public:
  struct Node {
    double shift, weight, constant;
  };
  std::vector<Node> nodes;

  LogRule() = default;
  LogRule(double reach, double digits) {
    double best = 0.0;
    int power = 1;
    for (int p = 1; p <= kMaxPower; ++p) {
      const double each = digits_of_node(reach, p);
      if (each > best) best = each, power = p;
    }
    const auto count = static_cast<int>(std::ceil(digits / best));
    for (int j = 0; 2 * j < count; ++j) {
      const Node above = node(j, count, power);
      nodes.push_back(above);
      // x and -x correspond to t and 1 / t
      const double t = 1.0 / above.shift, weight = above.weight * t * t;
      if (2 * j + 1 < count) nodes.push_back({t, weight, weight / (1.0 + t)});
    }
    while (nodes.size() % kLogNodes != 0) nodes.push_back({1.0, 0.0, 0.0});
  }

  // The rule for a matrix with condition number at most `condition`, from a table by reach.
  static const LogRule& of(double condition) {
    static std::array<LogRule, kMaxSteps> rules;
    static std::array<std::once_flag, kMaxSteps> made;
    const double step = std::ceil(0.5 * kStepsOfReach * std::log(kSlack * condition));
    const double most = kMaxSteps;
    const auto at = static_cast<std::size_t>(std::min(std::max(step, 1.0), most)) - 1;
    std::call_once(made[at], [&] {
      const double reach = static_cast<double>(at + 1) / kStepsOfReach;
      rules[at] = LogRule(reach, -std::log(std::numeric_limits<double>::epsilon()) + kDigits);
    });
    return rules[at];
  }

 private:
  static constexpr double kDigits = 2.0;  // digits beyond rounding, for the factor of rho^-2m
  static constexpr double kStepsOfReach = 8.0;
  static constexpr double kSlack = 1.02;  // covers extremes with errors of 1%
  static constexpr int kMaxPower = 8, kNewtonSteps = 4;
  static constexpr int kMaxSteps = 145;  // 0.5 log(1 / eps) = 18.02

  // 2 log rho; the poles of the largest and the smallest z are nearest to the interval.
  static double digits_of_node(double reach, int power) {
    const double angle = kPi / power;
    const std::complex<double> u = std::polar(std::exp(reach / power), angle);
    const double axis = (1.0 + std::abs(u)) / std::max(std::abs(1.0 + u), 1e-9);  // (|x-1|+|x+1|)/2
    return 2.0 * std::acosh(axis);
  }

  static Node node(int j, int count, int power) {
    // root j of the Legendre polynomial, x = cos(angle), by Newton's method
    long double angle = kPi * (j + 0.75) / (count + 0.5), slope = 1.0;
    for (int step = 0; step < kNewtonSteps; ++step) {
      const long double x = std::cos(angle);
      long double before = 1.0, value = x;
      for (int k = 2; k <= count; ++k) {
        const long double next = ((2 * k - 1) * x * value - (k - 1) * before) / k;
        before = value;
        value = next;
      }
      slope = count * (before - x * value) / std::sin(angle);  // (1 - x^2)^(1/2) P'
      angle += value / slope;
    }
    const long double sine = std::sin(angle), u = 1.0 / std::pow(std::tan(angle / 2), 2.0L);
    const long double t = std::pow(u, static_cast<long double>(power));
    // the weight of the rule, 2 / slope^2, times dt / dx = 2 p t / (1 - x^2)
    const long double weight = 4.0L * power / (slope * slope * sine * sine) * t;
    return {static_cast<double>(t), static_cast<double>(weight),
            static_cast<double>(weight / (1.0L + t))};
  }

  static constexpr double kPi = 3.14159265358979323846;
};

// Scratch of one thread for a block of matrices, one in each lane.
class Block {
 public:
  Block(index_t d, index_t r)
      : kernels_(kernels<LaneLogKernels>()),
        d_(d),
        r_(r),
        inputs_(d * padded(d) * kernels_.lanes),
        products_(d * padded(r) * kernels_.lanes),
        reduced_(r * padded(r) * kernels_.lanes),
        logs_(r * padded(r) * kernels_.lanes),
        vectors_((3 * r + 2) * kernels_.lanes),
        nodes_(3 * kMaxNodes * kernels_.lanes),
        work_(2 * kLogNodes * r * kernels_.lanes) {
    for (index_t i = 0; i < d; ++i) {
      for (index_t j = 0; j < d; ++j)
        entries_.push_back(inputs_.data() + (i * padded(d) + j) * kernels_.lanes);
    }
  }

  // Logarithms of matrices from `first` on, one in each lane.
  void take(MatrixView<const double> matrices, MatrixView<const double> whitening,
            const index_t* ends, index_t first, MatrixView<double> extremes,
            VectorView<int> status) {
    const index_t lanes = kernels_.lanes, count = std::min(lanes, matrices.rows - first);
    double *d = vectors_.data(), *e = d + r_ * lanes, *betas = e + r_ * lanes;
    double *low = betas + r_ * lanes, *high = low + lanes;
    fill(matrices, first);
    kernels_.multiply(inputs_.data(), d_, d_, whitening.data, ends, r_, products_.data());
    kernels_.project(products_.data(), whitening.data, ends, r_, reduced_.data());
    scale();
    kernels_.reduce(reduced_.data(), r_, d, e, betas, work_.data());
    kernels_.extremes(d, e, r_, work_.data(), low, high);
    const index_t n_nodes = choose_nodes(low, high);
    const double* nodes = nodes_.data();
    kernels_.logarithm(d, e, r_, nodes, nodes + kMaxNodes * lanes, nodes + 2 * kMaxNodes * lanes,
                       n_nodes, logs_.data(), work_.data());
    kernels_.rotate(reduced_.data(), r_, betas, logs_.data(), work_.data());
    for (index_t lane = 0; lane < count; ++lane) {
      const index_t item = first + lane;
      status[item] = static_cast<int>(judge(lane, low[lane], high[lane], extremes.row(item)));
    }
  }

  // Vectors of the logarithms; NaN for matrices that are not positive definite.
  void write(index_t first, VectorView<int> status, MatrixView<double> vectors) {
    const double root = std::sqrt(2.0), nothing = std::numeric_limits<double>::quiet_NaN();
    const index_t count = std::min(kernels_.lanes, vectors.rows - first);
    double* to[kMaxLanes];
    for (index_t l = 0; l < count; ++l) to[l] = vectors.row(first + l);
    for (index_t i = 0; i < r_; ++i) {
      const double* from = logs_.data() + i * (padded(r_) + 1) * kernels_.lanes;
      kernels<ColumnKernels<double>>().scatter_rows(from, padded(r_) * kernels_.lanes, count,
                                                    r_ - i, 0, to);
      for (index_t l = 0; l < count; ++l) {
        to[l][0] += shifts_[l];
        for (index_t j = 1; j < r_ - i; ++j) to[l][j] *= root;
        to[l] += r_ - i;
      }
    }
    for (index_t l = 0; l < count; ++l) {
      if (status[first + l] == static_cast<int>(Status::ok)) continue;
      std::fill(vectors.row(first + l), vectors.row(first + l) + vectors.cols, nothing);
    }
  }

  // sum <- weighted sum of the vectors of the logarithms.
  void add(index_t first, VectorView<const double> weights, double* sum) const {
    const index_t lanes = kernels_.lanes, count = std::min(lanes, weights.size - first);
    double weight[kMaxLanes] = {}, shift = 0.0;
    for (index_t l = 0; l < count; ++l) {
      weight[l] = weights[first + l];
      shift += weight[l] * shifts_[l];
    }
    const double root = std::sqrt(2.0);
    for (index_t i = 0; i < r_; ++i) {
      for (index_t j = i; j < r_; ++j) {
        const double* entries = logs_.data() + (j * padded(r_) + i) * lanes;
        double entry = 0.0;
        for (index_t l = 0; l < lanes; ++l) entry += weight[l] * entries[l];
        *sum++ = i == j ? entry + shift : root * entry;
      }
    }
  }

 private:
  void fill(MatrixView<const double> matrices, index_t first) {
    const index_t lanes = kernels_.lanes;
    if (first + lanes <= matrices.rows) {
      kernels<ColumnKernels<double>>().scatter_rows(matrices.row(first), matrices.row_stride,
                                                    d_ * d_, lanes, 0, entries_.data());
      return;
    }
    const double* from[kMaxLanes];
    for (index_t l = 0; l < lanes; ++l)
      from[l] = matrices.row(std::min(first + l, matrices.rows - 1));
    for (index_t i = 0; i < d_; ++i) {
      const index_t row = i * padded(d_) * lanes;
      for (index_t j = 0; j < d_; ++j) {
        for (index_t l = 0; l < lanes; ++l) inputs_[row + j * lanes + l] = from[l][i * d_ + j];
      }
    }
  }

  // Scales by a power of two if squares of entries might overflow or vanish. A matrix without a
  // positive diagonal is not a covariance and is replaced by the identity.
  void scale() {
    const index_t lanes = kernels_.lanes;
    double factors[kMaxLanes];
    bool scaled = false;
    for (index_t lane = 0; lane < lanes; ++lane) {
      double peak = 0.0;
      bool sound = true;
      for (index_t i = 0; i < r_; ++i) {
        const double entry = reduced_[(i * padded(r_) + i) * lanes + lane];
        sound = sound && entry > 0 && entry < std::numeric_limits<double>::infinity();
        peak = std::max(peak, entry);
      }
      sound_[lane] = sound;
      exponents_[lane] = sound ? std::ilogb(peak) : 0;
      if (std::abs(exponents_[lane]) < std::numeric_limits<double>::max_exponent / 16)
        exponents_[lane] = 0;
      factors[lane] = std::ldexp(1.0, -exponents_[lane]);
      scaled = scaled || !sound || exponents_[lane] != 0;
    }
    if (!scaled) return;
    for (index_t i = 0; i < r_; ++i) {
      for (index_t j = 0; j <= i; ++j) {
        double* entries = reduced_.data() + (i * padded(r_) + j) * lanes;
        for (index_t lane = 0; lane < lanes; ++lane)
          entries[lane] = sound_[lane] ? entries[lane] * factors[lane] : i == j ? 1.0 : 0.0;
      }
    }
  }

  bool positive(double low, double high) const {
    return low > static_cast<double>(r_) * std::numeric_limits<double>::epsilon() * high;
  }

  // Each lane has its own nodes, scaled to the middle of its spectrum; missing nodes have weight 0.
  index_t choose_nodes(const double* low, const double* high) {
    const index_t lanes = kernels_.lanes;
    const LogRule* rules[kMaxLanes];
    double middles[kMaxLanes];
    std::size_t count = 0;
    for (index_t lane = 0; lane < lanes; ++lane) {
      const bool good = positive(low[lane], high[lane]);
      const double least = good ? low[lane] : 1.0;
      const double most = good ? high[lane] : 1.0;
      middles[lane] = std::sqrt(least) * std::sqrt(most);
      rules[lane] = &LogRule::of(most / least);
      shifts_[lane] = std::log(middles[lane]) + exponents_[lane] * std::log(2.0);
      count = std::max(count, rules[lane]->nodes.size());
    }
    for (std::size_t j = 0; j < count; ++j) {
      for (index_t lane = 0; lane < lanes; ++lane) {
        const std::vector<LogRule::Node>& own = rules[lane]->nodes;
        const LogRule::Node node = j < own.size() ? own[j] : LogRule::Node{1.0, 0.0, 0.0};
        double* to = nodes_.data() + static_cast<index_t>(j) * lanes + lane;
        to[0] = middles[lane] * node.shift;
        to[kMaxNodes * lanes] = middles[lane] * node.weight;
        to[2 * kMaxNodes * lanes] = node.constant;
      }
    }
    return static_cast<index_t>(count);
  }

  Status judge(index_t lane, double low, double high, double* extremes) const {
    extremes[0] = std::ldexp(low, exponents_[lane]);
    extremes[1] = std::ldexp(high, exponents_[lane]);
    if (sound_[lane]) return positive(low, high) ? Status::ok : Status::not_positive_definite;
    extremes[0] = extremes[1] = std::numeric_limits<double>::quiet_NaN();
    return Status::not_positive_definite;
  }

  static constexpr index_t kMaxLanes = 16;
  static constexpr index_t kMaxNodes = 176;  // rules have up to 168 nodes
  const LaneLogKernels& kernels_;
  index_t d_, r_;
  AlignedBuffer<double> inputs_, products_, reduced_, logs_, vectors_, nodes_, work_;
  std::vector<double*> entries_;  // entries of the inputs
  bool sound_[kMaxLanes] = {};
  int exponents_[kMaxLanes] = {};
  double shifts_[kMaxLanes] = {};
};

// For each column, the row from which on it is 0; an upper triangle takes half of the products.
std::vector<index_t> ends_of(MatrixView<const double> w) {
  std::vector<index_t> ends(static_cast<std::size_t>(w.cols));
  for (index_t j = 0; j < w.cols; ++j) {
    index_t end = w.rows;
    while (end > 0 && w(end - 1, j) == 0.0) --end;
    ends[static_cast<std::size_t>(j)] = end;
  }
  return ends;
}

// to <- from minus its mean, which is computed from several partial sums.
template <class T>
void centre(const T* from, index_t n, double* to) {
  constexpr index_t width = 8;
  double sums[width] = {};
  const index_t whole = n - n % width;
  for (index_t j = 0; j < whole; j += width) {
    for (index_t l = 0; l < width; ++l) sums[l] += static_cast<double>(from[j + l]);
  }
  double sum = 0.0;
  for (const double part : sums) sum += part;
  for (index_t j = whole; j < n; ++j) sum += static_cast<double>(from[j]);
  const double mean = sum / static_cast<double>(n);
  for (index_t j = 0; j < n; ++j) to[j] = static_cast<double>(from[j]) - mean;
}

// Computes logarithms of matrices in blocks of the number of lanes, and calls a function for each
// block with the index of its first matrix.
template <class F>
void for_lanes(MatrixView<const double> matrices, MatrixView<const double> whitening,
               MatrixView<double> extremes, VectorView<int> status, int n_threads, F&& f) {
  const index_t n = matrices.rows, d = whitening.rows, r = whitening.cols;
  require(d >= 1 && r >= 1 && r <= d, "whitening", "shape (d, r) with 1 <= r <= d",
          "(" + std::to_string(d) + ", " + std::to_string(r) + ")");
  require(matrices.cols == d * d && (n <= 1 || matrices.is_row_major()), "matrices",
          std::to_string(d * d) + " contiguous entries each", std::to_string(matrices.cols));
  require(whitening.is_row_major() && whitening.row_stride == r, "whitening", "contiguous rows",
          shape_text(whitening) + " with row stride " + std::to_string(whitening.row_stride));
  require(extremes.rows == n && extremes.cols == 2 && status.size == n, "extremes, status",
          "arrays of " + std::to_string(n) + " matrices",
          shape_text(extremes) + " and " + std::to_string(status.size));
  const std::vector<index_t> ends = ends_of(whitening);
  const index_t lanes = kernels<LaneLogKernels>().lanes;
  const double width = static_cast<double>(d);
  const int threads = threads_for(static_cast<double>(n) * 8.0 * width * width * width, n_threads);
  PerThread<Vector<Block>> blocks(threads);
  for_ranges(n, lanes, threads, [&](index_t first, index_t, int thread) {
    if (blocks[thread].empty()) blocks[thread].emplace_back(d, r);
    Block& block = blocks[thread].front();
    block.take(matrices, whitening, ends.data(), first, extremes, status);
    f(block, first);
  });
}

}  // namespace

void tangent_vectors(MatrixView<const double> matrices, MatrixView<const double> whitening,
                     MatrixView<double> vectors, int n_threads) {
  const index_t n = matrices.rows, r = whitening.cols;
  require(vectors.rows == n && vectors.cols == r * (r + 1) / 2, "vectors",
          "those of " + std::to_string(n) + " matrices", shape_text(vectors));
  Vector<double> extremes(2 * n);
  Vector<int> states(n);
  const VectorView<int> status{states.data(), n};
  for_lanes(matrices, whitening, row_major(extremes.data(), n, 2), status, n_threads,
            [&](Block& block, index_t first) { block.write(first, status, vectors); });
}

void mean_tangent_vector(MatrixView<const double> matrices, VectorView<const double> weights,
                         MatrixView<const double> whitening, VectorView<double> mean,
                         MatrixView<double> extremes, VectorView<int> status, int n_threads) {
  const index_t n = matrices.rows, lanes = kernels<LaneLogKernels>().lanes;
  require(weights.size == n && mean.size == whitening.cols * (whitening.cols + 1) / 2,
          "weights, mean", "those of " + std::to_string(n) + " matrices",
          std::to_string(weights.size) + " and " + std::to_string(mean.size));
  Vector<double> sums((n + lanes - 1) / lanes * mean.size);
  for_lanes(matrices, whitening, extremes, status, n_threads,
            [&](const Block& block, index_t first) {
              block.add(first, weights, sums.data() + first / lanes * mean.size);
            });
  std::fill(mean.data, mean.data + mean.size, 0.0);
  for (index_t first = 0; first < n; first += lanes) {
    const double* sum = sums.data() + first / lanes * mean.size;
    for (index_t i = 0; i < mean.size; ++i) mean[i] += sum[i];
  }
}

template <class T>
void epoch_covariances(MatrixView<const T> epochs, index_t channels, MatrixView<double> covariances,
                       int n_threads) {
  const index_t n = epochs.rows;
  require(channels >= 1 && epochs.cols >= channels && epochs.cols % channels == 0, "channels",
          "a divisor of " + std::to_string(epochs.cols), std::to_string(channels));
  require(epochs.is_row_major() && (n <= 1 || covariances.is_row_major()), "epochs, covariances",
          "contiguous rows", shape_text(epochs) + " and " + shape_text(covariances));
  require(covariances.rows == n && covariances.cols == channels * channels, "covariances",
          "shape (" + std::to_string(n) + ", " + std::to_string(channels * channels) + ")",
          shape_text(covariances));
  const index_t times = epochs.cols / channels;
  const double c = static_cast<double>(channels), t = static_cast<double>(times);
  const int threads = threads_for(static_cast<double>(n) * c * c * t, n_threads);
  PerThread<AlignedBuffer<double>> scratch(threads);
  for_ranges(n, 1, threads, [&](index_t item, index_t, int thread) {
    scratch[thread].reserve(channels * times);
    double* centred = scratch[thread].data();
    for (index_t i = 0; i < channels; ++i)
      centre(epochs.row(item) + i * times, times, centred + i * times);
    const auto X = column_major<const double>(centred, times, channels);
    const auto C = column_major(covariances.row(item), channels, channels);
    syrk(Triangle::upper, Op::transpose, 1.0 / t, X, 0.0, C);
    for (index_t j = 0; j < channels; ++j) {
      for (index_t i = 0; i < j; ++i) C(j, i) = C(i, j);
    }
  });
}

template void epoch_covariances(MatrixView<const float>, index_t, MatrixView<double>, int);
template void epoch_covariances(MatrixView<const double>, index_t, MatrixView<double>, int);

}  // namespace eigenfeat
