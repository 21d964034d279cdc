// Views address the right entries, and buffers are aligned and own their memory.
#include <doctest/doctest.h>

#include <cstdint>
#include <string>
#include <type_traits>
#include <utility>

#include "eigenfeat/scratch.hpp"
#include "eigenfeat/status.hpp"
#include "eigenfeat/view.hpp"
#include "unit/support.hpp"

using namespace eigenfeat;

TEST_CASE("a matrix view addresses entries by strides") {
  //  1 2 3
  //  4 5 6
  double numbers[] = {1, 2, 3, 4, 5, 6};
  const MatrixView<double> rows = row_major(numbers, 2, 3);
  CHECK(rows(0, 2) == 3);
  CHECK(rows(1, 0) == 4);
  CHECK(rows.row(1)[2] == 6);
  CHECK(rows.is_row_major());
  CHECK_FALSE(rows.is_column_major());

  const MatrixView<double> columns = column_major(numbers, 2, 3);
  CHECK(columns(0, 2) == 5);
  CHECK(columns(1, 0) == 2);
  CHECK(columns.col(1)[0] == 3);
  CHECK(columns.is_column_major());
  CHECK_FALSE(columns.is_row_major());
}

TEST_CASE("a leading dimension skips padding") {
  double numbers[] = {1, 2, -1, 3, 4, -1};
  CHECK(row_major(numbers, 2, 2, 3)(1, 0) == 3);
  CHECK(column_major(numbers, 2, 2, 3)(1, 1) == 4);
}

TEST_CASE("a block and a transpose share the memory") {
  double numbers[] = {1, 2, 3, 4, 5, 6, 7, 8, 9};
  const MatrixView<double> whole = row_major(numbers, 3, 3);
  const MatrixView<double> corner = whole.block(1, 1, 2, 2);
  CHECK(corner.rows == 2);
  CHECK(corner(0, 0) == 5);
  CHECK(corner(1, 1) == 9);
  const MatrixView<double> flipped = whole.block(0, 1, 3, 2).transposed();
  CHECK(flipped.rows == 2);
  CHECK(flipped.cols == 3);
  CHECK(flipped(1, 2) == 9);
  CHECK(flipped.is_column_major());
  flipped(0, 0) = 20;
  CHECK(numbers[1] == 20);
}

TEST_CASE("mutable views convert to constant views, and not the reverse") {
  CHECK(std::is_convertible_v<MatrixView<double>, MatrixView<const double>>);
  CHECK(std::is_convertible_v<VectorView<float>, VectorView<const float>>);
  CHECK_FALSE(std::is_convertible_v<MatrixView<const double>, MatrixView<double>>);
  CHECK_FALSE(std::is_convertible_v<VectorView<const float>, VectorView<float>>);
  CHECK(VectorView<double>{}.empty());
}

TEST_CASE("a buffer starts at a cache line") {
  for (const index_t size : {index_t{1}, index_t{7}, index_t{1000}}) {
    AlignedBuffer<float> buffer(size);
    CHECK(buffer.size() == size);
    CHECK(reinterpret_cast<std::uintptr_t>(buffer.data()) % kAlignment == 0);
    for (index_t i = 0; i < size; ++i) buffer[i] = static_cast<float>(i);
    CHECK(buffer[size - 1] == static_cast<float>(size - 1));
  }
}

TEST_CASE("a buffer grows, never shrinks, and keeps its memory where it is large enough") {
  AlignedBuffer<double> buffer;
  CHECK(buffer.empty());
  buffer.reserve(0);
  CHECK(buffer.data() == nullptr);
  buffer.reserve(10);
  const double* before = buffer.data();
  buffer.reserve(4);
  CHECK(buffer.data() == before);
  CHECK(buffer.size() == 10);
  buffer.reserve(5000);
  CHECK(buffer.size() == 5000);
}

TEST_CASE("a buffer copies and moves") {
  AlignedBuffer<int> original = AlignedBuffer<int>::zeros(5);
  CHECK(original[4] == 0);
  original[2] = 7;
  AlignedBuffer<int> copy = original;
  copy[2] = 8;
  CHECK(original[2] == 7);
  const int* address = original.data();
  const AlignedBuffer<int> moved = std::move(original);
  CHECK(moved.data() == address);
  CHECK(moved[2] == 7);
  copy = moved;
  CHECK(copy[2] == 7);
  CHECK(copy.data() != moved.data());
  const AlignedBuffer<int> nothing = AlignedBuffer<int>();
  const AlignedBuffer<int> also_nothing = nothing;
  CHECK(also_nothing.empty());
}

TEST_CASE("slots of threads share no cache line") {
  PerThread<AlignedBuffer<double>> slots(3);
  slots[0].reserve(4);
  slots[2].reserve(6);
  CHECK(slots[0].size() == 4);
  CHECK(slots[1].empty());
  CHECK(slots[2].size() == 6);
}

TEST_CASE("the message of require has the name, the expected and the actual value") {
  CHECK_NOTHROW(require(true, "x", "a", "b"));
  const std::string message = support::message_of<std::invalid_argument>(
      [] { require(false, "ridge", "a number >= 0", "-1"); });
  CHECK(message == "ridge: expected a number >= 0, got -1");
}

TEST_CASE("every status has its own description") {
  const Status all[] = {Status::ok, Status::not_positive_definite, Status::not_converged,
                        Status::inaccurate};
  for (const Status status : all) {
    for (const Status other : all) {
      CHECK((std::string(describe(status)) == describe(other)) == (status == other));
    }
  }
}
