// Factors of symmetric and Hermitian matrices that need not be definite, and systems by them.
#include "core/ops/linalg_ldl.h"

#include "core/dispatch/op.h"
#include "core/ops/linalg.h"
#include "core/ops/shape.h"

namespace cresset::ops {
namespace {

using Triple = std::tuple<Tensor, Tensor, Tensor>;

// Column by column with pivots, there is little to do side by side: matrices of a GPU are factored
// on the CPU.
Triple ldl_factor(const char* op, const Tensor& x, bool hermitian) {
  check_square(op, x);
  check_linalg_dtype(op, x);
  CHECK(!wants_grad(x), NotImplemented, op, ": no derivative");
  if (x.device().is_cuda()) {
    auto [ld, pivots, info] = ldl_factor(op, on_host(x), hermitian);
    return {on_device(ld, x.device()), on_device(pivots, x.device()), on_device(info, x.device())};
  }
  const int64_t n = x.size(-1);
  Tensor ld = contiguous(tril(x));
  if (ld.same(x)) ld = clone(x, int64_t{0});
  Options ints{DType::Int32, x.device()};
  Tensor pivots = empty(with(batch_of(x), {n}), ints), info = zeros(batch_of(x), ints);
  if (x.numel() > 0)
    launch(op, x.device(), &LdlKernels::factor, view(ld, Dims{-1, n, n}), view(pivots, Dims{-1, n}),
           view(info, Dims{-1}), hermitian);
  return {ld, pivots, info};
}

Triple linalg_ldl_factor_ex(const Tensor& x, bool hermitian, bool check_errors) {
  Triple r = ldl_factor("linalg.ldl_factor_ex", x, hermitian);
  if (check_errors) check_info("linalg.ldl_factor_ex", std::get<2>(r), "is singular");
  return r;
}
std::tuple<Tensor, Tensor> linalg_ldl_factor(const Tensor& x, bool hermitian) {
  auto [ld, pivots, info] = ldl_factor("linalg.ldl_factor", x, hermitian);
  if (!info.is_meta()) check_info("linalg.ldl_factor", info, "is singular");
  return {ld, pivots};
}

Tensor linalg_ldl_solve(const Tensor& ld, const Tensor& pivots, const Tensor& b, bool hermitian) {
  const char* op = "linalg.ldl_solve";
  check_square(op, ld);
  check_linalg_dtype(op, ld);
  const int64_t n = ld.size(-1);
  CHECK(b.dim() >= 2 && b.dtype() == ld.dtype(), DType, op, ": expected matrices of dtype ",
        ld.dtype(), " for B, got ", b.dtype(), " of shape ", b.sizes());
  CHECK(b.size(-2) == n, Shape, op, ": LD of shape ", ld.sizes(), " and B of shape ", b.sizes(),
        " do not fit");
  CHECK(is_integral(pivots.dtype(), false), DType, op, ": expected integer pivots, got ",
        pivots.dtype());
  CHECK(pivots.sizes() == with(batch_of(ld), {n}), Shape, op, ": expected pivots of shape ",
        with(batch_of(ld), {n}), ", got ", pivots.sizes());
  CHECK(!wants_grad(ld, b), NotImplemented, op, ": no derivative");
  if (b.device().is_cuda())
    return on_device(linalg_ldl_solve(on_host(ld), on_host(pivots), on_host(b), hermitian),
                     b.device());
  Dims batch = broadcast_shapes(op, batch_of(ld), batch_of(b));
  const int64_t count = b.size(-1);
  Tensor a = contiguous(expand(ld, with(batch, {n, n})));
  Tensor p = contiguous(expand(to_dtype(pivots, DType::Int32), with(batch, {n})));
  Tensor x = clone(expand(b, with(batch, {n, count})), int64_t{0});
  if (x.numel() > 0)
    launch(op, x.device(), &LdlKernels::solve, view(a, Dims{-1, n, n}), view(p, Dims{-1, n}),
           view(x, Dims{-1, n, count}), hermitian);
  return x;
}

}  // namespace

OP_TABLE(linalg_ldl) = {
    op<linalg_ldl_factor>("linalg_ldl_factor(Tensor self, *, bool hermitian=False) -> (Tensor LD, "
                          "Tensor pivots)",
                          "linalg", "L and D of A = P L D L^T P^T, packed, and pivots."),
    op<linalg_ldl_factor_ex>("linalg_ldl_factor_ex(Tensor self, *, bool hermitian=False, "
                             "bool check_errors=False) -> (Tensor LD, Tensor pivots, Tensor info)",
                             "linalg", "linalg.ldl_factor(), and whether it failed."),
    op<linalg_ldl_solve>("linalg_ldl_solve(Tensor LD, Tensor pivots, Tensor B, *, "
                         "bool hermitian=False) -> Tensor",
                         "linalg", "X with A X = B from the factors of linalg.ldl_factor()."),
};
OP_TABLE_END(linalg_ldl);

}  // namespace cresset::ops
