#include "moments/byte_moments.hpp"

#include <algorithm>
#include <string>

#include "base/byte_products.hpp"
#include "eigenfeat/parallel.hpp"
#include "eigenfeat/status.hpp"
#include "kernels/byte_kernels.hpp"

namespace eigenfeat {
namespace {

// Rows whose products are summed in 32 bits: 8,192 * 255^2 < 2^31.
constexpr index_t kRowsOfSums = 8192;
constexpr index_t kPanelOfBytes = index_t{1} << 24;  // bytes of a panel

double work_of(MatrixView<const std::uint8_t> rows) {
  const double width = static_cast<double>(rows.cols);
  return static_cast<double>(rows.rows) * width * (width + 10.0) / 4.0;
}

}  // namespace

ByteMoments::ByteMoments(MatrixView<const std::uint8_t> rows, VectorView<const std::int32_t> labels,
                         index_t n_classes, int n_threads)
    : rows_(rows),
      order_(labels, n_classes),
      n_threads_(threads_for(work_of(rows), n_threads)),
      four_(has_four_products()) {
  for (index_t c = 0; c < n_classes; ++c) {
    require(count(c) <= kMaxByteRows, "X",
            "at most " + std::to_string(kMaxByteRows) + " samples of a class in a batch of bytes",
            std::to_string(count(c)));
  }
}

void ByteMoments::form(index_t c, Vector<std::int64_t>& sums, double* scatter) {
  add_up(c, sums);
  choose_columns(sums);
  const index_t width = strips_ * kStrip, d = rows_.cols;
  products_.reserve(width * width);
  for_ranges(width, kStrip, n_threads_, [&](index_t begin, index_t end, int) {
    std::fill(products_.data() + begin * width, products_.data() + end * width, std::int64_t{0});
  });
  const index_t bytes = std::max<index_t>(width, 1) * (four_ ? 1 : 2);
  const index_t most = std::clamp<index_t>(kPanelOfBytes / bytes / 256 * 256, 256, kRowsOfSums);
  for (index_t begin = order_.begin[c]; begin < order_.begin[c + 1] && width > 0; begin += most) {
    pack(begin, std::min(begin + most, order_.begin[c + 1]));
    multiply();
  }
  const std::int64_t n = count(c);
  for_ranges(used_.size(), 16, n_threads_, [&](index_t begin, index_t end, int) {
    for (index_t i = begin; i < end; ++i) {
      const std::int64_t sum = sums[used_[i]], missing = four_ ? kSigned * sum : 0;
      const std::int64_t* line = products_.data() + i * width;
      double* row = scatter + used_[i] * d;
      for (index_t j = 0; j <= i; ++j) {
        const std::int64_t centred = n * (line[j] + missing) - sum * sums[used_[j]];
        row[used_[j]] = static_cast<double>(centred) / static_cast<double>(n);
      }
    }
  });
}

void ByteMoments::add_up(index_t c, Vector<std::int64_t>& sums) {
  const index_t d = rows_.cols, first = order_.begin[c], n = count(c);
  sums.assign(d, 0);
  const index_t tasks = (n + kRowsOfSums - 1) / kRowsOfSums;
  const index_t apart = (d + 15) / 16 * 16;
  // Few rows are divided by columns. The division does not depend on the number of threads.
  const index_t width = 256, parts = (d + width - 1) / width;
  AlignedBuffer<std::uint32_t> partial = AlignedBuffer<std::uint32_t>::zeros(tasks * apart);
  for_blocks(tasks * parts, n_threads_, [&](index_t b, int) {
    const index_t task = b / parts, at = b % parts * width, size = std::min(width, d - at);
    std::uint32_t* out = partial.data() + task * apart + at;
    const index_t end = std::min((task + 1) * kRowsOfSums, n);
    for (index_t p = task * kRowsOfSums; p < end; ++p)
      kernels<ByteKernels>().add_bytes(rows_.row(order_.rows[first + p]) + at, size, out);
  });
  for (index_t task = 0; task < tasks; ++task) {
    for (index_t j = 0; j < d; ++j) sums[j] += partial[task * apart + j];
  }
}

void ByteMoments::choose_columns(const Vector<std::int64_t>& sums) {
  used_.clear();
  for (index_t j = 0; j < sums.size(); ++j) {
    if (sums[j] > 0) used_.push_back(j);
  }
  strips_ = (used_.size() + kStrip - 1) / kStrip;
}

// Strips of the used columns, for rows [begin, end) of the order.
void ByteMoments::pack(index_t begin, index_t end) {
  const index_t rows = four_ ? 4 : 2, width = strips_ * kStrip;
  entries_ = (end - begin + rows - 1) / rows;
  panel_.reserve(strips_ * entries_ * kStrip);
  struct Run {
    index_t full, packed, length;
  };
  Vector<Run> runs;
  for (index_t k = 0; k < used_.size(); ++k) {
    if (runs.empty() || used_[k] != runs.back().full + runs.back().length)
      runs.push_back({used_[k], k, 0});
    ++runs.back().length;
  }
  const auto& kernel = kernels<ByteKernels>();
  for_ranges(entries_, kEntriesAtOnce, n_threads_, [&](index_t first, index_t last, int) {
    AlignedBuffer<std::uint8_t> lines = AlignedBuffer<std::uint8_t>::zeros(rows * width);
    for (index_t e = first; e < last; ++e) {
      for (index_t r = 0; r < rows; ++r) {
        std::uint8_t* line = lines.data() + r * width;
        const index_t p = begin + e * rows + r;
        if (p >= end) {
          std::fill(line, line + width, std::uint8_t{0});
          continue;
        }
        const std::uint8_t* from = rows_.row(order_.rows[p]);
        for (const Run& run : runs)
          std::copy(from + run.full, from + run.full + run.length, line + run.packed);
      }
      for (index_t s = 0; s < strips_; ++s) {
        const std::uint8_t* at[4] = {};
        for (index_t r = 0; r < rows; ++r) at[r] = lines.data() + r * width + s * kStrip;
        std::uint32_t* out = panel_.data() + (s * entries_ + e) * kStrip;
        if (four_) {
          kernel.pack_four(at, out);
        } else {
          kernel.pack_pair(at, out);
        }
      }
    }
  });
}

// Adds the products of the panel, for pairs of strips in the lower triangle.
void ByteMoments::multiply() {
  const auto product = four_ ? multiply_four : kernels<ByteKernels>().multiply_words;
  const index_t width = strips_ * kStrip, pairs = strips_ * (strips_ + 1) / 2;
  Vector<std::pair<index_t, index_t>> of;
  of.reserve(pairs);
  for (index_t s = 0; s < strips_; ++s) {
    for (index_t t = 0; t <= s; ++t) of.emplace_back(s, t);
  }
  PerThread<AlignedBuffer<std::int32_t>> scratch(n_threads_);
  for_blocks(pairs, n_threads_, [&](index_t b, int thread) {
    const auto [s, t] = of[b];
    AlignedBuffer<std::int32_t>& sums = scratch[thread];
    sums.reserve(kStrip * kStrip);
    std::fill(sums.data(), sums.data() + kStrip * kStrip, 0);
    const std::uint32_t *left = panel_.data() + s * entries_ * kStrip,
                        *right = panel_.data() + t * entries_ * kStrip;
    for (index_t e = 0; e < entries_; e += kEntriesAtOnce) {
      product(left + e * kStrip, right + e * kStrip, std::min(kEntriesAtOnce, entries_ - e),
              sums.data());
    }
    for (index_t i = 0; i < kStrip; ++i) {
      std::int64_t* line = products_.data() + (s * kStrip + i) * width + t * kStrip;
      for (index_t j = 0; j < kStrip; ++j) line[j] += sums[i * kStrip + j];
    }
  });
}

}  // namespace eigenfeat
