#include "eigenfeat/prefix_gaussian.hpp"

#include <algorithm>
#include <cmath>
#include <string>

#include "base/shape_text.hpp"
#include "base/vectors.hpp"
#include "eigenfeat/lapack.hpp"
#include "eigenfeat/parallel.hpp"
#include "eigenfeat/scratch.hpp"

namespace eigenfeat {
namespace {

constexpr double kHalfLogTwoPi = 0.91893853320467274178;  // log(2 pi) / 2
constexpr index_t kPrefixRows = 64;                       // rows of a task, enough for a fast gemm

void check_factor(MatrixView<const double> factor) {
  require(factor.rows == factor.cols && factor.is_row_major(), "factor",
          "a square row-major matrix", std::to_string(factor.rows) + " rows");
}

void check_gains(MatrixView<const double> gains, index_t n_steps) {
  require(gains.rows >= n_steps && gains.is_row_major(), "gains",
          "at least " + std::to_string(n_steps) + " rows, row-major", std::to_string(gains.rows));
}

void check_steps(VectorView<const index_t> steps, index_t most) {
  for (index_t p = 0; p < steps.size; ++p) {
    require(steps[p] >= 0 && steps[p] <= most && (p == 0 || steps[p] > steps[p - 1]), "steps",
            "ascending numbers in 0.." + std::to_string(most), std::to_string(steps[p]));
  }
}

double flops(index_t a, index_t b, index_t c) {
  return 2.0 * static_cast<double>(a) * static_cast<double>(b) * static_cast<double>(c);
}

// The terms of one innovation and its pivot L_ss in the log density.
double log_term(double e, double pivot) {
  return -0.5 * e * e - std::log(pivot) - kHalfLogTwoPi;
}

}  // namespace

Status factorise_covariance(MatrixView<const double> covariance, MatrixView<double> factor) {
  const index_t d = covariance.rows;
  check_factor(factor);
  require(covariance.cols == d && factor.rows == d, "covariance",
          "the factor's shape, " + shape_text(factor), shape_text(covariance));
  for (index_t i = 0; i < d; ++i) {
    for (index_t j = 0; j < d; ++j) factor(i, j) = j <= i ? covariance(i, j) : 0.0;
  }
  // The lower triangle in row-major order is the upper triangle in column-major order.
  return potrf(Triangle::upper, factor.transposed()) == 0 ? Status::ok
                                                          : Status::not_positive_definite;
}

void prefix_gains(MatrixView<const double> factor, MatrixView<const double> features,
                  MatrixView<double> gains, int n_threads) {
  check_factor(factor);
  const index_t d = factor.rows, ell = features.cols;
  require(features.rows == d && features.is_row_major(), "features", std::to_string(d) + " rows",
          std::to_string(features.rows));
  require(gains.rows == d && gains.cols == ell && gains.is_row_major(), "gains",
          "the features' shape, " + shape_text(d, ell), shape_text(gains));
  for_ranges(d, kPrefixRows, threads_for(flops(d, d, ell), n_threads),
             [&](index_t begin, index_t end, int) {
               // Rows of L before `begin` are zero in these columns.
               gemm<double>(Op::none, Op::transpose, 1.0,
                            features.block(begin, 0, d - begin, ell).transposed(),
                            factor.block(begin, begin, d - begin, end - begin).transposed(), 0.0,
                            gains.block(begin, 0, end - begin, ell).transposed());
             });
}

void prefix_innovations(MatrixView<const double> factor, VectorView<const double> mean,
                        MatrixView<const double> rows, MatrixView<double> innovations,
                        int n_threads) {
  check_factor(factor);
  const index_t t = innovations.cols, n = rows.rows;
  require(t <= factor.rows && t <= rows.cols && t <= mean.size, "innovations",
          "at most as many columns as entries", std::to_string(t));
  require(innovations.rows == n && innovations.is_row_major(), "innovations",
          std::to_string(n) + " rows", std::to_string(innovations.rows));
  if (t == 0) return;
  for_ranges(n, kPrefixRows, threads_for(flops(n, t, t) / 2, n_threads),
             [&](index_t begin, index_t end, int) {
               for (index_t i = begin; i < end; ++i) {
                 for (index_t s = 0; s < t; ++s) innovations(i, s) = rows(i, s) - mean[s];
               }
               trsm<double>(Side::left, Triangle::upper, Op::transpose, 1.0,
                            factor.block(0, 0, t, t).transposed(),
                            innovations.block(begin, 0, end - begin, t).transposed());
             });
}

void prefix_means(MatrixView<const double> gains, VectorView<const double> mean,
                  MatrixView<const double> innovations, VectorView<const index_t> steps,
                  VectorView<double> out, int n_threads) {
  const index_t n = innovations.rows, ell = gains.cols, p = steps.size;
  check_steps(steps, innovations.cols);
  check_gains(gains, p > 0 ? steps[p - 1] : 0);
  require(mean.size == ell, "mean", std::to_string(ell) + " entries", std::to_string(mean.size));
  require(out.size == n * p * ell, "out", std::to_string(n * p * ell) + " entries",
          std::to_string(out.size));
  if (p == 0) return;
  for_ranges(n, 8, threads_for(flops(n, steps[p - 1], ell), n_threads),
             [&](index_t begin, index_t end, int) {
               for (index_t i = begin; i < end; ++i) {
                 const double* before = mean.data;
                 index_t s = 0;
                 for (index_t k = 0; k < p; ++k) {
                   double* now = out.data + (i * p + k) * ell;
                   std::copy(before, before + ell, now);
                   for (; s < steps[k]; ++s)
                     add_multiple(innovations(i, s), gains.row(s), ell, now);
                   before = now;
                 }
               }
             });
}

void prefix_log_densities(MatrixView<const double> factor, MatrixView<const double> innovations,
                          VectorView<const index_t> steps, MatrixView<double> out, int n_threads) {
  check_factor(factor);
  check_steps(steps, std::min(innovations.cols, factor.rows));
  const index_t n = innovations.rows, p = steps.size;
  require(out.rows == n && out.cols == p, "out", std::to_string(n) + " rows",
          std::to_string(out.rows));
  if (p == 0) return;
  for_ranges(n, kPrefixRows, threads_for(20 * flops(n, steps[p - 1], 1), n_threads),
             [&](index_t begin, index_t end, int) {
               for (index_t i = begin; i < end; ++i) {
                 double sum = 0.0;
                 index_t s = 0;
                 for (index_t k = 0; k < p; ++k) {
                   for (; s < steps[k]; ++s) sum += log_term(innovations(i, s), factor(s, s));
                   out(i, k) = sum;
                 }
               }
             });
}

void prefix_covariances(MatrixView<const double> gains, VectorView<const index_t> steps,
                        VectorView<double> out, int n_threads) {
  const index_t d = gains.rows, ell = gains.cols, p = steps.size;
  check_steps(steps, d);
  check_gains(gains, d);
  require(out.size == p * ell * ell, "out", std::to_string(p * ell * ell) + " entries",
          std::to_string(out.size));
  if (p == 0) return;
  constexpr index_t kLines = 16;  // rows of a covariance that a task adds up
  const int threads = threads_for(flops(d, ell, ell), n_threads);
  PerThread<AlignedBuffer<double>> sums(threads);
  for_ranges(ell, kLines, threads, [&](index_t begin, index_t end, int thread) {
    AlignedBuffer<double>& sum = sums[thread];
    sum.reserve(kLines * ell);
    std::fill(sum.data(), sum.data() + (end - begin) * ell, 0.0);
    index_t s = d;
    for (index_t k = p; k-- > 0;) {
      while (s > steps[k]) {
        const double* gain = gains.row(--s);
        for (index_t i = begin; i < end; ++i) {
          if (gain[i] != 0.0) add_multiple(gain[i], gain, ell, sum.data() + (i - begin) * ell);
        }
      }
      std::copy(sum.data(), sum.data() + (end - begin) * ell,
                out.data + k * ell * ell + begin * ell);
    }
  });
}

void prefix_variances(MatrixView<const double> gains, VectorView<const index_t> steps,
                      MatrixView<double> out) {
  const index_t d = gains.rows, ell = gains.cols, p = steps.size;
  check_steps(steps, d);
  check_gains(gains, d);
  require(out.rows == p && out.cols == ell && out.is_row_major(), "out",
          std::to_string(p) + " rows", std::to_string(out.rows));
  index_t s = d;
  for (index_t k = p; k-- > 0;) {
    double* now = out.row(k);
    if (k + 1 < p) {
      std::copy(out.row(k + 1), out.row(k + 1) + ell, now);
    } else {
      std::fill(now, now + ell, 0.0);
    }
    while (s > steps[k]) kernels<SumKernels>().add_squares(gains.row(--s), ell, now);
  }
}

}  // namespace eigenfeat
