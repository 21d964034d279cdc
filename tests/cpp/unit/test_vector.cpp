#include <doctest/doctest.h>

#include <memory>
#include <numeric>
#include <stdexcept>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "eigenfeat/vector.hpp"

namespace eigenfeat {
namespace {

TEST_CASE("sizes and indices of a vector are signed") {
  Vector<double> v(3);
  static_assert(std::is_same_v<decltype(v.size()), index_t>);
  CHECK(v.size() == 3);
  for (index_t i = 0; i < v.size(); ++i) CHECK(v[i] == 0.0);
  CHECK(v.size() - 4 == -1);
  CHECK(Vector<int>().empty());
  CHECK(Vector<int>(0).empty());
}

TEST_CASE("constructors tell a count and a value from iterators and from entries") {
  CHECK(Vector<index_t>(2, 7) == Vector<index_t>{7, 7});
  CHECK(Vector<int>(2, 7) == Vector<int>{7, 7});
  CHECK(Vector<int>{2, 7}.size() == 2);
  const std::vector<int> source{1, 2, 3};
  CHECK(Vector<int>(source.begin(), source.end()) == Vector<int>{1, 2, 3});
  CHECK(Vector<int>(source.data() + 1, source.data() + 3) == Vector<int>{2, 3});
  Vector<index_t> v{5};
  v.assign(2, 4);
  CHECK(v == Vector<index_t>{4, 4});
  v.assign(source.begin(), source.end());
  CHECK(v == Vector<index_t>{1, 2, 3});
}

TEST_CASE("a vector grows, shrinks, inserts and erases as std::vector does") {
  Vector<int> v;
  v.reserve(10);
  const int* data = v.data();
  for (int i = 0; i < 4; ++i) v.push_back(i);
  CHECK(v.emplace_back(9) == 9);
  CHECK(v.data() == data);
  v.insert(v.end(), 2, 5);
  const std::vector<int> more{6, 7};
  v.insert(v.begin() + 1, more.begin(), more.end());
  CHECK(v == Vector<int>{0, 6, 7, 1, 2, 3, 9, 5, 5});
  v.erase(v.begin() + 1, v.begin() + 6);
  CHECK(v == Vector<int>{0, 9, 5, 5});
  CHECK(v.front() == 0);
  CHECK(v.back() == 5);
  v.resize(5, 8);
  CHECK(v == Vector<int>{0, 9, 5, 5, 8});
  v.resize(1);
  CHECK(v == Vector<int>{0});
  v.clear();
  CHECK(v.empty());
  CHECK(v != Vector<int>{0});
}

TEST_CASE("iterators reach every entry") {
  Vector<int> v(5);
  std::iota(v.begin(), v.end(), 1);
  const Vector<int>& same = v;
  CHECK(std::accumulate(same.begin(), same.end(), 0) == 15);
  int product = 1;
  for (const int entry : same) product *= entry;
  CHECK(product == 120);
}

TEST_CASE("moving a vector moves its memory, copying does not") {
  Vector<std::string> a{"one", "two"};
  const std::string* data = a.data();
  Vector<std::string> b = a;
  CHECK(b.data() != data);
  Vector<std::string> c = std::move(a);
  CHECK(c.data() == data);
  CHECK(c == b);
  Vector<std::unique_ptr<int>> only(2);  // entries need not be copyable
  only.push_back(std::make_unique<int>(3));
  Vector<std::unique_ptr<int>> taken = std::move(only);
  CHECK(*taken.back() == 3);
}

TEST_CASE("a negative size is refused before memory is allocated") {
  CHECK_THROWS_AS(Vector<char>(-1), std::length_error);
  CHECK_THROWS_AS(Vector<char>(-1, 'a'), std::length_error);
  Vector<char> v{'a', 'b'};
  CHECK_THROWS_AS(v.resize(-1), std::length_error);
  CHECK_THROWS_AS(v.reserve(-1), std::length_error);
  CHECK(v == Vector<char>{'a', 'b'});
}

}  // namespace
}  // namespace eigenfeat
