// The kernels that decide incomplete rows with 1, 2 and 7 threads: no data race and the same bits.
#include <doctest/doctest.h>

#include "eigenfeat/dominance.hpp"
#include "eigenfeat/prefix_gaussian.hpp"
#include "eigenfeat/trust_region.hpp"
#include "eigenfeat/vector.hpp"
#include "unit/support.hpp"

using namespace eigenfeat;
using namespace eigenfeat::support;

namespace {

constexpr index_t kRows = 1500, kWidth = 40, kClasses = 4;

Vector<double> minima(const Matrix<double>& a, const Matrix<double>& g, bool dense, int n_threads) {
  const index_t n = g.rows(), d = g.cols();
  const Vector<double> radii(n, 1.0);
  Vector<double> values(n), multipliers(n), gaps(n), residuals(n), out;
  Vector<int> hard(n), iterations(n), status(n);
  Matrix<double> points(n, d);
  minimise_over_ball({a.read(), g.read(), read(radii), dense},
                     {write(values), points.view(), write(multipliers), write(gaps),
                      write(residuals), write(hard), write(iterations), write(status)},
                     n_threads);
  out = values;
  for (index_t i = 0; i < n; ++i) out.insert(out.end(), &points(i, 0), &points(i, 0) + d);
  return out;
}

Vector<double> largest_radii(const DominanceProblem& problem, int n_threads) {
  Vector<double> largest(problem.points.rows);
  dominance_radii(problem, write(largest), n_threads);
  return largest;
}

}  // namespace

TEST_CASE("minima over balls and dominance are the same for every number of threads") {
  Random random(901);
  const Matrix<double> a = random.normal_matrix<double>(kRows, kWidth);
  const Matrix<double> g = random.normal_matrix<double>(kRows, kWidth);
  Matrix<double> positive(kRows, kClasses * kWidth), width(kRows, kWidth),
      dense(12 * kWidth, kWidth), few(12, kWidth);
  for (index_t i = 0; i < kRows; ++i) {
    for (index_t j = 0; j < kWidth; ++j) width(i, j) = random.uniform();
    for (index_t j = 0; j < kClasses * kWidth; ++j) positive(i, j) = random.uniform();
  }
  for (index_t i = 0; i < 12; ++i) {
    const Matrix<double> one = random.symmetric<double>(kWidth);
    for (index_t j = 0; j < kWidth; ++j) {
      few(i, j) = random.normal();
      for (index_t k = 0; k < kWidth; ++k) dense(i * kWidth + j, k) = one(j, k);
    }
  }
  const Matrix<double> centres = random.normal_matrix<double>(kRows, kClasses * kWidth);
  const Matrix<double> offsets = random.normal_matrix<double>(kRows, kClasses);
  const Vector<double> radii(kRows, 0.3);
  DominanceProblem problem;
  problem.points = g.read();
  problem.widths = width.read();
  problem.radii = read(radii);
  problem.offsets = offsets.read();
  problem.precisions = positive.read();
  problem.centres = centres.read();
  const auto diagonal = minima(a, g, false, 1), tridiagonal = minima(dense, few, true, 1);
  const auto decided = largest_radii(problem, 1);
  for (const int threads : {2, 7}) {
    CHECK(same_bits(minima(a, g, false, threads), diagonal));
    CHECK(same_bits(minima(dense, few, true, threads), tridiagonal));
    CHECK(largest_radii(problem, threads) == decided);
  }
}

TEST_CASE("Gaussians of prefixes are the same for every number of threads") {
  Random random(902);
  const index_t d = 120, ell = 30, n = 400;
  const Matrix<double> covariance = random.positive_definite<double>(d, 0.2);
  const Matrix<double> features = random.normal_matrix<double>(d, ell);
  const Matrix<double> rows = random.normal_matrix<double>(n, d);
  const Vector<double> mean(d, 0.5), start(ell, 0.0);
  Matrix<double> factor(d, d);
  REQUIRE(factorise_covariance(covariance.read(), factor.view()) == Status::ok);
  const Vector<index_t> steps{1, 20, 60, 120};
  const auto everything = [&](int threads) {
    Matrix<double> gains(d, ell), innovations(n, d), log_densities(n, 4);
    Vector<double> means(n * 4 * ell), covariances(4 * ell * ell);
    prefix_gains(factor.read(), features.read(), gains.view(), threads);
    prefix_innovations(factor.read(), read(mean), rows.read(), innovations.view(), threads);
    prefix_means(gains.read(), read(start), innovations.read(), read(steps), write(means), threads);
    prefix_covariances(gains.read(), read(steps), write(covariances), threads);
    prefix_log_densities(factor.read(), innovations.read(), read(steps), log_densities.view(),
                         threads);
    means.insert(means.end(), covariances.begin(), covariances.end());
    for (index_t i = 0; i < n; ++i) means.push_back(log_densities(i, 3));
    return means;
  };
  const auto expected = everything(1);
  CHECK(same_bits(everything(2), expected));
  CHECK(same_bits(everything(7), expected));
}
