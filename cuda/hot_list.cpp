// Compiles the kernels that nearly every program uses into a folder that is shipped with the
// library: cuda_hot_list FOLDER sm_80 sm_90 ...
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <vector>

#include "core/base/error.h"
#include "core/cpu/convert.h"
#include "cuda/disk_cache.h"
#include "cuda/nvrtc.h"
#include "cuda/reduce_source.h"
#include "cuda/row_source.h"

namespace cresset::cuda {
namespace {

RowSpec row_spec(Row row, int derivative, DType dtype) {
  const RowInfo& info = row_info(row);
  RowSpec s{.row = static_cast<uint16_t>(row), .derivative = static_cast<int8_t>(derivative)};
  const int inputs = derivative < 0 ? input_count(info.kind) : most_inputs;
  for (int k = 0; k < inputs; ++k) {
    if (derivative >= 0 && k > 0 && !(info.uses[derivative] >> (k - 1) & 1)) continue;
    s.used |= static_cast<uint8_t>(1 << k);
    s.in[k] = dtype;
  }
  s.out = derivative < 0 && gives_bool(info.kind) ? DType::Bool : dtype;
  s.pack = s.out == DType::Bool ? 8 : static_cast<uint8_t>(16 / itemsize(dtype));
  return s;
}

// Operand `k` becomes a number of the host.
RowSpec with_number(RowSpec s, int k) {
  s.scalar |= static_cast<uint8_t>(1 << k);
  s.in[k] = DType::Bool;
  return s;
}

void add_rows(std::vector<std::string>& sources, DType dtype) {
  constexpr Row binary[] = {Row::add, Row::sub, Row::mul, Row::div};
  constexpr Row unary[] = {Row::neg,  Row::exp,  Row::log,     Row::sqrt, Row::square, Row::relu,
                           Row::tanh, Row::gelu, Row::sigmoid, Row::silu, Row::rsqrt,  Row::abs};
  for (const Row r : binary) {
    const RowSpec whole = row_spec(r, -1, dtype);
    RowSpec broadcast = whole;
    broadcast.layout = Layout::Strided32;
    for (const RowSpec& s : {whole, with_number(whole, 1), broadcast})
      sources.push_back(row_source(s));
  }
  for (const Row r : unary)
    for (int d = -1; d < 1; ++d) sources.push_back(row_source(row_spec(r, d, dtype)));
  for (int d = 0; d < 2; ++d) sources.push_back(row_source(row_spec(Row::mul, d, dtype)));
  // Fills with integers and with floats.
  for (const Compute c : {Compute::I64, Compute::F64}) {
    RowSpec fill{.row = copy_row, .compute = c, .used = 1};
    fill.out = dtype;
    fill.pack = static_cast<uint8_t>(16 / itemsize(dtype));
    sources.push_back(row_source(with_number(fill, 0)));
  }
}

void add_reductions(std::vector<std::string>& sources, DType dtype) {
  const auto pack = static_cast<uint8_t>(16 / itemsize(dtype));
  for (const ReduceOp op : {ReduceOp::Sum, ReduceOp::Max}) {
    ReduceProgram rows{.op = op, .in = dtype, .out = dtype, .run = true, .pack = pack};
    ReduceProgram columns{.op = op, .in = dtype, .out = dtype, .rows = false, .pack = pack};
    for (const ReduceProgram& p : {rows, columns}) sources.push_back(reduce_source(p));
  }
  sources.push_back(reduce_source(
      {.op = ReduceOp::Max, .places = true, .in = dtype, .out = dtype, .run = true, .pack = pack}));
}

int write_all(const std::string& folder, std::span<char*> architectures) {
  std::vector<std::string> sources;
  add_rows(sources, DType::Float32);
  add_reductions(sources, DType::Float32);
  DiskCache shipped(folder, int64_t{1} << 40);
  for (const char* arch : architectures)
    for (const std::string& source : sources)
      shipped.put(kernel_key(source, arch), compile(source, arch));
  std::printf("%zu kernels for %zu architectures in %s\n", sources.size(), architectures.size(),
              folder.c_str());
  return 0;
}

}  // namespace
}  // namespace cresset::cuda

int main(int count, char** values) {
  if (count < 3) {
    std::fprintf(stderr, "usage: cuda_hot_list FOLDER sm_80 sm_90 ...\n");
    return 2;
  }
  try {
    return cresset::cuda::write_all(values[1], {values + 2, static_cast<size_t>(count - 2)});
  } catch (const cresset::Error& e) {
    std::fprintf(stderr, "%s\n", e.what());
    return 1;
  }
}
