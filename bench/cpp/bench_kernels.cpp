// The rate of each kernel of the core, beside the rate of BLAS on this machine in equal precision.
//
//   bench_kernels [part of a kernel's name]
//
// On the tier that EIGENFEAT_CPU names, or on each that the machine has. To compare a narrower tier
// with BLAS's kernels of the same width, set OPENBLAS_CORETYPE too (Haswell for v3, Prescott for
// baseline). One thread; the best of several runs of 20 ms each.
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <stdexcept>
#include <string>
#include <type_traits>
#include <vector>

#include "eigenfeat/lapack.hpp"
#include "eigenfeat/parallel.hpp"
#include "eigenfeat/scratch.hpp"
#include "eigenfeat/tier.hpp"
#include "kernels/line.hpp"
#include "kernels/narrow_kernels.hpp"
#include "kernels/nonzero_kernels.hpp"
#include "kernels/svm_kernels.hpp"
#include "kernels/svm_pass_kernels.hpp"
#include "kernels/tile_kernels.hpp"
#include "kernels/tridiagonal_kernels.hpp"
#include "kernels/wave_kernels.hpp"
#include "kernels/wave_product_kernels.hpp"

namespace {

using namespace eigenfeat;

// Random numbers in [-0.5, 0.5), by xorshift.
template <class T>
AlignedBuffer<T> numbers(index_t n, bool some_zero = false) {
  AlignedBuffer<T> x(n);
  std::uint64_t state = 88172645463325252ULL;
  for (index_t i = 0; i < n; ++i) {
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    const double u = static_cast<double>(state >> 11) * 0x1p-53;
    x[i] = some_zero && u < 0.8 ? T(0) : static_cast<T>(u - 0.5);
  }
  return x;
}

// 10^9 flops per second.
double rate(double flops, const std::function<void()>& run) {
  using Clock = std::chrono::steady_clock;
  run();
  double best = 0.0;
  for (int round = 0; round < 7; ++round) {
    long runs = 0;
    const auto start = Clock::now();
    double seconds = 0.0;
    while (seconds < 0.02) {
      run();
      ++runs;
      seconds = std::chrono::duration<double>(Clock::now() - start).count();
    }
    best = std::max(best, flops * static_cast<double>(runs) / seconds * 1e-9);
  }
  return best;
}

template <class T>
double blas_rate() {
  const index_t n = 768;
  AlignedBuffer<T> a = numbers<T>(n * n), b = numbers<T>(n * n), c(n * n);
  const auto view = [&](AlignedBuffer<T>& x) { return column_major(x.data(), n, n); };
  return rate(2.0 * static_cast<double>(n * n * n),
              [&] { gemm<T>(Op::none, Op::none, T(1), view(a), view(b), T(0), view(c)); });
}

// A matrix times a vector, where the matrix stays in the second-level cache: the reference for loops
// that read a number for each product.
template <class T>
double blas_stream_rate() {
  const index_t n = 160;
  AlignedBuffer<T> a = numbers<T>(n * n), x = numbers<T>(n), y(n);
  return rate(2.0 * static_cast<double>(n * n), [&] {
    gemm<T>(Op::none, Op::none, T(1), column_major(a.data(), n, n), column_major(x.data(), n, 1),
            T(0), column_major(y.data(), n, 1));
  });
}

std::string wanted;
double blas = 0.0, blas_stream = 0.0;
const char* precision = "";

void print(const std::string& name, double found, double reference, const char* of) {
  std::printf("%-9s %-8s %-40s %8.1f %7.0f%% of %s\n", name_of(tier_in_use()), precision,
              name.c_str(), found, 100.0 * found / reference, of);
}

void report(const std::string& name, double flops, const std::function<void()>& run) {
  if (name.find(wanted) != std::string::npos) print(name, rate(flops, run), blas, "gemm");
}

// Reports a loop that loads a number, or a vector, for each product.
void report_stream(const std::string& name, double flops, const std::function<void()>& run) {
  if (name.find(wanted) != std::string::npos) print(name, rate(flops, run), blas_stream, "gemv");
}

template <class T>
void narrow() {
  const index_t d = 784;
  AlignedBuffer<T> m = numbers<T>(d * d);
  for (index_t width = kernels<NarrowKernels<T>>().narrowest; width <= 2 * kLane<T>; width *= 2) {
    AlignedBuffer<T> x = numbers<T>(d * width), y(d * width);
    const double flops = 2.0 * static_cast<double>(d * d * width);
    const std::string told = ", 784 x " + std::to_string(width);
    report("narrow symmetric" + told, flops, [&] {
      kernels<NarrowKernels<T>>().symmetric(width, m.data(), d, d, x.data(), y.data());
    });
    report("narrow rows" + told, flops, [&] {
      kernels<NarrowKernels<T>>().rows(Shape::symmetric, width, m.data(), d, d, x.data(), 0, d,
                                       y.data());
    });
    report("narrow lower" + told, flops / 2, [&] {
      kernels<NarrowKernels<T>>().rows(Shape::lower, width, m.data(), d, d, x.data(), 0, d,
                                       y.data());
    });
  }
}

template <class T>
void tiles() {
  const index_t rows = 120, columns = 1000;
  AlignedBuffer<T> tile = numbers<T>(rows * columns);
  const TileKernels<T>& kernel = kernels<TileKernels<T>>();
  for (const index_t k : {10, 26, 32}) {
    const index_t width = (k + kernel.unit - 1) / kernel.unit * kernel.unit;
    AlignedBuffer<T> w = numbers<T>(columns * width), z(rows * width);
    const double flops = 2.0 * static_cast<double>(rows * columns * k);  // without padding
    const std::string told = ", " + std::to_string(k) + " columns";
    report("tile scores" + told, flops, [&] {
      std::fill(z.data(), z.data() + rows * width, T(0));
      kernel.scores(tile.data(), columns, rows, columns, w.data(), width, k, z.data());
    });
    report("tile products" + told, flops, [&] {
      std::fill(w.data(), w.data() + columns * width, T(0));
      kernel.products(tile.data(), columns, rows, columns, z.data(), width, k, w.data());
    });
  }
}

template <class T>
void waves() {
  const index_t rows = kWaveRows, directions = 512, k = 10, width = 16;
  const WaveProductKernels<T>& kernel = kernels<WaveProductKernels<T>>();
  const index_t lines = directions / kernel.unit;
  AlignedBuffer<T> packed = numbers<T>(rows * directions);
  AlignedBuffer<T> w = numbers<T>(kWaves * directions * k);
  AlignedBuffer<T> sums(rows * k * kernel.unit), z = numbers<T>(rows * width);
  for (const bool shifted : {false, true}) {
    const WaveTile<T> tile{packed.data(), rows, lines, shifted};
    const std::string told = shifted ? ", shifted" : "";
    const double flops = 2.0 * static_cast<double>(rows * directions * k);
    // A projection has one sign, and only the three waves of this sign are multiplied; gemm would
    // multiply all six waves.
    const auto scores = [&] { kernel.scores(tile, w.data(), k, width, sums.data(), z.data()); };
    report("wave scores" + told, 3.0 * flops, scores);
    report("wave scores" + told + ", as of six waves", 6.0 * flops, scores);
    report("wave products" + told, 6.0 * flops, [&] {
      std::fill(w.data(), w.data() + kWaves * directions * k, T(0));
      kernel.products(tile, z.data(), k, width, w.data());
    });
  }
}

// Half waves that are written out, in 10^9 per second, beside their upper bounds: square roots, two
// for each projection, and the rate of writing to memory, if the waves do not fit into the cache.
template <class T>
void expansion() {
  const index_t n = 512,
                rows = (index_t{96} << 20) / (kWaves * n * static_cast<index_t>(sizeof(T)));
  const int powers[] = {1, 2, 3};
  const WaveKernels<T>& kernel = kernels<WaveKernels<T>>();
  const std::string name = "half waves, 10^9";
  if (name.find(wanted) == std::string::npos) return;
  AlignedBuffer<T> p = numbers<T>(n), some(kWaves * n), all(rows * kWaves * n);
  const double written = static_cast<double>(kWaves * n);
  const double roots = 3.0 * rate(2.0 * static_cast<double>(n), [&] {
                         kernel.expand_row(Wave::half_wave, powers, 1, p.data(), n, some.data());
                       });
  const double near = rate(
      written, [&] { kernel.expand_row(Wave::half_wave, powers, 3, p.data(), n, some.data()); });
  print(name + ", in the first-level cache", near, roots, "roots");
  // Writes to the addresses of the waves, in the same order and as often.
  const double filled = rate(written * static_cast<double>(rows),
                             [&] { std::fill(all.data(), all.data() + rows * kWaves * n, p[0]); });
  const double far = rate(written * static_cast<double>(rows), [&] {
    for (index_t r = 0; r < rows; ++r)
      kernel.expand_row(Wave::half_wave, powers, 3, p.data(), n, all.data() + r * kWaves * n);
  });
  print(name + ", to memory", far, filled, "fill");
}

template <class T>
void svm() {
  const index_t d = 784, k = 10;
  const SvmKernels<T>& kernel = kernels<SvmKernels<T>>();
  const index_t width = (k + kernel.unit - 1) / kernel.unit * kernel.unit;
  AlignedBuffer<T> rows = numbers<T>(4 * d), w = numbers<T>(d * width), out(4 * width);
  std::vector<std::uint32_t> columns;
  for (index_t j = 0; j < d; j += 5) columns.push_back(static_cast<std::uint32_t>(j));
  const index_t some = static_cast<index_t>(columns.size());
  const double flops = 2.0 * static_cast<double>(d * k);
  report_stream("svm row scores", flops,
                [&] { kernel.row_scores(rows.data(), nullptr, d, w.data(), width, out.data()); });
  report_stream("svm row scores, a fifth of the columns", flops / 5, [&] {
    kernel.row_scores(rows.data(), columns.data(), some, w.data(), width, out.data());
  });
  // As in passes over all rows: two classes are scored by the difference of their weights, which
  // takes half of the products.
  const SvmPassKernels<T>& pass = kernels<SvmPassKernels<T>>();
  for (const index_t classes : {2, 3, 6, 10, 16, 26}) {
    const index_t apart = (d + kernel.unit - 1) / kernel.unit * kernel.unit;
    const index_t padded = (classes + kernel.unit - 1) / kernel.unit * kernel.unit;
    AlignedBuffer<T> weights = numbers<T>(classes * apart + d * padded), scores(4 * padded);
    const std::string name = "svm four row scores, " + std::to_string(classes) + " classes";
    const double products = 4.0 * 2.0 * static_cast<double>(d * classes);
    const auto run = [&] {
      if (pass.is_by_feature(classes)) {
        pass.four_row_scores_by_feature(rows.data(), d, d, weights.data(), padded, scores.data());
      } else {
        pass.four_row_scores_by_class(rows.data(), d, d, weights.data(), apart,
                                      classes == 2 ? 1 : classes, padded, scores.data());
      }
    };
    report(name, products, run);
    if (classes == 2) report(name + ", one difference", products / 2.0, run);
  }
  std::fill(out.data(), out.data() + width, T(1e-9));
  report_stream("svm add row", flops,
                [&] { kernel.add_row(rows.data(), nullptr, d, out.data(), width, w.data()); });
}

template <class T>
void nonzeros() {
  const NonzeroKernels<T>& kernel = kernels<NonzeroKernels<T>>();
  const index_t d = 784, width = kernel.panel * kernel.unit;
  AlignedBuffer<T> panel = numbers<T>(d * width), values = numbers<T>(d), p(width);
  std::vector<std::int32_t> columns;
  for (index_t j = 0; j < d; j += 5) columns.push_back(static_cast<std::int32_t>(j));
  const index_t some = static_cast<index_t>(columns.size());
  report_stream("nonzero sum", 2.0 * static_cast<double>(some * width), [&] {
    kernel.sum(kernel.panel, values.data(), columns.data(), some, panel.data(), p.data());
  });
}

// The tridiagonal reduction beside LAPACK's, which calls BLAS.
void tridiagonal() {
  for (const index_t d : {32, 128}) {
    const std::string name = "tridiagonal reduction, order " + std::to_string(d);
    if (name.find(wanted) == std::string::npos) continue;
    AlignedBuffer<double> a(d * d), given = numbers<double>(d * d);
    AlignedBuffer<double> diagonal(d), off(d), tau(d), scratch(4 * d);
    const double flops = 4.0 / 3.0 * static_cast<double>(d * d * d);
    const double found = rate(flops, [&] {
      std::copy(given.data(), given.data() + d * d, a.data());
      kernels<TridiagonalKernels>().reduce(a.data(), d, diagonal.data(), off.data(), tau.data(),
                                           scratch.data());
    });
    LapackWork<double> work;
    const double reference = rate(flops, [&] {
      std::copy(given.data(), given.data() + d * d, a.data());
      sytrd<double>(Triangle::lower, column_major(a.data(), d, d), {diagonal.data(), d},
                    {off.data(), d - 1}, {tau.data(), d - 1}, work);
    });
    print(name, found, reference, "sytrd");
  }
}

template <class T>
void all() {
  precision = std::is_same_v<T, float> ? "float32" : "float64";
  blas = blas_rate<T>();
  blas_stream = blas_stream_rate<T>();
  print("BLAS: gemm of order 768", blas, blas, "gemm");
  print("BLAS: 160 x 160 by a vector", blas_stream, blas_stream, "gemv");
  narrow<T>();
  tiles<T>();
  waves<T>();
  expansion<T>();
  svm<T>();
  nonzeros<T>();
  if constexpr (std::is_same_v<T, double>) tridiagonal();
}

}  // namespace

int main(int argc, char** argv) {
  pin_blas();
  if (argc > 1) wanted = argv[1];
  std::printf("%-9s %-8s %-40s %8s %8s\n", "tier", "dtype", "kernel", "Gflop/s", "share");
  Vector<std::string> tiers = names_of(available_tiers());
  if (const char* name = std::getenv("EIGENFEAT_CPU"); name != nullptr && *name != '\0')
    tiers = {name};
  for (const std::string& name : tiers) {
    try {
      use_tier(name);
    } catch (const std::invalid_argument& error) {
      std::fprintf(stderr, "%s\n", error.what());
      return 1;
    }
    all<double>();
    all<float>();
  }
}
