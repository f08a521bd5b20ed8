// Eigenvalues and singular values by cuSOLVER, whose matrices lie by columns.
#include "core/ops/spectral.h"

#include <cuComplex.h>

#include <vector>

#include "core/ops/ops.h"
#include "cuda/device.cuh"
#include "cuda/graph.h"
#include "cuda/libraries.h"

namespace cresset::cuda {
namespace {

cudaDataType type_of(const Tensor& a) { return a.is_complex() ? CUDA_C_64F : CUDA_R_64F; }
char* matrix(const Tensor& t, int64_t i) {
  return data_of<char>(t) + i * t.stride(0) * static_cast<int64_t>(itemsize(t.dtype()));
}

cusolverDnParams_t params() {
  thread_local cusolverDnParams_t made = nullptr;
  if (!made) LIBRARY_CHECK("cuSOLVER", cusolverDnCreateParams(&made));
  return made;
}

/// Memory of one call on both sides.
struct Workspace {
  size_t device_bytes = 0, host_bytes = 0;
  Tensor device;
  std::vector<char> host;

  void allocate(Device where) {
    refuse_in_capture(launching_op(), "waits for the device");
    device = scratch(device_bytes, where);
    host.resize(std::max<size_t>(host_bytes, 1));
  }
  /// Before the host's part is used again, or freed.
  void settle() const {
    if (host_bytes > 0) CUDA_CHECK(cudaStreamSynchronize(current_stream()));
  }
};

Tensor make_info(const Tensor& a) { return empty(Dims{a.size(0)}, {DType::Int32, a.device()}); }

void check_converged(const Tensor& info) {
  const Tensor codes = ops::on_host(info);
  for (int64_t i = 0; i < codes.numel(); ++i)
    CHECK(codes.data<int32_t>()[i] == 0, Value, launching_op(), ": matrix ", i,
          " of the batch did not converge (cuSOLVER: ", codes.data<int32_t>()[i], ")");
}

__device__ inline double conjugate(double x) { return x; }
__device__ inline Complex<double> conjugate(Complex<double> z) { return {z.re, -z.im}; }

/// Calls f.operator()<T>() with the device's type of float64 or complex128.
template <class F> void visit_double(const Tensor& a, F&& f) {
  if (a.is_complex()) return f.template operator()<Complex<double>>();
  f.template operator()<double>();
}

template <class T> void put_transposed_as(const Tensor& from, const Tensor& to, bool conjugated) {
  const int64_t rows = to.size(1), columns = to.size(2), step = from.stride(0);
  const T* x = data_of<T>(from);
  T* y = data_of<T>(to);
  for_each(to.numel(), [=] __device__(int64_t item) {
    const int64_t j = item % columns, i = item / columns % rows, b = item / columns / rows;
    const T v = x[b * step + j * rows + i];
    y[item] = conjugated ? conjugate(v) : v;
  });
}

/// to [B, r, c] = the transposes of from [B, >= c, r], conjugated if asked for.
void put_transposed(const Tensor& from, const Tensor& to, bool conjugated) {
  visit_double(to, [&]<class T>() { put_transposed_as<T>(from, to, conjugated); });
}

template <class T> void put_identity(const Tensor& to) {
  const int64_t rows = to.size(1), columns = to.size(2);
  T* y = data_of<T>(to);
  for_each(to.numel(), [=] __device__(int64_t item) {
    y[item] = T(item % columns == item / columns % rows ? 1.0 : 0.0);
  });
}

// ---- Hermitian matrices

// By columns the matrix is its own conjugate, with the triangles exchanged.
void eigh(const Tensor& a, bool upper, const Tensor& values, const Tensor& vectors) {
  const int64_t batch = a.size(0), n = a.size(1);
  const cublasFillMode_t fill = upper ? CUBLAS_FILL_MODE_LOWER : CUBLAS_FILL_MODE_UPPER;
  const cudaDataType type = type_of(a);
  const cusolverEigMode_t mode = CUSOLVER_EIG_MODE_VECTOR;
  Tensor work = ops::clone(a, int64_t{0}), info = make_info(a);
  Workspace w;
  if (batch > 1) {
    LIBRARY_CHECK("cuSOLVER",
                  cusolverDnXsyevBatched_bufferSize(solver(), params(), mode, fill, n, type,
                                                    data_of(work), n, CUDA_R_64F, data_of(values),
                                                    type, &w.device_bytes, &w.host_bytes, batch));
    w.allocate(a.device());
    LIBRARY_CHECK(
        "cuSOLVER",
        cusolverDnXsyevBatched(solver(), params(), mode, fill, n, type, data_of(work), n,
                               CUDA_R_64F, data_of(values), type, data_of(w.device), w.device_bytes,
                               w.host.data(), w.host_bytes, data_of<int>(info), batch));
  } else {
    LIBRARY_CHECK("cuSOLVER",
                  cusolverDnXsyevd_bufferSize(solver(), params(), mode, fill, n, type,
                                              data_of(work), n, CUDA_R_64F, data_of(values), type,
                                              &w.device_bytes, &w.host_bytes));
    w.allocate(a.device());
    LIBRARY_CHECK("cuSOLVER", cusolverDnXsyevd(solver(), params(), mode, fill, n, type,
                                               data_of(work), n, CUDA_R_64F, data_of(values), type,
                                               data_of(w.device), w.device_bytes, w.host.data(),
                                               w.host_bytes, data_of<int>(info)));
  }
  check_converged(info);
  put_transposed(work, vectors, true);
}

// ---- singular values

/// A batch [B, n, m] of m x n matrices by columns, m >= n, which is overwritten: u [B, m or n, m]
/// by columns and vt [B, n, n] by columns.
void singular_values(const Tensor& columns, const Tensor& u, const Tensor& s, const Tensor& vt) {
  const int64_t n = columns.size(1), m = columns.size(2);
  const signed char job = u.size(1) == m ? 'A' : 'S';
  const cudaDataType type = type_of(columns);
  Tensor info = make_info(columns);
  Workspace w;
  LIBRARY_CHECK("cuSOLVER", cusolverDnXgesvd_bufferSize(solver(), params(), job, 'A', m, n, type,
                                                        data_of(columns), m, CUDA_R_64F, data_of(s),
                                                        type, data_of(u), m, type, data_of(vt), n,
                                                        type, &w.device_bytes, &w.host_bytes));
  w.allocate(columns.device());
  for (int64_t i = 0; i < columns.size(0); ++i) {
    LIBRARY_CHECK("cuSOLVER",
                  cusolverDnXgesvd(solver(), params(), job, 'A', m, n, type, matrix(columns, i), m,
                                   CUDA_R_64F, matrix(s, i), type, matrix(u, i), m, type,
                                   matrix(vt, i), n, type, data_of(w.device), w.device_bytes,
                                   w.host.data(), w.host_bytes, data_of<int>(info) + i));
    w.settle();
  }
  check_converged(info);
}

template <class T> struct Jacobi;
template <> struct Jacobi<double> {
  using Element = double;
  static constexpr auto size = cusolverDnDgesvdjBatched_bufferSize;
  static constexpr auto run = cusolverDnDgesvdjBatched;
};
template <> struct Jacobi<Complex<double>> {
  using Element = cuDoubleComplex;
  static constexpr auto size = cusolverDnZgesvdjBatched_bufferSize;
  static constexpr auto run = cusolverDnZgesvdjBatched;
};

struct JacobiInfo {
  gesvdjInfo_t info = nullptr;

