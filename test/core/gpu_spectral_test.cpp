// Transforms, spectra, selections and ranges on a GPU: against the CPU's, or what defines them.
#include "core/ops/creation.h"
#include "core/ops/fft.h"
#include "core/ops/fractional_pool.h"
#include "core/ops/matmul.h"
#include "core/ops/shape.h"
#include "core/ops/sort.h"
#include "core/ops/spectral.h"
#include "test/core/gpu_compare.h"

namespace cresset {
namespace {

TEST(CudaFft, LengthsAndDims) {
  for (DType dtype : {DType::Complex64, DType::Complex128})
    for (int64_t n : {1, 2, 7, 64, 97, 1000}) {
      Tensor x = random({3, n, 2}, dtype);
      const double tolerance = tolerance_of(dtype) * std::sqrt(static_cast<double>(n)) * 4;
      for (bool inverse : {false, true})
        compare("fft", tolerance, [&](const Move& to, Device) {
          return TensorList{ops::fft_complex("fft", to(x), Dims{1}, inverse, 0.25),
                            ops::fft_complex("fft", to(x), Dims{1, 2}, inverse, 1),
                            ops::fft_to_real("fft", to(x), 1, 2 * n - 1, 1)};
        });
    }
}

double tolerance_for(DType dtype) { return to_real(dtype) == DType::Float32 ? 2e-5 : 1e-10; }

Tensor times_columns(const Tensor& m, const Tensor& s) {
  return ops::mul(m, ops::to_dtype(ops::unsqueeze(s, -2), m.dtype()));
}

// a = u diag(s) vh, with orthonormal columns and rows, and the CPU's singular values.
void check_svd(const Tensor& a, bool full, const std::string& name) {
  const double tolerance = tolerance_for(a.dtype());
  auto [u, s, vh] = ops::linalg_svd(ops::on_device(a, gpu), full);
  const Tensor U = ops::on_host(u), S = ops::on_host(s), V = ops::on_host(vh);
  expect_close(std::get<1>(ops::linalg_svd(a, full)), S, tolerance, name + " s");
  const int64_t k = S.size(-1);
  Tensor product =
      ops::matmul(times_columns(ops::narrow(U, -1, 0, k), S), ops::narrow(V, -2, 0, k));
  expect_close(a, product, tolerance * 4, name + " product");
  auto one = [&](const Tensor& gram) {
    return ops::contiguous(ops::expand(identity(gram.size(-1), options_of(gram)), gram.sizes()));
  };
  Tensor left = ops::matmul(ops::adjoint(U), U), right = ops::matmul(V, ops::adjoint(V));
  expect_close(one(left), left, tolerance, name + " u");
  expect_close(one(right), right, tolerance, name + " vh");
}

TEST(CudaSpectral, SingularValues) {
  for (DType dtype : {DType::Float32, DType::Float64, DType::Complex128})
    for (auto [batch, m, n] : {std::array<int64_t, 3>{1, 1, 1},
                               {1, 5, 3},
                               {2, 3, 5},
                               {6, 5, 3},
                               {6, 4, 7},
                               {4, 1, 6},
                               {5, 6, 6},
                               {1, 40, 33},
                               {2, 33, 40}})
      for (bool full : {false, true}) {
        const std::string name = "svd " + std::to_string(batch) + " " + std::to_string(m) + " " +
                                 std::to_string(n) + (full ? " full" : "");
        check_svd(random({batch, m, n}, dtype), full, name);
        // Of rank 1.
        Tensor low = ops::matmul(random({batch, m, 1}, dtype), random({batch, 1, n}, dtype));
        check_svd(low, full, name + " rank 1");
      }
}

TEST(CudaSpectral, HermitianMatrices) {
  for (DType dtype : {DType::Float32, DType::Float64, DType::Complex128})
    for (auto [batch, n] : {std::array<int64_t, 2>{1, 1}, {1, 6}, {7, 6}, {3, 40}, {1, 65}})
      for (bool upper : {false, true}) {
        Tensor x = random({batch, n, n}, dtype);
        Tensor a = ops::add(x, ops::adjoint(x));
        // Only one triangle counts.
        Tensor half = upper ? ops::triu(a) : ops::tril(a);
        auto [w, v] = ops::linalg_eigh(ops::on_device(half, gpu), upper);
        const Tensor W = ops::on_host(w), V = ops::on_host(v);
        const std::string name = "eigh " + std::to_string(batch) + " " + std::to_string(n);
        const double tolerance = tolerance_for(dtype) * 4;
        expect_close(std::get<0>(ops::linalg_eigh(half, upper)), W, tolerance, name);
        expect_close(times_columns(V, W), ops::matmul(a, V), tolerance * 4, name + " vectors");
      }
}

TEST(CudaSpectral, GeneralMatrices) {
  for (auto [batch, n] : {std::array<int64_t, 2>{1, 1}, {3, 5}, {1, 33}}) {
    Tensor a = random({batch, n, n}, DType::Complex128), there = ops::on_device(a, gpu);
    Options o{DType::Complex128, gpu};
    Tensor values = empty(Dims{batch, n}, o), vectors = empty(Dims{batch, n, n}, o);
    Tensor info = ops::zeros(Dims{batch}, {DType::Int32, gpu});
    launch("eig", gpu, &SpectralKernels::eig, there, values, vectors, info);
    const Tensor W = ops::on_host(values), V = ops::on_host(vectors);
    expect_close(times_columns(V, W), ops::matmul(a, V), 1e-9, "eig " + std::to_string(n));
  }
}

TEST(CudaPool, FractionalWindows) {
  for (DType dtype : float_types) {
    Tensor x = random({6, 4, 9, 11}, dtype);
    Tensor draws = ops::on_host(ops::to_dtype(ops::div(integers({6, 3}, 0, 1000), 1000), dtype));
    const int64_t kernel[] = {2, 3, 2};
    compare("fractional pool", 0, [&](const Move& to, Device device) {
      Tensor y = empty(Dims{6, 2, 4, 5}, {dtype, device});
      Tensor at = empty(Dims{6, 2, 4, 5}, {DType::Int64, device});
      launch("pool", device, &FractionalPoolKernels::max_pool, to(x), to(draws),
             std::span<const int64_t>(kernel), y, at);
      return TensorList{y, at};
    });
  }
}

TEST(CudaSort, FirstOfLongRows) {
  for (DType dtype : {DType::Float32, DType::Float64, DType::Int64, DType::Int8, DType::Float16})
    for (auto [rows, n, k] :
         {std::array<int64_t, 3>{1, 5000, 1}, {3, 9001, 17}, {40, 4097, 1000}, {33, 20000, 2048}})
      for (bool largest : {false, true}) {
        Tensor x = ops::on_device(random({rows, n}, dtype), gpu);
        Tensor values = empty(Dims{rows, k}, {dtype, gpu});
        Tensor indices = empty(Dims{rows, k}, {DType::Int64, gpu});
        launch("topk", gpu, &SortKernels::topk, x, largest, values, indices);
        auto [sorted, places] = ops::sort(x, 1, largest, true);
        const std::string name = "topk of " + std::to_string(n);
        expect_close(ops::on_host(ops::narrow(sorted, 1, 0, k)), values, 0, name);
        expect_close(ops::on_host(ops::narrow(places, 1, 0, k)), indices, 0, name + " places");
      }
}

TEST(CudaRanges, EqualTheCpu) {
  const DType dtypes[] = {DType::Bool,    DType::UInt8,  DType::Int8,    DType::Int16,
                          DType::Int32,   DType::Int64,  DType::Float16, DType::BFloat16,
                          DType::Float32, DType::Float64};
  for (DType dtype : dtypes)
    compare("ranges", 1e-6, [&](const Move&, Device device) {
      TensorList out;
      for (int i = 0; i < 3; ++i) out.push_back(empty(Dims{1001}, {dtype, device}));
      launch("arange", device, &RangeKernels::arange, out[0], Scalar(-3.0), Scalar(0.5));
      if (is_integral(dtype, true))
        launch("arange", device, &RangeKernels::arange, out[0], Scalar(int64_t{-7}),
               Scalar(int64_t{3}));
      launch("linspace", device, &RangeKernels::spaced, out[1], 0.1, 7.7, std::nullopt);
      launch("logspace", device, &RangeKernels::spaced, out[2], 0.0, 4.0, std::optional(2.0));
      return out;
    });
}

TEST(CudaElementwise, TransposedOperands) {
  for (DType dtype : {DType::Float32, DType::Float64, DType::BFloat16, DType::Complex128,
                      DType::Int64, DType::Bool}) {
    Tensor a = random({3, 130, 77}, dtype), b = random({3, 77, 130}, dtype);
    Tensor c = random({130, 3, 77}, dtype), line = random({77}, dtype);
    compare("turned", dtype == DType::BFloat16 ? 1e-2 : 1e-6, [&](const Move& to, Device) {
      Tensor turned = ops::transpose(to(b), 1, 2), plain = to(a);
      return TensorList{ops::add(plain, turned), ops::add(turned, to(line)),
                        ops::mul(plain, ops::transpose(to(c), 0, 1)),
                        ops::add(ops::add(turned, plain), ops::transpose(to(c), 0, 1)),
                        ops::to_dtype(ops::contiguous(turned), DType::Complex64)};
    });
  }
}

}  // namespace
}  // namespace cresset
