// Reductions on the GPU against the CPU: every kind, dtypes, dims, layouts, long and short runs.
#include "core/ops/reduce.h"

#include "test/core/gpu_support.h"

namespace cresset::test {
namespace {

struct Kind {
  const char* name;
  ReduceOp op;
  double p = 2;
};
constexpr Kind kinds[] = {{"sum", ReduceOp::Sum},
                          {"nansum", ReduceOp::NanSum},
                          {"prod", ReduceOp::Prod},
                          {"max", ReduceOp::Max},
                          {"min", ReduceOp::Min},
                          {"nonzero", ReduceOp::Nonzero},
                          {"any", ReduceOp::Any},
                          {"all", ReduceOp::All},
                          {"norm2", ReduceOp::Norm, 2},
                          {"norm0", ReduceOp::Norm, 0},
                          {"norm1", ReduceOp::Norm, 1},
                          {"norm3", ReduceOp::Norm, 3},
                          {"norminf", ReduceOp::Norm, HUGE_VAL},
                          {"norm-inf", ReduceOp::Norm, -HUGE_VAL}};

DType result_of(ReduceOp op, DType in) {
  switch (op) {
    case ReduceOp::Nonzero: return DType::Int64;
    case ReduceOp::Any:
    case ReduceOp::All: return DType::Bool;
    case ReduceOp::Norm: return to_real(in);
    case ReduceOp::Max:
    case ReduceOp::Min: return in;
    default: return is_integral(in, true) ? DType::Int64 : in;
  }
}

bool fits(const Kind& k, DType d) {
  if (is_complex(d))
    return k.op != ReduceOp::Max && k.op != ReduceOp::Min && k.op != ReduceOp::NanSum;
  return k.op != ReduceOp::Norm || is_floating(d);
}

void compare(const Tensor& x, const Tensor& there, const Dims& over, DType dtype,
             const std::string& what) {
  for (const Kind& k : kinds) {
    if (!fits(k, dtype)) continue;
    ops::ReduceSpec spec{.kind = k.op, .dtype = result_of(k.op, dtype), .p = k.p};
    const Tensor want = ops::reduce_raw(k.name, x, over, spec);
    const Tensor got = ops::reduce_raw(k.name, there, over, spec);
    EXPECT_TRUE(same_values(got, want, 10 * tolerance_of(want.dtype())))
        << k.name << " " << dtype << " " << what;
  }
}

constexpr DType dtypes[] = {DType::Float32,  DType::Float64,   DType::Float16,
                            DType::BFloat16, DType::Int64,     DType::Int8,
                            DType::Bool,     DType::Complex64, DType::Complex128};

/// A parameter each, so that dtypes can run in processes of their own: compiling takes the time.
class CudaReduceOf : public ::testing::TestWithParam<DType> {};

TEST_P(CudaReduceOf, EqualsTheCpu) {
  GradMode off(false);
  const DType dtype = GetParam();
  Tensor x = random_tensor({3, 37, 44}, dtype, 1 + static_cast<uint64_t>(dtype), -1.2, 1.2);
  Tensor y = to_gpu(x);
  for (const Dims& over :
       {Dims{0}, Dims{1}, Dims{2}, Dims{0, 1}, Dims{0, 2}, Dims{1, 2}, Dims{0, 1, 2}}) {
    compare(x, y, over, dtype, "plain");
    const Dims order{2, 0, 1};
    compare(ops::permute(x, order), ops::permute(y, order), over, dtype, "permuted");
    compare(ops::slice(x, 2, 1, 44, 2), ops::slice(y, 2, 1, 44, 2), over, dtype, "sliced");
    compare(ops::slice(x, 2, 1, 44, 1), ops::slice(y, 2, 1, 44, 1), over, dtype, "offset");
  }
}

INSTANTIATE_TEST_SUITE_P(Dtypes, CudaReduceOf, ::testing::ValuesIn(dtypes));

TEST(CudaReduce, LongAndShortRuns) {
  GradMode off(false);
  uint64_t seed = 100;
  const Dims shapes[] = {{1, 1},     {1, 5},      {5, 1},     {1, 300000}, {300000, 1},
                         {2, 99999}, {99999, 2},  {4096, 33}, {33, 4096},  {70000, 3},
                         {3, 70000}, {513, 1025}, {0, 4},     {4, 0}};
  for (const Dims& shape : shapes)
    for (const DType dtype : {DType::Float32, DType::BFloat16, DType::UInt8}) {
      Tensor x = random_tensor(shape, dtype, seed++, 0, 2), y = to_gpu(x);
      for (const Dims& over : {Dims{0}, Dims{1}, Dims{0, 1}})
        for (const Kind& k : {kinds[0], kinds[3], kinds[6], kinds[8]}) {
          if (!fits(k, dtype) || (k.op == ReduceOp::Max && x.numel() == 0)) continue;
          ops::ReduceSpec spec{.kind = k.op, .dtype = result_of(k.op, dtype), .p = k.p};
          const Tensor want = ops::reduce_raw(k.name, x, over, spec);
          EXPECT_TRUE(same_values(ops::reduce_raw(k.name, y, over, spec), want,
                                  10 * tolerance_of(want.dtype())))
              << k.name << " " << dtype << " " << shape[0] << "x" << shape[1];
        }
    }
}

TEST(CudaReduce, Positions) {
  GradMode off(false);
  uint64_t seed = 300;
  for (const DType dtype : {DType::Float32, DType::Float16, DType::Int64, DType::UInt8}) {
    // Few distinct values, so that the first of many equals counts.
    Tensor x = random_tensor({5, 301, 12}, dtype, seed++, -2, 2);
    if (is_floating(dtype)) x = ops::row(Row::round, {x});
    Tensor y = to_gpu(x);
    for (int64_t dim = 0; dim < 3; ++dim) {
      const auto [values, places] = ops::max_dim(x, dim, false);
      const auto [there, at] = ops::max_dim(y, dim, false);
      EXPECT_TRUE(same_values(there, values, 0)) << dtype << dim;
      EXPECT_TRUE(same_values(at, places, 0)) << dtype << dim;
    }
    EXPECT_TRUE(
        same_values(ops::argmin(y, std::nullopt, false), ops::argmin(x, std::nullopt, false), 0));
  }
  Tensor x = random_tensor({1000}, DType::Float32, 5);
  x.data<float>()[300] = x.data<float>()[700] = NAN;
  EXPECT_EQ(*ops::on_host(ops::argmax(to_gpu(x), std::nullopt, false)).data<int64_t>(), 300);
}

TEST(CudaReduce, DeviationsFromACenter) {
  GradMode off(false);
  for (const DType dtype : {DType::Float32, DType::Float64, DType::Complex64}) {
    Tensor x = random_tensor({31, 200}, dtype, 9), y = to_gpu(x);
    for (const int64_t dim : {0, 1}) {
      Tensor center = ops::mean(x, Dims{dim}, false, std::nullopt), there = to_gpu(center);
      ops::ReduceSpec spec{.kind = ReduceOp::Deviations, .dtype = to_real(dtype), .divisor = 7};
      spec.center = &center;
      const Tensor want = ops::reduce_raw("var", x, Dims{dim}, spec);
      spec.center = &there;
      EXPECT_TRUE(
          same_values(ops::reduce_raw("var", y, Dims{dim}, spec), want, 10 * tolerance_of(dtype)));
    }
  }
}

}  // namespace
}  // namespace cresset::test