  JacobiInfo() { LIBRARY_CHECK("cuSOLVER", cusolverDnCreateGesvdjInfo(&info)); }
  ~JacobiInfo() { cusolverDnDestroyGesvdjInfo(info); }
  JacobiInfo(const JacobiInfo&) = delete;
  JacobiInfo& operator=(const JacobiInfo&) = delete;
};

/// Whether the library takes all matrices of a batch at once.
bool is_small_batch(const Tensor& a) {
  return a.size(0) >= 4 && a.size(0) <= INT32_MAX && a.size(1) <= 32 && a.size(2) <= 32;
}

// By columns the matrix appears transposed: its left vectors are the conjugated right ones of a.
void small_svd(const Tensor& a, const Tensor& u, const Tensor& s, const Tensor& vh) {
  const int m = static_cast<int>(a.size(1)), n = static_cast<int>(a.size(2));
  const int batch = static_cast<int>(a.size(0));
  Tensor work = ops::clone(a, int64_t{0}), info = make_info(a);
  Tensor left = empty(Dims{batch, n, n}, options_of(a));
  Tensor right = empty(Dims{batch, m, m}, options_of(a));
  refuse_in_capture(launching_op(), "waits for the device");
  visit_double(a, [&]<class T>() {
    using E = typename Jacobi<T>::Element;
    const JacobiInfo jacobi;
    int size = 0;
    LIBRARY_CHECK("cuSOLVER",
                  Jacobi<T>::size(solver(), CUSOLVER_EIG_MODE_VECTOR, n, m, data_of<E>(work), n,
                                  data_of<double>(s), data_of<E>(left), n, data_of<E>(right), m,
                                  &size, jacobi.info, batch));
    Tensor memory = scratch(static_cast<size_t>(size) * sizeof(E), a.device());
    LIBRARY_CHECK("cuSOLVER",
                  Jacobi<T>::run(solver(), CUSOLVER_EIG_MODE_VECTOR, n, m, data_of<E>(work), n,
                                 data_of<double>(s), data_of<E>(left), n, data_of<E>(right), m,
                                 data_of<E>(memory), size, data_of<int>(info), jacobi.info, batch));
    check_converged(info);
  });
  ops::copy_raw(ops::narrow(left, 1, 0, vh.size(1)), vh);
  put_transposed(right, u, true);
}

void svd(const Tensor& a, const Tensor& u, const Tensor& s, const Tensor& vh) {
  const int64_t m = a.size(1), n = a.size(2);
  if (m == 0 || n == 0) {
    for (const Tensor* t : {&u, &vh}) visit_double(a, [&]<class T>() { put_identity<T>(*t); });
    return;
  }
  if (is_small_batch(a)) return small_svd(a, u, s, vh);
  // A wide matrix appears, by columns, as a tall one, and its factors as those of a by rows.
  if (m < n) return singular_values(ops::clone(a, int64_t{0}), vh, s, u);
  Tensor columns = ops::clone(ops::transpose(a, 1, 2), int64_t{0});
  Tensor left = empty(Dims{a.size(0), u.size(2), m}, options_of(a));
  Tensor right = empty(Dims{a.size(0), n, n}, options_of(a));
  singular_values(columns, left, s, right);
  put_transposed(left, u, false);
  put_transposed(right, vh, false);
}

// ---- general matrices

void eig(const Tensor& a, const Tensor& values, const Tensor& vectors, const Tensor& info) {
  const int64_t n = a.size(1);
  const cusolverEigMode_t no = CUSOLVER_EIG_MODE_NOVECTOR, yes = CUSOLVER_EIG_MODE_VECTOR;
  const cudaDataType type = CUDA_C_64F;
  Tensor columns = ops::clone(ops::transpose(a, 1, 2), int64_t{0});
  Tensor right = empty(a.sizes(), options_of(a));
  Workspace w;
  LIBRARY_CHECK("cuSOLVER", cusolverDnXgeev_bufferSize(solver(), params(), no, yes, n, type,
                                                       data_of(columns), n, type, data_of(values),
                                                       type, nullptr, n, type, data_of(right), n,
                                                       type, &w.device_bytes, &w.host_bytes));
  w.allocate(a.device());
  for (int64_t i = 0; i < a.size(0); ++i) {
    LIBRARY_CHECK("cuSOLVER",
                  cusolverDnXgeev(solver(), params(), no, yes, n, type, matrix(columns, i), n, type,
                                  matrix(values, i), type, nullptr, n, type, matrix(right, i), n,
                                  type, data_of(w.device), w.device_bytes, w.host.data(),
                                  w.host_bytes, data_of<int>(info) + i));
    w.settle();
  }
  put_transposed(right, vectors, false);
}

}  // namespace

template <> const SpectralKernels& cuda_table<SpectralKernels>() {
  static constexpr SpectralKernels table = {.eigh = eigh, .svd = svd, .eig = eig};
  return table;
}

}  // namespace cresset::cuda
