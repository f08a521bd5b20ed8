// Every elementwise row on the GPU against the CPU: dtypes, layouts, derivatives, copies, fills.
#include "core/ops/elementwise.h"

#include "core/ops/formula.h"
#include "test/core/gpu_support.h"

namespace cresset::test {
namespace {

/// One tensor on both devices.
struct Pair {
  Tensor cpu, cuda;
};

Pair both(const Tensor& t) { return {t, to_gpu(t)}; }

// Layouts of a 2-d operand that broadcasts to [6, 40].
Pair operand(const std::string& layout, DType dtype, uint64_t seed) {
  auto view = [](const Tensor& whole, Dims sizes, Dims strides, int64_t offset) {
    Tensor v = alias(whole, std::move(sizes), std::move(strides), offset);
    return Pair{v, strided_to_gpu(whole, v)};
  };
  if (layout == "transposed") return view(random_tensor({40, 6}, dtype, seed), {6, 40}, {1, 6}, 0);
  if (layout == "sliced") return view(random_tensor({6, 83}, dtype, seed), {6, 40}, {83, 2}, 1);
  if (layout == "offset") return view(random_tensor({241}, dtype, seed), {6, 40}, {40, 1}, 1);
  if (layout == "expanded") return view(random_tensor({6, 1}, dtype, seed), {6, 40}, {1, 0}, 0);
  if (layout == "row") return both(random_tensor({40}, dtype, seed));
  if (layout == "column") return both(random_tensor({6, 1}, dtype, seed));
  if (layout == "number") return both(random_tensor({}, dtype, seed));
  return both(random_tensor({6, 40}, dtype, seed));
}

std::vector<DType> dtypes_of(const RowInfo& info) {
  std::vector<DType> list;
  for (const DType d :
       {DType::Float32, DType::Float64, DType::Float16, DType::BFloat16, DType::Int64, DType::Int32,
        DType::UInt8, DType::Bool, DType::Complex64, DType::Complex128}) {
    if (!class_has(info.cls, ops::compute_for(d))) continue;
    const bool no_bool = info.cls == DTypeClass::number_nobool ||
                         info.cls == DTypeClass::real_nobool || info.cls == DTypeClass::integer;
    if (d == DType::Bool && no_bool) continue;
    list.push_back(d);
  }
  return list;
}

double row_tolerance(const RowInfo& info, DType dtype) {
  // The derivative and functions near their zeros magnify the last places of the inputs.
  const std::string name = info.name;
  const double base = tolerance_of(dtype);
  const bool steep = name.find("gamma") != std::string::npos || name == "tan" || name == "pow" ||
                     name == "special_zeta" || name.find("bessel_y") != std::string::npos ||
                     name.find("polynomial") != std::string::npos;
  return steep ? base * 20 : base;
}

class CudaRows : public ::testing::TestWithParam<int> {};

TEST_P(CudaRows, EqualTheCpu) {
  const Row row = static_cast<Row>(GetParam());
  const RowInfo& info = row_info(row);
  const int inputs = input_count(info.kind);
  const std::vector<std::string> layouts = {"plain",    "transposed", "sliced", "offset",
                                            "expanded", "row",        "column", "number"};
  uint64_t seed = 2 * static_cast<uint64_t>(GetParam());
  GradMode off(false);
  for (const DType dtype : dtypes_of(info)) {
    // Other dtypes share the walks of float32: two layouts tell whether their loads and stores
    // work.
    const size_t tried = dtype == DType::Float32 ? layouts.size() : 2;
    for (size_t l = 0; l < tried; ++l) {
      std::vector<Operand> on_cpu, on_gpu;
      for (int k = 0; k < inputs; ++k) {
        const std::string& layout = k == 0 ? layouts[l] : layouts[(l * 3 + 2 * k) % layouts.size()];
        Pair p = operand(layout, dtype, seed++);
        // Integers are divided by these: no zeros.
        if (is_integral(dtype, true) && k > 0) {
          p.cpu = ops::add(ops::on_host(p.cpu), 7);
          p.cuda = to_gpu(p.cpu);
        }
        on_cpu.push_back(p.cpu);
        on_gpu.push_back(p.cuda);
      }
      const Tensor want =
          ops::elementwise(row, std::span<const Operand>(on_cpu), row_defaults(row));
      const Tensor got = ops::elementwise(row, std::span<const Operand>(on_gpu), row_defaults(row));
      EXPECT_TRUE(got.device() == gpu);
      EXPECT_TRUE(same_values(got, want, row_tolerance(info, want.dtype())))
          << info.name << " " << dtype << " " << layouts[l];
    }
  }
}

TEST_P(CudaRows, DerivativesEqualTheCpu) {
  const Row row = static_cast<Row>(GetParam());
  const RowInfo& info = row_info(row);
  const int inputs = input_count(info.kind);
  uint64_t seed = 7919 + 2 * static_cast<uint64_t>(GetParam());
  GradMode off(false);
  for (const DType dtype : dtypes_of(info)) {
    if (is_integral(dtype, true)) continue;
    std::vector<Operand> on_cpu, on_gpu;
    for (int k = 0; k < inputs; ++k) {
      Pair p = operand(k == 1 ? "transposed" : "plain", dtype, seed++);
      on_cpu.push_back(p.cpu);
      on_gpu.push_back(p.cuda);
    }
    const Tensor y = ops::elementwise(row, std::span<const Operand>(on_cpu), row_defaults(row));
    const Pair g = operand("plain", y.dtype(), seed++);
    const Tensor y_gpu = to_gpu(y);
    for (int i = 0; i < inputs; ++i) {
      if (!info.derivative[i]) continue;
      auto run = [&](const std::vector<Operand>& in, const Tensor& grad, const Tensor& result) {
        const Operand g_in(grad), y_in(result);
        const Operand* list[5] = {&g_in};
        for (int k = 0; k < inputs; ++k)
          if (info.uses[i] >> k & 1) list[k + 1] = &in[static_cast<size_t>(k)];
        if (info.uses[i] & 8) list[4] = &y_in;
        const DType stored = dtype;
        Tensor d = empty(Dims{6, 40}, {stored, grad.device()});
        RowCall call{.row = row,
                     .derivative = i,
                     .compute = ops::compute_for(stored),
                     .params = row_defaults(row).data(),
                     .in = {list, 5},
                     .out = &d};
        launch("test", grad.device(), &ElementwiseKernels::row, call);
        return d;
      };
      EXPECT_TRUE(same_values(run(on_gpu, g.cuda, y_gpu), run(on_cpu, g.cpu, y),
                              10 * row_tolerance(info, dtype)))
          << info.name << " d" << i << " " << dtype;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(All, CudaRows, ::testing::Range(0, static_cast<int>(row_count)),
                         [](const auto& p) { return std::string(row_infos[p.param].name); });

TEST(CudaElementwise, ManyDimsAndSizes) {
  GradMode off(false);
  // Ten dims that cannot merge.
  Tensor x = random_tensor(Dims{2, 3, 2, 2, 3, 2, 2, 1, 3, 2}, DType::Float32, 1);
  Dims order{9, 7, 5, 3, 1, 8, 6, 4, 2, 0};
  EXPECT_TRUE(same_values(ops::add(ops::permute(to_gpu(x), order), 1.5),
                          ops::add(ops::permute(x, order), 1.5), 0));
  Tensor gaps = ops::slice(ops::permute(to_gpu(x), order), 1, 0, 1, 1);
  EXPECT_TRUE(same_values(gaps, ops::slice(ops::permute(x, order), 1, 0, 1, 1), 0));
  for (const int64_t n : {0, 1, 2, 3, 4, 5, 31, 255, 256, 257, 1023, 2048, 2049, 100003})
    for (const DType d : {DType::Float32, DType::Float16, DType::UInt8, DType::Complex128}) {
      Tensor a = random_tensor({n}, d, 5), b = random_tensor({n}, d, 6);
      EXPECT_TRUE(same_values(ops::mul(to_gpu(a), to_gpu(b)), ops::mul(a, b), tolerance_of(d)))
          << n << " " << d;
    }
}

TEST(CudaElementwise, MixesWithNumbersOfTheCpu) {
  GradMode off(false);
  Tensor x = random_tensor({33}, DType::Float32, 3), s = random_tensor({}, DType::Float64, 4);
  EXPECT_TRUE(same_values(ops::mul(to_gpu(x), s), ops::mul(x, s), 1e-6));
  EXPECT_TRUE(same_values(ops::sub(s, to_gpu(x)), ops::sub(s, x), 1e-6));
  EXPECT_THROW(ops::add(to_gpu(x), x), Error);
}

TEST(CudaElementwise, RefusesTheHostsAccess) {
  Tensor x = to_gpu(random_tensor({3}, DType::Float32, 3));
  EXPECT_THROW(x.data<float>(), Error);
}

TEST(CudaCopies, ConvertBetweenAllDtypes) {
  GradMode off(false);
  for (int from = 0; from < 12; ++from)
    for (int to = 0; to < 12; ++to) {
      Tensor x = random_tensor({5, 77}, static_cast<DType>(from), 11, 0, 100);
      Tensor want = ops::to_dtype(x, static_cast<DType>(to));
      EXPECT_TRUE(same_values(ops::to_dtype(to_gpu(x), static_cast<DType>(to)), want, 0))
          << static_cast<DType>(from) << " to " << static_cast<DType>(to);
    }
}

TEST(CudaCopies, MoveStridedMemory) {
  GradMode off(false);
  for (const DType d :
       {DType::UInt8, DType::Float16, DType::Float32, DType::Float64, DType::Complex128}) {
    Tensor x = random_tensor({7, 67, 45}, d, 21);
    Tensor y = to_gpu(x);
    for (const Dims& order : {Dims{0, 2, 1}, Dims{2, 1, 0}, Dims{1, 0, 2}, Dims{2, 0, 1}})
      EXPECT_TRUE(same_values(ops::clone(ops::permute(y, order), int64_t{0}),
                              ops::clone(ops::permute(x, order), int64_t{0}), 0))
          << d;
    EXPECT_TRUE(same_values(ops::clone(ops::slice(y, 2, 1, 44, 3), int64_t{0}),
                            ops::slice(x, 2, 1, 44, 3), 0));
    EXPECT_TRUE(
        same_values(ops::on_host(ops::slice(y, 1, 3, 60, 7)), ops::slice(x, 1, 3, 60, 7), 0));
  }
}

TEST(CudaCopies, Fill) {
  GradMode off(false);
  for (int d = 0; d < 12; ++d) {
    const Options on_cpu{static_cast<DType>(d), {}}, on_gpu{static_cast<DType>(d), gpu};
    for (const int64_t n : {1, 5, 1000})
      EXPECT_TRUE(same_values(ops::full(Dims{n}, Scalar(int64_t{1}), on_gpu),
                              ops::full(Dims{n}, Scalar(int64_t{1}), on_cpu), 0));
  }
}

}  // namespace
}  // namespace cresset::test
