// Moments of bytes against 64-bit sums: the products of each tier, and long sums.
#include <doctest/doctest.h>

#include <cstdint>
#include <stdexcept>

#include "eigenfeat/moments.hpp"
#include "eigenfeat/vector.hpp"
#include "unit/support.hpp"

using namespace eigenfeat;
using namespace eigenfeat::support;

namespace {

Vector<std::uint8_t> random_bytes(index_t count) {
  Vector<std::uint8_t> out(count);
  std::uint64_t state = 11;
  for (index_t i = 0; i < count; ++i) {
    state = state * 6364136223846793005ULL + 1442695040888963407ULL;
    out[i] = static_cast<std::uint8_t>(state >> 56);
  }
  return out;
}

void check_bytes(const Vector<std::uint8_t>& x, index_t n, index_t d, index_t k) {
  Vector<std::int32_t> labels(n);
  for (index_t i = 0; i < n; ++i) labels[i] = static_cast<std::int32_t>(i % k);
  ClassMoments first(k, d), second(k, d);
  first.update(row_major(x.data(), n, d), read(labels), 1);
  second.update(row_major(x.data(), n, d), read(labels), 3);
  CHECK(first == second);
  index_t wrong = 0;
  for (index_t c = 0; c < k; ++c) {
    Vector<std::int64_t> sums(d, std::int64_t{0}), products(d * d, std::int64_t{0});
    std::int64_t count = 0;
    for (index_t i = c; i < n; i += k, ++count) {
      for (index_t a = 0; a < d; ++a) {
        sums[a] += x[i * d + a];
        for (index_t b = 0; b <= a; ++b)
          products[a * d + b] += static_cast<std::int64_t>(x[i * d + a]) * x[i * d + b];
      }
    }
    if (count == 0) continue;
    Vector<double> packed(d * (d + 1) / 2);
    first.packed_scatter(c, write(packed));
    index_t at = 0;
    for (index_t a = 0; a < d; ++a) {
      wrong += first.mean_high(c)[a] == static_cast<double>(sums[a]) / static_cast<double>(count)
                   ? 0
                   : 1;
      for (index_t b = 0; b <= a; ++b, ++at) {
        const std::int64_t centred = count * products[a * d + b] - sums[a] * sums[b];
        wrong += packed[at] == static_cast<double>(centred) / static_cast<double>(count) ? 0 : 1;
      }
    }
  }
  CHECK(wrong == 0);
}

}  // namespace

TEST_CASE("bytes: random rows of few and of many columns") {
  check_bytes(random_bytes(3), 1, 3, 1);
  check_bytes(random_bytes(7 * 5), 7, 5, 3);
  check_bytes(random_bytes(301 * 64), 301, 64, 2);
  check_bytes(random_bytes(530 * 131), 530, 131, 4);
}

TEST_CASE("bytes: sums of products beyond 32 bits") {
  const index_t n = 33100, d = 5;  // 33,026 times 255^2 is beyond 2^31
  check_bytes(Vector<std::uint8_t>(n * d, std::uint8_t{255}), n, d, 1);
}

TEST_CASE("bytes: columns that are zero in all classes or in one class") {
  const index_t n = 200, d = 90;
  Vector<std::uint8_t> x = random_bytes(n * d);
  for (index_t i = 0; i < n; ++i) {
    x[i * d + 4] = 0;
    for (index_t j = 20; i % 2 == 0 && j < 60; ++j) x[i * d + j] = 0;
  }
  check_bytes(x, n, d, 2);
  check_bytes(Vector<std::uint8_t>(n * d, std::uint8_t{0}), n, d, 2);
}

TEST_CASE("bytes: misuse names the argument and leaves the moments") {
  const Vector<std::uint8_t> x = random_bytes(12);
  const Vector<std::int32_t> wrong{0, 1, 2}, right{0, 1, 1};
  ClassMoments moments(2, 4), before(2, 4);
  moments.update(row_major(x.data(), 3, 4), read(right), 1);
  before.update(row_major(x.data(), 3, 4), read(right), 1);
  CHECK_THROWS_AS(moments.update(row_major(x.data(), 3, 4), read(wrong), 1), std::invalid_argument);
  CHECK_THROWS_AS(moments.update(row_major(x.data(), 4, 3), read(right), 1), std::invalid_argument);
  CHECK(moments == before);
}
