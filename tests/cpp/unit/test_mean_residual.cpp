// Squared distances of rows from the span of the others, against an inverse in long double.
#include <doctest/doctest.h>

#include <cmath>
#include <stdexcept>

#include "eigenfeat/logit.hpp"
#include "eigenfeat/vector.hpp"
#include "unit/features_support.hpp"

using namespace eigenfeat;
using namespace eigenfeat::support;

// Definition: min over a of |sqrt(w_i) D phi_i - sum_j a_j sqrt(w_j) D phi_j|^2 + ridge |a|^2.
TEST_CASE_TEMPLATE("the mean residual agrees with its definition", T, float, double) {
  Random random(332);
  for (const index_t n : {1, 2, 9, 300}) {
    const Features<T> features(random, Kind::dense, n, 20, true);
    const index_t p = features.rows.cols();
    Vector<double> weights(n), scale(p);
    for (index_t i = 0; i < n; ++i) weights[i] = 0.5 + static_cast<double>(i % 3);
    for (index_t j = 0; j < p; ++j) scale[j] = 0.5 + static_cast<double>(j % 4);
    const double ridge = 2.0;
    linear::Table rows(n, p);
    for (index_t i = 0; i < n; ++i) {
      const long double root = std::sqrt(static_cast<long double>(weights[i]));
      for (index_t j = 0; j < p; ++j)
        rows(i, j) = root * static_cast<long double>(scale[j]) * features.phi(i, j);
    }
    linear::Table kernel(n, n), inverse(n, n);
    long double expected = 0, largest = 0;
    for (index_t i = 0; i < n; ++i) {
      inverse(i, i) = 1.0L;
      for (index_t j = 0; j < n; ++j) {
        for (index_t f = 0; f < p; ++f) kernel(i, j) += rows(i, f) * rows(j, f);
      }
      largest = std::max(largest, kernel(i, i));
      kernel(i, i) += ridge;
    }
    REQUIRE(linear::factorise(kernel));
    linear::solve(kernel, inverse);
    for (index_t i = 0; i < n; ++i) expected += 1.0L / inverse(i, i) - ridge;
    expected /= static_cast<long double>(n);
    const double found = mean_residual<T>(features.rows, read(weights), read(scale), ridge, 2);
    const long double near =
        8 * epsilon<float>() * largest * static_cast<long double>(n) * (1 + largest / ridge);
    CHECK(std::fabs(static_cast<long double>(found) - expected) <= near);
    CHECK(found == mean_residual<T>(features.rows, read(weights), read(scale), ridge, 1));
  }
  const Features<T> features(random, Kind::dense, 6, 3, true);
  const Vector<double> five(5, 1.0);
  CHECK(starts_with(message_of<std::invalid_argument>(
                        [&] { mean_residual<T>(features.rows, {}, read(five), 1.0, 1); }),
                    "scale: expected 4 entries, got 5"));
}
