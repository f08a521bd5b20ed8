// The CUDA source of one reduction kernel.
#include "cuda/reduce_source.h"

#include "core/ops/elementwise.h"
#include "cuda/nvrtc.h"
#include "cuda/row_source.h"

namespace cresset::cuda {
namespace {

Compute compute_of(DType dtype) {
  switch (dtype) {
    case DType::Float16:
    case DType::BFloat16:
    case DType::Float32: return Compute::F32;
    case DType::Float64: return Compute::F64;
    case DType::Complex64: return Compute::C64;
    case DType::Complex128: return Compute::C128;
    default: return Compute::I64;
  }
}

const char* fold_name(const ReduceProgram& p) {
  if (p.places) return "ArgFold";
  switch (p.op) {
    case ReduceOp::Sum: return "SumFold";
    case ReduceOp::NanSum: return "NanSumFold";
    case ReduceOp::Prod: return "ProdFold";
    case ReduceOp::Max:
    case ReduceOp::Min: return "ExtremeFold";
    case ReduceOp::Nonzero: return "CountFold";
    case ReduceOp::Any: return "AnyFold";
    case ReduceOp::All: return "AllFold";
    case ReduceOp::Norm: return "NormFold";
    default: return "DeviationFold";
  }
}

}  // namespace

size_t accumulator_bytes(const ReduceProgram& p) {
  if (p.places) return 16;
  const size_t real = compute_of(p.in) == Compute::F32 || compute_of(p.in) == Compute::C64 ? 4 : 8;
  switch (p.op) {
    case ReduceOp::Nonzero:
    case ReduceOp::Any:
    case ReduceOp::All: return 8;
    case ReduceOp::Norm:
    case ReduceOp::Deviations: return real;
    default: return is_complex(p.in) ? 2 * real : real;
  }
}

std::string reduce_body(const ReduceProgram& p) {
  std::string text(embedded_text("reduce_args.h"));
  text += "namespace cresset::cuda {\nusing V = ";
  text += compute_type(compute_of(p.in));
  text += ";\nusing T = " + std::string(memory_type(p.in));
  text += ";\nusing TOut = " + std::string(memory_type(p.out));
  text += ";\nusing Index = " + std::string(p.wide_index ? "int64_t" : "int") + ";\n";
  text += "#define PACK " + std::to_string(p.pack) + "\n";
  text += "#define FOLD " + std::string(fold_name(p)) + "\n";
  if (p.combine)
    text += "#define COMBINE\n";
  else if (p.rows)
    text += "#define ROWS\n";
  if (p.run) text += "#define RUN\n";
  if (p.line) text += "#define LINE\n";
  if (p.op == ReduceOp::Max || p.op == ReduceOp::Min)
    text += "#define LARGEST " + std::string(p.op == ReduceOp::Max ? "true" : "false") + "\n";
  if (p.op == ReduceOp::Norm || p.op == ReduceOp::Deviations)
    text += "#define P_KIND " + std::to_string(p.p_kind) + "\n";
  text += "}\n";
  text += embedded_text("reduce.cuh");
  return text;
}

std::string reduce_source(const ReduceProgram& p) {
  return prelude(is_complex(p.in) || is_complex(p.out), false) + reduce_body(p);
}

}  // namespace cresset::cuda
