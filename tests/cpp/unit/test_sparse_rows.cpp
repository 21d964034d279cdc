// Sparse rows times dense blocks against plain loops: types, widths, blocks of wider matrices,
// threads and misuse.
#include <doctest/doctest.h>

#include <cmath>

#include "eigenfeat/sparse_rows.hpp"
#include "eigenfeat/vector.hpp"
#include "unit/support.hpp"

using namespace eigenfeat;
using namespace eigenfeat::support;

namespace {

// The arrays of random_sparse with 32-bit columns.
template <class T>
struct Compact {
  explicit Compact(SparseRows<T> source)
      : rows(std::move(source)), indices(rows.indices.begin(), rows.indices.end()) {}
  CompactRows<T> view() const {
    return {rows.values.data(), indices.data(), rows.indptr.data(), rows.indptr.size() - 1,
            rows.cols};
  }
  SparseRows<T> rows;
  Vector<std::int32_t> indices;
};

template <class T>
Compact<T> make(index_t rows, index_t cols, double density, std::uint64_t seed) {
  Random random(seed);
  return Compact<T>(random_sparse<T>(random, rows, cols, density));
}

// The number of entries whose error exceeds |sum| eps (terms + 1).
template <class T, class S>
index_t count_off(const Compact<T>& x, const Matrix<S>& v, const Matrix<S>& before,
                  const Matrix<S>& after, bool add) {
  const Matrix<T> dense = x.rows.dense();
  index_t off = 0;
  for (index_t i = 0; i < after.rows(); ++i) {
    for (index_t c = 0; c < after.cols(); ++c) {
      long double sum = add ? static_cast<long double>(before(i, c)) : 0.0L;
      long double size = std::fabs(sum);
      for (index_t j = 0; j < dense.cols(); ++j) {
        const long double term =
            static_cast<long double>(dense(i, j)) * static_cast<long double>(v(j, c));
        sum += term;
        size += std::fabs(term);
      }
      const long double bound = size * epsilon<S>() * static_cast<long double>(dense.cols() + 1);
      if (!(std::fabs(static_cast<long double>(after(i, c)) - sum) <= bound)) ++off;
    }
  }
  return off;
}

template <class T, class S>
void check_products(index_t width, bool add) {
  const Compact<T> x = make<T>(61, 40, 0.2, 7);
  Random random(8);
  const Matrix<S> v = random.normal_matrix<S>(40, width, Order::rows, 3);
  const Matrix<S> before = random.normal_matrix<S>(61, width, Order::rows, 5);
  Matrix<S> out = before;
  multiply_rows<T, S>(x.view(), v.read(), out.view(), add, 2);
  CHECK(count_off(x, v, before, out, add) == 0);
  CHECK(out.padding_untouched());
}

}  // namespace

TEST_CASE("sparse rows: products agree with plain loops for every width") {
  for (const index_t width : {0, 1, 3, 4, 7, 8, 12, 16, 31, 32, 45, 64, 97}) {
    for (const bool add : {false, true}) {
      CAPTURE(width);
      check_products<double, double>(width, add);
      check_products<float, double>(width, add);
      check_products<float, float>(width, add);
    }
  }
}

TEST_CASE("sparse rows: every number of threads gives the same bits") {
  const Compact<float> x = make<float>(9000, 300, 0.1, 3);  // several tasks
  Random random(4);
  const Matrix<double> v = random.normal_matrix<double>(300, 20);
  Vector<Vector<double>> results;
  for (const int threads : {1, 2, 7}) {
    Vector<double> out(9000 * 20);
    multiply_rows<float, double>(x.view(), v.read(), row_major(out.data(), 9000, 20), false,
                                 threads);
    results.push_back(out);
  }
  CHECK(same_bits(results[0], results[1]));
  CHECK(same_bits(results[0], results[2]));
}

TEST_CASE("sparse rows: products with the transpose") {
  const Compact<double> x = make<double>(30, 50, 0.15, 5);
  const index_t entries = x.indices.size();
  Vector<double> values(entries);
  Vector<std::int32_t> indices(entries);
  Vector<index_t> indptr(51);
  transpose_rows<double>(x.view(), write(values), write(indices), write(indptr));
  const CompactRows<double> transposed{values.data(), indices.data(), indptr.data(), 50, 30};
  check_rows(transposed);
  Matrix<double> unit(30, 30);
  for (index_t i = 0; i < 30; ++i) unit(i, i) = 1.0;
  Matrix<double> out(50, 30);
  multiply_rows<double, double>(transposed, unit.read(), out.view(), false, 1);
  const Matrix<double> dense = x.rows.dense();
  index_t off = 0;
  for (index_t i = 0; i < 30; ++i) {
    for (index_t j = 0; j < 50; ++j) off += out(j, i) == dense(i, j) ? 0 : 1;
  }
  CHECK(off == 0);
}

TEST_CASE("sparse rows: errors name the argument") {
  Compact<double> x = make<double>(5, 6, 0.5, 9);
  Matrix<double> v(7, 2), out(5, 2);
  CHECK(starts_with(message_of<std::invalid_argument>([&] {
                      multiply_rows<double, double>(x.view(), v.read(), out.view(), false, 1);
                    }),
                    "V: expected 6 rows"));
  Matrix<double> good(6, 3);
  CHECK(starts_with(message_of<std::invalid_argument>([&] {
                      multiply_rows<double, double>(x.view(), good.read(), out.view(), false, 1);
                    }),
                    "out: expected shape (5, 3)"));
  x.indices[0] = 6;
  CHECK(starts_with(message_of<std::invalid_argument>([&] { check_rows(x.view()); }),
                    "indices: expected columns in [0, 6)"));
  x.indices[0] = 0;
  x.rows.indptr[0] = 1;
  CHECK(starts_with(message_of<std::invalid_argument>([&] { check_rows(x.view()); }),
                    "indptr: expected a leading 0"));
}
