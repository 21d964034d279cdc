// Feature rows of every kind that own their arrays, and their features by the formulas.
#pragma once

#include <cmath>
#include <string>

#include "eigenfeat/features.hpp"
#include "eigenfeat/vector.hpp"
#include "reference/expansion_reference.hpp"
#include "reference/logit_reference.hpp"
#include "unit/support.hpp"

namespace eigenfeat::support {

namespace linear = reference::linear;

enum class Kind { dense, sparse, stored, expanded, sparse_expanded, stored_with_input };

inline const Vector<Kind> kKinds{Kind::dense,    Kind::sparse,          Kind::stored,
                                 Kind::expanded, Kind::sparse_expanded, Kind::stored_with_input};

inline bool is_plain(Kind kind) {
  return kind == Kind::dense || kind == Kind::sparse;
}

// Multiples of 1/4 up to 2. Their products and sums of some hundred products are exact: half waves
// have no bounded slope near 0 and would magnify rounding errors.
template <class T>
void quarter(Matrix<T>& matrix) {
  for (index_t i = 0; i < matrix.rows(); ++i) {
    for (index_t j = 0; j < matrix.cols(); ++j)
      matrix(i, j) = std::max(T(-2), std::min(T(2), std::round(matrix(i, j) * 4) / 4));
  }
}

template <class T>
struct Features {
  Matrix<T> x, directions, projections;
  SparseRows<T> sparse;
  Vector<T> offset;
  FeatureRows<T> rows;
  linear::Table phi;

  // Has views of the members and must not be moved.
  Features(const Features&) = delete;
  Features& operator=(const Features&) = delete;

  // With an expansion, `columns` is the number of directions.
  Features(Random& random, Kind kind, index_t n, index_t columns, bool constant,
           const Expansion& expansion = {}, index_t padding = 1)
      : x(random.normal_matrix<T>(n, is_plain(kind) ? columns : 7, Order::rows, padding)),
        directions(random.normal_matrix<T>(7, is_plain(kind) ? 0 : columns, Order::rows, padding)),
        projections(n, is_plain(kind) ? 0 : columns, Order::rows, padding) {
    if (!is_plain(kind)) {
      quarter(x);
      quarter(directions);
      for (index_t f = 0; f < columns; ++f)
        offset.push_back(static_cast<T>(std::round(random.normal() * 4) / 4));
    }
    const bool is_sparse = kind == Kind::sparse || kind == Kind::sparse_expanded;
    if (is_sparse) thin(random);
    project();
    rows.constant = constant;
    if (is_sparse) {
      rows.sparse = sparse.view();
    } else if (kind != Kind::stored) {
      rows.dense = x.read();
    }
    if (!is_plain(kind)) expand_by(kind, expansion);
    write_features(kind);
  }

 private:
  // Two of three entries are zero, every 17th row is empty, columns are unordered and some repeat.
  void thin(Random& random) {
    sparse.cols = x.cols();
    for (index_t i = 0; i < x.rows(); ++i) {
      for (index_t j = x.cols() - 1; j >= 0; --j) {
        if (i % 17 == 3 || random.uniform() < 0.66) {
          x(i, j) = T(0);
        } else if (random.uniform() < 0.1) {
          sparse.add(j, static_cast<double>(x(i, j)));
          sparse.add(j, static_cast<double>(x(i, j)));
          x(i, j) *= 2;
        } else {
          sparse.add(j, static_cast<double>(x(i, j)));
        }
      }
      sparse.end_row();
    }
  }

  void project() {
    for (index_t i = 0; i < projections.rows(); ++i) {
      for (index_t f = 0; f < projections.cols(); ++f)
        projections(i, f) =
            static_cast<T>(reference::projection(x.read(), directions.read(), read(offset), i, f));
    }
  }

  void expand_by(Kind kind, const Expansion& expansion) {
    rows.expanded = true;
    rows.expansion = expansion;
    rows.expansion.include_input = expansion.include_input && kind != Kind::stored;
    if (kind == Kind::stored || kind == Kind::stored_with_input) {
      rows.projections = projections.read();
    } else {
      rows.directions = directions.read();
      rows.offset = read(offset);
    }
  }

  void write_features(Kind kind) {
    Vector<int> signs{1, -1};
    Vector<int> powers = rows.expansion.powers;
    if (rows.expansion.wave == Wave::none || rows.expansion.wave == Wave::polynomial) signs = {1};
    if (rows.expansion.wave == Wave::none) powers = {1};
    const bool input = is_plain(kind) || rows.expansion.include_input;
    const index_t waves = static_cast<index_t>(signs.size() * powers.size()) * projections.cols();
    const index_t inputs = input ? x.cols() : 0;
    phi = linear::Table(x.rows(), inputs + (is_plain(kind) ? 0 : waves) + (rows.constant ? 1 : 0));
    for (index_t i = 0; i < x.rows(); ++i) {
      index_t column = 0;
      for (; column < inputs; ++column) phi(i, column) = static_cast<long double>(x(i, column));
      for (const int sign : signs) {
        for (const int power : powers) {
          for (index_t f = 0; f < projections.cols(); ++f)
            phi(i, column++) = wave(static_cast<long double>(projections(i, f)), sign, power);
        }
      }
      if (rows.constant) phi(i, column) = 1;
    }
  }

  long double wave(long double p, int sign, int power) const {
    const long double z = static_cast<long double>(sign) * p;
    if (rows.expansion.wave == Wave::none) return p;
    if (rows.expansion.wave == Wave::polynomial) return std::pow(p, power);
    return rows.expansion.wave == Wave::half_wave ? reference::half_wave(z, power)
                                                  : reference::shifted_wave(z, power);
  }
};

// Bound of the rounding error of a sum of `terms` terms: 4 times a random walk's, and some eps for
// each term.
template <class T>
long double rounding(index_t terms) {
  return (4 * std::sqrt(static_cast<long double>(terms)) + 12) * epsilon<T>();
}

// The number of entries of `got` whose error exceeds `relative` times the sum's magnitude plus
// `absolute`.
template <class T>
index_t count_off(MatrixView<const T> got, const linear::Sum& expected, long double relative,
                  const linear::Table* absolute = nullptr) {
  index_t off = 0;
  for (index_t i = 0; i < got.rows; ++i) {
    for (index_t j = 0; j < got.cols; ++j) {
      const long double error =
          std::fabs(static_cast<long double>(got(i, j)) - expected.value(i, j));
      long double bound = relative * expected.magnitude(i, j) + 1e-300L;
      if (absolute != nullptr) bound += (*absolute)(i, j);
      off += error <= bound ? 0 : 1;
    }
  }
  return off + (got.rows == expected.value.rows && got.cols == expected.value.cols ? 0 : 1000000);
}

inline Vector<double> random_weights(Random& random, index_t n) {
  Vector<double> weights(n);
  for (double& weight : weights) weight = random.uniform() < 0.1 ? 0.0 : 3 * random.uniform();
  return weights;
}

}  // namespace eigenfeat::support
