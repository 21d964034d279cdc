#include "eigenfeat/lapack.hpp"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cmath>
#include <limits>
#include <stdexcept>
#include <string>
#include <thread>

#if defined(__unix__) || defined(__APPLE__)
#include <pthread.h>
#define EIGENFEAT_CAN_FORK 1
#endif

#ifdef EIGENFEAT_LAPACK_PREFIX_SCIPY
#define EIGENFEAT_FORTRAN(name) scipy_##name##_
#else
#define EIGENFEAT_FORTRAN(name) name##_
#endif

// The hidden lengths of character arguments follow the convention of gfortran.
extern "C" {
#define EIGENFEAT_DECLARE(T, p)                                                                    \
  void EIGENFEAT_FORTRAN(p##gemm)(const char*, const char*, const int*, const int*, const int*,    \
                                  const T*, const T*, const int*, const T*, const int*, const T*,  \
                                  T*, const int*, std::size_t, std::size_t);                       \
  void EIGENFEAT_FORTRAN(p##syrk)(const char*, const char*, const int*, const int*, const T*,      \
                                  const T*, const int*, const T*, T*, const int*, std::size_t,     \
                                  std::size_t);                                                    \
  void EIGENFEAT_FORTRAN(p##trsm)(const char*, const char*, const char*, const char*, const int*,  \
                                  const int*, const T*, const T*, const int*, T*, const int*,      \
                                  std::size_t, std::size_t, std::size_t, std::size_t);             \
  void EIGENFEAT_FORTRAN(p##potrf)(const char*, const int*, T*, const int*, int*, std::size_t);    \
  void EIGENFEAT_FORTRAN(p##trtri)(const char*, const char*, const int*, T*, const int*, int*,     \
                                   std::size_t, std::size_t);                                      \
  void EIGENFEAT_FORTRAN(p##sygst)(const int*, const char*, const int*, T*, const int*, const T*,  \
                                   const int*, int*, std::size_t);                                 \
  void EIGENFEAT_FORTRAN(p##sygvd)(const int*, const char*, const char*, const int*, T*,           \
                                   const int*, T*, const int*, T*, T*, const int*, int*,           \
                                   const int*, int*, std::size_t, std::size_t);                    \
  void EIGENFEAT_FORTRAN(p##syevd)(const char*, const char*, const int*, T*, const int*, T*, T*,   \
                                   const int*, int*, const int*, int*, std::size_t, std::size_t);  \
  void EIGENFEAT_FORTRAN(p##sytrd)(const char*, const int*, T*, const int*, T*, T*, T*, T*,        \
                                   const int*, int*, std::size_t);                                 \
  void EIGENFEAT_FORTRAN(p##syevr)(const char*, const char*, const char*, const int*, T*,          \
                                   const int*, const T*, const T*, const int*, const int*,         \
                                   const T*, int*, T*, T*, const int*, int*, T*, const int*, int*, \
                                   const int*, int*, std::size_t, std::size_t, std::size_t);
EIGENFEAT_DECLARE(float, s)
EIGENFEAT_DECLARE(double, d)
#undef EIGENFEAT_DECLARE
}

namespace eigenfeat {
namespace {

// Number of running calls. There are many counters, because threads that share one would slow each
// other down. At the end of the process OpenBLAS frees its buffers, even if a daemon thread is in a
// call. AtExit therefore waits for running calls, at most one second, and new calls block.
struct alignas(64) Counter {
  std::atomic<int> calls{0};
};
constexpr int kCounters = 64;
Counter counters[kCounters];
std::atomic<int> next_counter{0};
std::atomic<bool> ending{false};

struct AtExit {
  ~AtExit() {
    ending.store(true);
    const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(1);
    for (const Counter& counter : counters)
      while (counter.calls.load() > 0 && std::chrono::steady_clock::now() < end)
        std::this_thread::sleep_for(std::chrono::microseconds(100));
  }
} at_exit;

#ifdef EIGENFEAT_CAN_FORK
// Calls of the parent's threads never end in a forked child.
[[maybe_unused]] const int registered = pthread_atfork(nullptr, nullptr, [] {
  for (Counter& counter : counters) counter.calls.store(0);
});
#endif

class BlasCall {
 public:
  BlasCall() {
    calls().fetch_add(1);
    if (!ending.load()) return;
    calls().fetch_sub(1);
    for (;;) std::this_thread::sleep_for(std::chrono::hours(1));
  }
  ~BlasCall() { calls().fetch_sub(1); }
  BlasCall(const BlasCall&) = delete;
  BlasCall& operator=(const BlasCall&) = delete;

 private:
  static std::atomic<int>& calls() {
    thread_local const int own = next_counter.fetch_add(1) % kCounters;
    return counters[own].calls;
  }
};

// One overload for each type, so that the wrappers below are templates.
#define EIGENFEAT_PICK(name)               \
  template <class... Args>                 \
  void call_##name(float, Args... args) {  \
    const BlasCall call;                   \
    EIGENFEAT_FORTRAN(s##name)(args...);   \
  }                                        \
  template <class... Args>                 \
  void call_##name(double, Args... args) { \
    const BlasCall call;                   \
    EIGENFEAT_FORTRAN(d##name)(args...);   \
  }
EIGENFEAT_PICK(gemm)
EIGENFEAT_PICK(syrk)
EIGENFEAT_PICK(trsm)
EIGENFEAT_PICK(potrf)
EIGENFEAT_PICK(trtri)
EIGENFEAT_PICK(sygst)
EIGENFEAT_PICK(sygvd)
EIGENFEAT_PICK(syevd)
EIGENFEAT_PICK(sytrd)
EIGENFEAT_PICK(syevr)
#undef EIGENFEAT_PICK

constexpr std::size_t kOne = 1;  // hidden length of a one-letter character argument

int as_int(index_t n) {
  if (n > std::numeric_limits<int>::max()) {
    throw std::invalid_argument("shape: expected at most 2^31 - 1 rows or columns, got " +
                                std::to_string(n));
  }
  return static_cast<int>(n);
}

void conform(bool condition, const char* routine) {
  if (!condition) {
    throw std::logic_error(std::string(routine) + ": views do not conform or are not column-major");
  }
}

// The leading dimension of a view; LAPACK requires at least max(1, rows).
template <class T>
int leading(const MatrixView<T>& a, const char* routine) {
  conform(a.is_column_major() && (a.cols <= 1 || a.col_stride >= a.rows), routine);
  return as_int(std::max<index_t>({index_t{1}, a.rows, a.col_stride}));
}

int checked(int info, const char* routine) {
  if (info < 0) {
    throw std::logic_error(std::string(routine) + ": argument " + std::to_string(-info) +
                           " is wrong");
  }
  return info;
}

// A query returns the size as a floating-point number. float rounds large sizes, so round up.
template <class T>
int queried(T answer, index_t documented_minimum) {
  const double padded = static_cast<double>(answer) * (1.0 + std::numeric_limits<T>::epsilon());
  return as_int(std::max(static_cast<index_t>(padded) + 1, documented_minimum));
}

template <class T>
index_t op_rows(Op op, const MatrixView<const T>& a) {
  return op == Op::none ? a.rows : a.cols;
}
template <class T>
index_t op_cols(Op op, const MatrixView<const T>& a) {
  return op == Op::none ? a.cols : a.rows;
}

}  // namespace

template <class T>
void gemm(Op op_a, Op op_b, T alpha, MatrixView<const T> a, MatrixView<const T> b, T beta,
          MatrixView<T> c) {
  conform(op_rows(op_a, a) == c.rows && op_cols(op_b, b) == c.cols &&
              op_cols(op_a, a) == op_rows(op_b, b),
          "gemm");
  const char ta = static_cast<char>(op_a), tb = static_cast<char>(op_b);
  const int m = as_int(c.rows), n = as_int(c.cols), k = as_int(op_cols(op_a, a));
  const int lda = leading(a, "gemm"), ldb = leading(b, "gemm"), ldc = leading(c, "gemm");
  call_gemm(T{}, &ta, &tb, &m, &n, &k, &alpha, a.data, &lda, b.data, &ldb, &beta, c.data, &ldc,
            kOne, kOne);
}

template <class T>
void syrk(Triangle triangle, Op op, T alpha, MatrixView<const T> a, T beta, MatrixView<T> c) {
  conform(op_rows(op, a) == c.rows && c.rows == c.cols, "syrk");
  const char uplo = static_cast<char>(triangle), trans = static_cast<char>(op);
  const int n = as_int(c.rows), k = as_int(op_cols(op, a));
  const int lda = leading(a, "syrk"), ldc = leading(c, "syrk");
  call_syrk(T{}, &uplo, &trans, &n, &k, &alpha, a.data, &lda, &beta, c.data, &ldc, kOne, kOne);
}

template <class T>
void trsm(Side side, Triangle triangle, Op op, T alpha, MatrixView<const T> a, MatrixView<T> b) {
  conform(a.rows == a.cols && a.rows == (side == Side::left ? b.rows : b.cols), "trsm");
  const char s = static_cast<char>(side), uplo = static_cast<char>(triangle);
  const char trans = static_cast<char>(op), diag = 'N';
  const int m = as_int(b.rows), n = as_int(b.cols);
  const int lda = leading(a, "trsm"), ldb = leading(b, "trsm");
  call_trsm(T{}, &s, &uplo, &trans, &diag, &m, &n, &alpha, a.data, &lda, b.data, &ldb, kOne, kOne,
            kOne, kOne);
}

template <class T>
int potrf(Triangle triangle, MatrixView<T> a) {
  conform(a.rows == a.cols, "potrf");
  const char uplo = static_cast<char>(triangle);
  const int n = as_int(a.rows), lda = leading(a, "potrf");
  int info = 0;
  call_potrf(T{}, &uplo, &n, a.data, &lda, &info, kOne);
  return checked(info, "potrf");
}

template <class T>
int trtri(Triangle triangle, MatrixView<T> a) {
  conform(a.rows == a.cols, "trtri");
  const char uplo = static_cast<char>(triangle), diag = 'N';
  const int n = as_int(a.rows), lda = leading(a, "trtri");
  int info = 0;
  call_trtri(T{}, &uplo, &diag, &n, a.data, &lda, &info, kOne, kOne);
  return checked(info, "trtri");
}

template <class T>
int sygst(Triangle triangle, MatrixView<T> a, MatrixView<const T> b_factor) {
  conform(a.rows == a.cols && b_factor.rows == a.rows && b_factor.cols == a.rows, "sygst");
  const char uplo = static_cast<char>(triangle);
  const int itype = 1, n = as_int(a.rows);
  const int lda = leading(a, "sygst"), ldb = leading(b_factor, "sygst");
  int info = 0;
  call_sygst(T{}, &itype, &uplo, &n, a.data, &lda, b_factor.data, &ldb, &info, kOne);
  return checked(info, "sygst");
}

template <class T>
int syevd(Triangle triangle, MatrixView<T> a, VectorView<T> eigenvalues, LapackWork<T>& work) {
  conform(a.rows == a.cols && eigenvalues.size >= a.rows, "syevd");
  const char jobz = 'V', uplo = static_cast<char>(triangle);
  const int n = as_int(a.rows), lda = leading(a, "syevd");
  int info = 0, query = -1, integer_answer = 0;
  T answer = 0;
  call_syevd(T{}, &jobz, &uplo, &n, a.data, &lda, eigenvalues.data, &answer, &query,
             &integer_answer, &query, &info, kOne, kOne);
  checked(info, "syevd");
  const int lwork = queried(answer, 1 + 6 * a.rows + 2 * a.rows * a.rows);
  const int liwork = std::max(integer_answer, 3 + 5 * n);
  work.work.reserve(lwork);
  work.iwork.reserve(liwork);
  call_syevd(T{}, &jobz, &uplo, &n, a.data, &lda, eigenvalues.data, work.work.data(), &lwork,
             work.iwork.data(), &liwork, &info, kOne, kOne);
  return checked(info, "syevd");
}

template <class T>
int sygvd(Triangle triangle, MatrixView<T> a, MatrixView<T> b, VectorView<T> eigenvalues,
          LapackWork<T>& work) {
  conform(a.rows == a.cols && b.rows == a.rows && b.cols == a.rows && eigenvalues.size >= a.rows,
          "sygvd");
  const char jobz = 'V', uplo = static_cast<char>(triangle);
  const int itype = 1, n = as_int(a.rows), lda = leading(a, "sygvd"), ldb = leading(b, "sygvd");
  int info = 0, query = -1, integer_answer = 0;
  T answer = 0;
  call_sygvd(T{}, &itype, &jobz, &uplo, &n, a.data, &lda, b.data, &ldb, eigenvalues.data, &answer,
             &query, &integer_answer, &query, &info, kOne, kOne);
  checked(info, "sygvd");
  const int lwork = queried(answer, 1 + 6 * a.rows + 2 * a.rows * a.rows);
  const int liwork = std::max(integer_answer, 3 + 5 * n);
  work.work.reserve(lwork);
  work.iwork.reserve(liwork);
  call_sygvd(T{}, &itype, &jobz, &uplo, &n, a.data, &lda, b.data, &ldb, eigenvalues.data,
             work.work.data(), &lwork, work.iwork.data(), &liwork, &info, kOne, kOne);
  return checked(info, "sygvd");
}

template <class T>
int sytrd(Triangle triangle, MatrixView<T> a, VectorView<T> diagonal, VectorView<T> off,
          VectorView<T> tau, LapackWork<T>& work) {
  conform(a.rows == a.cols && diagonal.size >= a.rows && off.size >= a.rows - 1 &&
              tau.size >= a.rows - 1,
          "sytrd");
  const char uplo = static_cast<char>(triangle);
  const int n = as_int(a.rows), lda = leading(a, "sytrd");
  int info = 0, query = -1;
  T answer = 0;
  call_sytrd(T{}, &uplo, &n, a.data, &lda, diagonal.data, off.data, tau.data, &answer, &query,
             &info, kOne);
  checked(info, "sytrd");
  const int lwork = queried(answer, 1);
  work.work.reserve(lwork);
  call_sytrd(T{}, &uplo, &n, a.data, &lda, diagonal.data, off.data, tau.data, work.work.data(),
             &lwork, &info, kOne);
  return checked(info, "sytrd");
}

template <class T>
int syevr_range(Triangle triangle, MatrixView<T> a, index_t first, index_t last,
                VectorView<T> eigenvalues, MatrixView<T> vectors, LapackWork<T>& work) {
  conform(a.rows == a.cols && 0 <= first && first <= last && last < a.rows &&
              vectors.rows == a.rows && vectors.cols >= last - first + 1 &&
              eigenvalues.size >= a.rows,
          "syevr");
  const char jobz = 'V', range = 'I', uplo = static_cast<char>(triangle);
  const int n = as_int(a.rows), lda = leading(a, "syevr"), ldz = leading(vectors, "syevr");
  const int il = as_int(first + 1), iu = as_int(last + 1);
  const T unused = 0, abstol = 0;
  int info = 0, query = -1, integer_answer = 0, found = 0;
  T answer = 0;
  work.support.reserve(2 * a.rows);
  call_syevr(T{}, &jobz, &range, &uplo, &n, a.data, &lda, &unused, &unused, &il, &iu, &abstol,
             &found, eigenvalues.data, vectors.data, &ldz, work.support.data(), &answer, &query,
             &integer_answer, &query, &info, kOne, kOne, kOne);
  checked(info, "syevr");
  const int lwork = queried(answer, 26 * a.rows);
  const int liwork = std::max(integer_answer, 10 * n);
  work.work.reserve(lwork);
  work.iwork.reserve(liwork);
  call_syevr(T{}, &jobz, &range, &uplo, &n, a.data, &lda, &unused, &unused, &il, &iu, &abstol,
             &found, eigenvalues.data, vectors.data, &ldz, work.support.data(), work.work.data(),
             &lwork, work.iwork.data(), &liwork, &info, kOne, kOne, kOne);
  checked(info, "syevr");
  return info == 0 && found != iu - il + 1 ? 1 : info;
}

#define EIGENFEAT_INSTANTIATE(T)                                                                \
  template void gemm<T>(Op, Op, T, MatrixView<const T>, MatrixView<const T>, T, MatrixView<T>); \
  template void syrk<T>(Triangle, Op, T, MatrixView<const T>, T, MatrixView<T>);                \
  template void trsm<T>(Side, Triangle, Op, T, MatrixView<const T>, MatrixView<T>);             \
  template int potrf<T>(Triangle, MatrixView<T>);                                               \
  template int trtri<T>(Triangle, MatrixView<T>);                                               \
  template int sygst<T>(Triangle, MatrixView<T>, MatrixView<const T>);                          \
  template int sygvd<T>(Triangle, MatrixView<T>, MatrixView<T>, VectorView<T>, LapackWork<T>&); \
  template int syevd<T>(Triangle, MatrixView<T>, VectorView<T>, LapackWork<T>&);                \
  template int sytrd<T>(Triangle, MatrixView<T>, VectorView<T>, VectorView<T>, VectorView<T>,   \
                        LapackWork<T>&);                                                        \
  template int syevr_range<T>(Triangle, MatrixView<T>, index_t, index_t, VectorView<T>,         \
                              MatrixView<T>, LapackWork<T>&);
EIGENFEAT_INSTANTIATE(float)
EIGENFEAT_INSTANTIATE(double)
#undef EIGENFEAT_INSTANTIATE

}  // namespace eigenfeat
