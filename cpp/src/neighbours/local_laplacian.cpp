#include "neighbours/local_laplacian.hpp"

#include <cmath>
#include <limits>

#include "base/tile_products.hpp"
#include "eigenfeat/vector.hpp"
#include "kernels/distance_kernels.hpp"

namespace eigenfeat {
namespace {

constexpr index_t kRows = 128;        // rows of a block, a multiple of a tile
constexpr index_t kTilesAtOnce = 16;  // tiles of a block in memory, if A is not stored
constexpr index_t kTile = kRows * kTileWidth;
// Up to this many columns, distances are computed instead of stored.
constexpr index_t kNarrow = 64;
constexpr index_t kMaxKept = 2048;  // maximum number of rows of a class whose A is stored
constexpr index_t kMaxHeld = kMaxKept * kMaxKept;  // numbers of all stored A at a time
constexpr index_t kGroups = 32;                    // maximum number of column sums of a class
constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr double kNoAffinity = -kInfinity;  // the inner product of rows without affinity

index_t blocks_in(index_t count) {
  return (count + kRows - 1) / kRows;
}

}  // namespace

Panels::Panels(index_t n, index_t d) : n_(n), d_(d) {
  const index_t last = count() - 1;
  numbers_ = AlignedBuffer<double>::zeros(n * (last * kTileWidth + width(last)));
}

index_t Panels::width(index_t p) const {
  return padded_width<double>(columns(p));
}

void LocalLaplacian::Scratch::start() {
  tiles.reserve(kTilesAtOnce * kTile);
  minima.reserve(kTile);
  limits.reserve(kRows);
}

LocalLaplacian::LocalLaplacian(const AffinityRows& rows, int n_threads)
    : given_(rows.rows),
      n_neighbors_(rows.n_neighbors),
      n_threads_(n_threads),
      scratch_(resolve_threads(n_threads)),
      x_(given_.rows, given_.cols),
      z_(given_.rows, given_.cols) {
  lay_out(rows.counts);
  Vector<index_t> wave, streamed;
  index_t held = 0;
  for (index_t i = 0; i < rows.counts.size; ++i) {
    AffinityClass& c = classes_[i];
    if (!c.kept) {
      streamed.push_back(i);
      continue;
    }
    const index_t numbers = c.count * c.padded();
    if (held + numbers > kMaxHeld) {
      work_on_kept(wave);
      wave.clear();
      held = 0;
    }
    c.held = held;
    held += numbers;
    wave.push_back(i);
  }
  work_on_kept(wave);
  work_on_streamed(streamed);
}

void LocalLaplacian::lay_out(VectorView<const index_t> counts) {
  index_t begin = 0, place = 0, sums = 0;
  for (index_t i = 0; i < counts.size; ++i) {
    AffinityClass c;
    c.begin = begin;
    c.count = counts[i];
    c.place = place;
    c.kept = given_.cols > kNarrow && c.count <= kMaxKept;
    if (!c.kept) {
      c.first_sum = sums;
      c.n_groups = std::min(blocks_in(c.count), kGroups);
      sums += c.n_groups * c.padded();
    }
    begin += c.count;
    place += c.padded();
    classes_.push_back(c);
  }
  for (auto* numbers : {&norms_, &affinity_norms_, &inverse_, &degrees_}) numbers->reserve(place);
  for (auto* numbers : {&norms_, &affinity_norms_})
    std::fill(numbers->data(), numbers->data() + place, kInfinity);
  std::fill(inverse_.data(), inverse_.data() + place, 1.0);
  std::fill(degrees_.data(), degrees_.data() + place, 0.0);
  column_sums_ = AlignedBuffer<double>::zeros(sums);
  transposed_.reserve(place * given_.cols);
}

Vector<LocalLaplacian::Block> LocalLaplacian::blocks_of(const Vector<index_t>& classes) const {
  Vector<Block> blocks;
  for (const index_t c : classes) {
    const index_t count = classes_[c].count;
    for (index_t first = 0; first < count; first += kRows)
      blocks.push_back({c, first, std::min(first + kRows, count)});
  }
  return blocks;
}

template <class F>
void LocalLaplacian::for_each(const Vector<Block>& blocks, F f) {
  for_blocks(blocks.size(), n_threads_, [&](index_t b, int thread) {
    Scratch& scratch = scratch_[thread];
    scratch.start();
    f(blocks[b], scratch);
  });
}

// ---- both kinds of classes -----------------------------------------------------------------------

// Norms and copies of the rows of a block.
void LocalLaplacian::pack(const Block& b) {
  const AffinityClass& c = class_of(b);
  const index_t d = given_.cols;
  for (index_t i = b.first; i < b.last; ++i) {
    const double* row = given_.row(c.begin + i);
    norms_[c.place + i] = kernels<DistanceKernels<double>>().squared_norm(row, d);
    for (index_t p = 0; p < x_.count(); ++p)
      std::copy_n(row + p * kTileWidth, x_.columns(p), x_.row(p, c.begin + i));
  }
  for (index_t i = b.first; i < b.last; i += kTileWidth)
    kernels<AffinityKernels>().pack_transposed(given_.row(c.begin + i), given_.row_stride,
                                               std::min(kTileWidth, b.last - i), d,
                                               transposed_.data() + (c.place + i) * d);
}

// out: inner products of the rows of the block and of a tile, without the product of a row with
// itself
void LocalLaplacian::multiply(const Block& b, index_t tile, double* out) const {
  const AffinityClass& c = class_of(b);
  const index_t d = given_.cols, first = tile * kTileWidth;
  std::fill(out, out + b.size() * kTileWidth, 0.0);
  add_scores<double>(given_.block(c.begin + b.first, 0, b.size(), d),
                     transposed_.data() + (c.place + first) * d, kTileWidth, kTileWidth, out);
  for (index_t i = std::max(first, b.first); i < std::min(first + kTileWidth, b.last); ++i)
    out[(i - b.first) * kTileWidth + i - first] = kNoAffinity;
}

// Adds affinities X to the rows of the block, in a panel of z.
void LocalLaplacian::add_products(const Block& b, index_t tile, const double* affinities,
                                  index_t panel) {
  const AffinityClass& c = class_of(b);
  add_scores<double>(row_major(affinities, b.size(), columns_of(c, tile), kTileWidth),
                     x_.row(panel, c.begin + tile * kTileWidth), x_.width(panel), x_.columns(panel),
                     z_.row(panel, c.begin + b.first));
}

void LocalLaplacian::start_nearest(const Block& b, Scratch& s) const {
  const index_t k = neighbours(class_of(b));
  s.nearest.reserve(kRows * k);
  std::fill(s.nearest.data(), s.nearest.data() + b.size() * k, kInfinity);
}

// Keeps the k smallest |x_j|^2 - 2 x_i x_j of every row i among the columns j of tiles [first,
// last), whose products have the stride `stride`.
void LocalLaplacian::look_for_nearest(const Block& b, index_t first, index_t last,
                                      const double* dots, index_t stride, Scratch& s) const {
  const AffinityClass& c = class_of(b);
  const index_t k = neighbours(c);
  const auto norms = [&](index_t t) { return norms_.data() + c.place + t * kTileWidth; };
  std::fill(s.minima.data(), s.minima.data() + b.size() * kTileWidth, kInfinity);
  for (index_t t = first; t < last; ++t)
    kernels<AffinityKernels>().lower_minima(dots + (t - first) * stride, b.size(), norms(t),
                                            s.minima.data());
  kernels<AffinityKernels>().limits_of_minima(s.minima.data(), b.size(), k, s.limits.data());
  for (index_t t = first; t < last; ++t)
    kernels<AffinityKernels>().add_to_nearest(dots + (t - first) * stride, b.size(), norms(t),
                                              s.limits.data(), k, s.nearest.data());
}

// If the distance to the k-th neighbour may be a rounding error, the norm stays infinite, and the
// row has no affinity.
void LocalLaplacian::set_scales(const Block& b, const Scratch& s) {
  const AffinityClass& c = class_of(b);
  const index_t k = neighbours(c);
  constexpr double eps = std::numeric_limits<double>::epsilon();
  for (index_t i = b.first; i < b.last; ++i) {
    const double norm = norms_[c.place + i], square = s.nearest[(i - b.first) * k] + norm;
    if (!(square > 4.0 * static_cast<double>(given_.cols) * eps * norm)) continue;
    affinity_norms_[c.place + i] = norm;
    inverse_[c.place + i] = 1.0 / std::sqrt(square);
  }
}

// Forms L X from the sums of affinities.
void LocalLaplacian::finish(const Block& b) {
  const AffinityClass& c = class_of(b);
  for (index_t p = 0; p < x_.count(); ++p)
    kernels<AffinityKernels>().laplacian_rows(x_.row(p, c.begin + b.first),
                                              degrees_.data() + c.place + b.first, b.size(),
                                              x_.width(p), z_.row(p, c.begin + b.first));
}

// ---- classes whose A is stored -------------------------------------------------------------------

void LocalLaplacian::work_on_kept(const Vector<index_t>& wave) {
  if (wave.empty()) return;
  const AffinityClass& last = classes_[wave.back()];
  held_.reserve(last.held + last.count * last.padded());
  const auto blocks = blocks_of(wave);
  for_each(blocks, [&](const Block& b, Scratch&) { pack(b); });
  for_each(blocks, [&](const Block& b, Scratch&) { keep_products(b); });
  for_each(blocks, [&](const Block& b, Scratch& s) { select_kept(b, s); });
  for_each(blocks, [&](const Block& b, Scratch&) { keep_affinities(b); });
  for_each(blocks, [&](const Block& b, Scratch&) { finish_kept(b); });
}

// Products with the tiles from the first tile of the block on, and their transposes below the
// diagonal.
void LocalLaplacian::keep_products(const Block& b) {
  const AffinityClass& c = class_of(b);
  for (index_t t = b.first_tile(); t < c.n_tiles(); ++t) multiply(b, t, held(c, t, b.first));
  mirror(b);
}

// Copies the entries to the right of the block to the rows below. If there are such entries, the
// block consists of whole tiles.
void LocalLaplacian::mirror(const Block& b) {
  const AffinityClass& c = class_of(b);
  for (index_t t = b.first_tile() + kRows / kTileWidth; t < c.n_tiles(); ++t) {
    for (index_t i = b.first; i < b.last; i += kTileWidth)
      kernels<AffinityKernels>().transpose_tile(held(c, t, i), columns_of(c, t),
                                                held(c, i / kTileWidth, t * kTileWidth));
  }
}

void LocalLaplacian::select_kept(const Block& b, Scratch& s) {
  const AffinityClass& c = class_of(b);
  if (neighbours(c) == 0) return;
  start_nearest(b, s);
  look_for_nearest(b, 0, c.n_tiles(), held(c, 0, b.first), c.count * kTileWidth, s);
  set_scales(b, s);
}

void LocalLaplacian::keep_affinities(const Block& b) {
  const AffinityClass& c = class_of(b);
  for (index_t t = b.first_tile(); t < c.n_tiles(); ++t)
    kernels<AffinityKernels>().affinities(held(c, t, b.first), b.size(), norms_of(c, b.first),
                                          norms_of(c, t * kTileWidth));
  mirror(b);
}

void LocalLaplacian::finish_kept(const Block& b) {
  const AffinityClass& c = class_of(b);
  for (index_t t = 0; t < c.n_tiles(); ++t)
    kernels<AffinityKernels>().add_tile_sums(held(c, t, b.first), b.size(),
                                             degrees_.data() + c.place + b.first, nullptr);
  for (index_t first = 0; first < c.n_tiles(); first += kTilesAtOnce) {
    const index_t last = std::min(first + kTilesAtOnce, c.n_tiles());
    for (index_t p = 0; p < x_.count(); ++p) {
      for (index_t t = first; t < last; ++t) add_products(b, t, held(c, t, b.first), p);
    }
  }
  finish(b);
}

// ---- classes whose A is not stored ---------------------------------------------------------------

void LocalLaplacian::work_on_streamed(const Vector<index_t>& classes) {
  const auto blocks = blocks_of(classes);
  Vector<Group> groups;
  for (const index_t c : classes) {
    for (index_t g = 0; g < classes_[c].n_groups; ++g) groups.push_back({c, g});
  }
  for_each(blocks, [&](const Block& b, Scratch&) { pack(b); });
  for_each(blocks, [&](const Block& b, Scratch& s) { select_streamed(b, s); });
  for_blocks(groups.size(), n_threads_, [&](index_t g, int thread) {
    scratch_[thread].start();
    stream_group(groups[g], scratch_[thread]);
  });
  for_each(blocks, [&](const Block& b, Scratch&) { finish_streamed(b); });
}

void LocalLaplacian::select_streamed(const Block& b, Scratch& s) {
  const AffinityClass& c = class_of(b);
  if (neighbours(c) == 0) return;
  start_nearest(b, s);
  for (index_t first = 0; first < c.n_tiles(); first += kTilesAtOnce) {
    const index_t last = std::min(first + kTilesAtOnce, c.n_tiles());
    for (index_t t = first; t < last; ++t) multiply(b, t, s.tiles.data() + (t - first) * kTile);
    look_for_nearest(b, first, last, s.tiles.data(), kTile, s);
  }
  set_scales(b, s);
}

// Blocks are assigned to groups in alternating order, because later blocks have fewer columns.
void LocalLaplacian::stream_group(const Group& group, Scratch& s) {
  const AffinityClass& c = classes_[group.c];
  double* column_sums = column_sums_.data() + c.first_sum + group.g * c.padded();
  for (index_t b = 0; b < blocks_in(c.count); ++b) {
    const index_t turn = b % (2 * c.n_groups);
    if (std::min(turn, 2 * c.n_groups - 1 - turn) != group.g) continue;
    const index_t first = b * kRows;
    stream_affinities({group.c, first, std::min(first + kRows, c.count)}, column_sums, s);
  }
}

// Affinities of the rows of a block to later rows, and their sums and products.
void LocalLaplacian::stream_affinities(const Block& b, double* column_sums, Scratch& s) {
  const AffinityClass& c = class_of(b);
  const auto tile = [&](index_t t) { return s.tiles.data() + t * kTile; };
  for (index_t first = b.first_tile(); first < c.n_tiles(); first += kTilesAtOnce) {
    const index_t last = std::min(first + kTilesAtOnce, c.n_tiles());
    for (index_t t = first; t < last; ++t) {
      double* dots = tile(t - first);
      multiply(b, t, dots);
      for (index_t i = t * kTileWidth; i < b.last; ++i) {
        double* row = dots + (i - b.first) * kTileWidth;
        std::fill(row, row + std::min(i - t * kTileWidth, kTileWidth), kNoAffinity);
      }
      kernels<AffinityKernels>().affinities(dots, b.size(), norms_of(c, b.first),
                                            norms_of(c, t * kTileWidth));
      kernels<AffinityKernels>().add_tile_sums(dots, b.size(), degrees_.data() + c.place + b.first,
                                               column_sums + t * kTileWidth);
    }
    for (index_t p = 0; p < x_.count(); ++p) {
      for (index_t t = first; t < last; ++t) add_products(b, t, tile(t - first), p);
    }
  }
}

void LocalLaplacian::finish_streamed(const Block& b) {
  const AffinityClass& c = class_of(b);
  for (index_t i = b.first; i < b.last; ++i) {
    double& degree = degrees_[c.place + i];
    for (index_t g = 0; g < c.n_groups; ++g)
      degree += column_sums_[c.first_sum + g * c.padded() + i];
    degree *= 0.5;
  }
  finish(b);
}

}  // namespace eigenfeat
