#include "logit/byte_panel.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include "base/byte_products.hpp"
#include "eigenfeat/parallel.hpp"

namespace eigenfeat {
namespace {

constexpr float kMaxDeviations = 16.0F;  // largest range, in root mean squares
constexpr index_t kOneOutside = 16;      // one of this many rows may be outside the ranges
constexpr float kSteps = 255.0F;         // steps of the range of a byte
constexpr float kMinSquare = 1e-30F;     // columns with smaller mean squares count as zero

}  // namespace

BytePanel::BytePanel(index_t most_rows, index_t n_features)
    : n_features_(n_features),
      strips_((n_features + kStrip - 1) / kStrip),
      lines_(AlignedBuffer<float>::zeros(most_rows * strips_ * kStrip)),
      factors_(strips_ * kStrip),
      shifts_(strips_ * kStrip),
      steps_(strips_ * kStrip),
      offsets_(strips_ * kStrip),
      totals_(strips_ * kStrip),
      sums_(strips_ * kStrip),
      packed_((most_rows + 3) / 4 * strips_ * kStrip) {}

// Sorts rows into rows inside and outside the ranges, and sets steps and offsets of the columns.
void BytePanel::choose_ranges(index_t n, int n_threads) {
  const index_t width = strips_ * kStrip;
  const auto& kernel = kernels<ByteKernels>();
  AlignedBuffer<float> low(width), high(width), root(width), inverse(width);
  for_blocks(strips_, n_threads, [&](index_t s, int) {
    const index_t first = s * kStrip;
    kernel.ranges(lines_.data() + first, width, n, low.data() + first, high.data() + first,
                  root.data() + first);
    for (index_t j = first; j < first + kStrip; ++j) {
      const float square = root[j] / static_cast<float>(n);
      root[j] = square > kMinSquare ? std::sqrt(square) : 0.0F;
      inverse[j] = root[j] > 0.0F ? std::max(1.0F / root[j], kMinSquare) : 0.0F;
    }
  });
  Vector<float> ratios(n);
  for_ranges(n, 64, n_threads, [&](index_t begin, index_t end, int) {
    for (index_t r = begin; r < end; ++r)
      ratios[r] = kernel.largest_product(lines_.data() + r * width, inverse.data(), width);
  });
  Vector<float> sorted(ratios);
  const auto most = sorted.begin() + (n - 1 - n / kOneOutside);
  std::nth_element(sorted.begin(), most, sorted.end());
  // Rows that are not finite are outside, so that float products show the error.
  const float limit = std::min(std::max(*most, kMaxDeviations), std::numeric_limits<float>::max());
  inside_.clear();
  outside_.clear();
  for (index_t r = 0; r < n; ++r) (ratios[r] <= limit ? inside_ : outside_).push_back(r);
  for (index_t j = 0; j < width; ++j) {
    const float reach = limit * root[j], end = std::min(high[j], reach),
                begin = std::max(low[j], -reach), step = (end - begin) / kSteps;
    const bool some = std::isfinite(step) && step > 0.0F && std::isfinite(1.0F / step);
    steps_[j] = some ? static_cast<double>(step) : 0.0;
    factors_[j] = some ? 1.0F / step : 0.0F;
    shifts_[j] = some ? std::nearbyint(-begin * factors_[j]) : 0.0F;
    offsets_[j] = static_cast<std::int32_t>(shifts_[j]);
  }
}

void BytePanel::pack(index_t n, int n_threads) {
  choose_ranges(n, n_threads);
  const index_t width = strips_ * kStrip, count = inside_.size();
  entries_ = (count + 3) / 4;
  const AlignedBuffer<float> none = AlignedBuffer<float>::zeros(kStrip);
  for_blocks(strips_, n_threads, [&](index_t s, int) {
    const index_t first = s * kStrip;
    std::fill(totals_.begin() + first, totals_.begin() + first + kStrip, 0);
    for (index_t e = 0; e < entries_; ++e) {
      const float* rows[4];
      for (index_t k = 0; k < 4; ++k) {
        const index_t r = 4 * e + k;
        rows[k] = r < count ? lines_.data() + inside_[r] * width + first : none.data();
      }
      kernels<ByteKernels>().pack_rounded(rows, factors_.data() + first, shifts_.data() + first,
                                          packed_.data() + (s * entries_ + e) * kStrip,
                                          totals_.data() + first);
    }
    for (index_t j = first; j < first + kStrip; ++j)
      sums_[j] = totals_[j] - static_cast<std::int32_t>(4 * entries_) * offsets_[j];
  });
}

void BytePanel::add_product(TileIndex at, index_t m, index_t n,
                            AlignedBuffer<std::int32_t>& products, double* sum) const {
  const index_t row = at.i * TiledLower<double>::kTile, column = at.j * TiledLower<double>::kTile;
  products.reserve(kStrip * kStrip);
  for (index_t j = 0; j < n; j += kStrip) {
    for (index_t i = row == column ? j : 0; i < m; i += kStrip) {
      std::fill(products.data(), products.data() + kStrip * kStrip, 0);
      const std::uint32_t *left = packed_.data() + (column + j) * entries_,
                          *right = packed_.data() + (row + i) * entries_;
      for (index_t e = 0; e < entries_; e += kEntriesAtOnce) {
        multiply_four(left + e * kStrip, right + e * kStrip, std::min(kEntriesAtOnce, entries_ - e),
                      products.data());
      }
      const CentredStrip strip{steps_.data() + row + i, offsets_.data() + row + i,
                               sums_.data() + row + i};
      for (index_t c = 0; c < std::min(kStrip, n - j); ++c) {
        const index_t k = column + j + c;
        kernels<ByteKernels>().add_centred(products.data() + c * kStrip,
                                           {steps_[k], offsets_[k], totals_[k]}, strip,
                                           std::min(kStrip, m - i), sum + (j + c) * m + i);
      }
    }
  }
}

}  // namespace eigenfeat
