// Compiles every kernel that is generated from a formula, for three generations of GPUs.
#include <gtest/gtest.h>

#include <atomic>
#include <mutex>
#include <thread>

#include "core/base/error.h"
#include "core/cpu/convert.h"
#include "cuda/nvrtc.h"
#include "cuda/reduce_source.h"
#include "cuda/row_source.h"

namespace cresset::cuda {
namespace {

constexpr size_t batch = 24;

/// Bodies that share a prelude; each gets a namespace and kernel names of its own.
struct Batch {
  bool complex = false, special = false;
  std::vector<std::string> bodies, names;

  std::string source() const {
    std::string text = prelude(complex, special);
    for (size_t i = 0; i < bodies.size(); ++i) {
      const std::string n = std::to_string(i);
      for (const char* name : {"cuda", "row_kernel", "reduce_kernel", "combine_kernel"})
        text += "\n#define " + std::string(name) + " " + name + n;
      text += "\n" + bodies[i];
      for (const char* name :
           {"cuda", "row_kernel", "reduce_kernel", "combine_kernel", "PACK", "FLAT", "ADD_OFFSETS",
            "RUN", "ROWS", "LINE", "COMBINE", "FOLD", "LARGEST", "P_KIND"})
        text += "\n#undef " + std::string(name);
    }
    return text;
  }
};

class Batches {
 public:
  void add(bool complex, bool special, std::string name, std::string body) {
    Batch& open = open_[complex + 2 * special];
    open.complex = complex;
    open.special = special;
    open.bodies.push_back(std::move(body));
    open.names.push_back(std::move(name));
    if (open.bodies.size() == batch) close(open);
  }
  const std::vector<Batch>& all() {
    for (Batch& b : open_) close(b);
    return done_;
  }

 private:
  void close(Batch& b) {
    if (b.bodies.empty()) return;
    done_.push_back(std::move(b));
    b = {};
  }
  Batch open_[4];
  std::vector<Batch> done_;
};

RowSpec spec_of(size_t row, int derivative, Compute compute) {
  const RowInfo& info = row_infos[row];
  RowSpec s{.row = static_cast<uint16_t>(row),
            .derivative = static_cast<int8_t>(derivative),
            .compute = compute,
            .layout = static_cast<Layout>((row + static_cast<size_t>(derivative + 1)) % 3)};
  const int inputs = derivative < 0 ? input_count(info.kind) : most_inputs;
  for (int k = 0; k < inputs; ++k) {
    if (derivative >= 0 && k > 0 && !(info.uses[derivative] >> (k - 1) & 1)) continue;
    s.used |= static_cast<uint8_t>(1 << k);
    s.in[k] = memory_dtype(compute);
  }
  // A scalar operand here and there.
  if (row % 4 == 1 && (s.used & 2)) s.scalar = 2;
  s.out = derivative < 0 && gives_bool(info.kind) ? DType::Bool : memory_dtype(compute);
  s.pack = needs_special(s) || needs_complex(s)
               ? 1
               : static_cast<uint8_t>(16 / itemsize(memory_dtype(compute)));
  return s;
}

void add_rows(Batches& list) {
  for (size_t row = 0; row < row_count; ++row)
    for (int c = 0; c < compute_count; ++c) {
      const Compute compute = static_cast<Compute>(c);
      if (!class_has(row_infos[row].cls, compute)) continue;
      for (int d = -1; d < 3; ++d) {
        if (d >= 0 && (!row_infos[row].derivative[d] || compute == Compute::I64)) continue;
        const RowSpec s = spec_of(row, d, compute);
        list.add(needs_complex(s), needs_special(s), row_infos[row].name, row_body(s));
      }
    }
}

void add_copies(Batches& list) {
  for (int from = 0; from < 12; ++from)
    for (int to = 0; to < 12; ++to) {
      RowSpec s{.row = copy_row, .layout = Layout::Flat, .pack = 4, .used = 1};
      s.in[0] = static_cast<DType>(from);
      s.out = static_cast<DType>(to);
      s.compute = is_complex(s.in[0])          ? Compute::C128
                  : is_integral(s.in[0], true) ? Compute::I64
                                               : Compute::F32;
      list.add(needs_complex(s), false, "copy", row_body(s));
    }
}

// Tiles of every width, beside an operand that is not turned.
void add_tiles(Batches& list) {
  for (const Compute compute : {Compute::F32, Compute::F64, Compute::I64, Compute::C64}) {
    RowSpec s = spec_of(static_cast<size_t>(Row::add), -1, compute);
    s.scalar = 0;
    s.layout = Layout::Tiled;
    s.pack = 1;
    s.turned = 2;
    list.add(needs_complex(s), needs_special(s), "tiles", row_body(s));
  }
}

DType result_of(ReduceOp op, DType in) {
  switch (op) {
    case ReduceOp::Nonzero: return DType::Int64;
    case ReduceOp::Any:
    case ReduceOp::All: return DType::Bool;
    case ReduceOp::Norm:
    case ReduceOp::Deviations: return to_real(in);
    case ReduceOp::Max:
    case ReduceOp::Min: return in;
    default: return is_integral(in, true) ? DType::Int64 : in;
  }
}

void add_reductions(Batches& list) {
  for (const DType in : {DType::Float32, DType::Float64, DType::BFloat16, DType::Int32, DType::Bool,
                         DType::Complex64})
    for (int o = 0; o < 12; ++o) {
      const bool places = o >= 10;
      const ReduceOp op =
          places ? (o == 10 ? ReduceOp::Max : ReduceOp::Min) : static_cast<ReduceOp>(o);
      const bool ordered = op == ReduceOp::Max || op == ReduceOp::Min || op == ReduceOp::NanSum;
      const bool measures = op == ReduceOp::Norm || op == ReduceOp::Deviations;
      if ((ordered && is_complex(in)) || (measures && is_integral(in, true))) continue;
      const int mode = (o + static_cast<int>(in)) % 3;
      for (int p = 0; p < (op == ReduceOp::Norm ? 6 : 1); ++p) {
        ReduceProgram program{.op = op,
                              .places = places,
                              .in = in,
                              .out = result_of(op, in),
                              .rows = (mode + p) % 3 < 2,
                              .run = (mode + p) % 3 == 0,
                              .wide_index = o % 2 == 1,
                              .pack = static_cast<uint8_t>(std::min<size_t>(8, 16 / itemsize(in))),
                              .p_kind = static_cast<uint8_t>(op == ReduceOp::Norm ? p : 2)};
        program.line = !program.run && p % 2 == 0;
        list.add(is_complex(in), false, "reduction " + std::to_string(o), reduce_body(program));
        program = {.op = op,
                   .places = places,
                   .in = in,
                   .out = program.out,
                   .combine = true,
                   .p_kind = program.p_kind};
        list.add(is_complex(in), false, "combine " + std::to_string(o), reduce_body(program));
      }
    }
}

// Compiles all batches on all processors; the first lines of each failure are reported.
void compile_all(const std::vector<Batch>& batches, const std::string& arch) {
  std::atomic<size_t> next{0};
  std::mutex mutex;
  std::vector<std::string> failures;
  auto work = [&] {
    for (size_t i = next++; i < batches.size(); i = next++) {
      try {
        compile(batches[i].source(), arch);
      } catch (const Error& e) {
        std::lock_guard lock(mutex);
        failures.push_back(e.message.substr(0, 2000));
        failures.back() += "\nin a batch with";
        for (const std::string& name : batches[i].names) failures.back() += " " + name;
      }
    }
  };
  std::vector<std::thread> threads;
  for (unsigned t = 0; t < std::max(1u, std::thread::hardware_concurrency()); ++t)
    threads.emplace_back(work);
  for (std::thread& t : threads) t.join();
  for (const std::string& f : failures) ADD_FAILURE() << f;
}

class Sources : public ::testing::TestWithParam<const char*> {};

TEST_P(Sources, Compile) {
  Batches list;
  add_rows(list);
  add_copies(list);
  add_tiles(list);
  add_reductions(list);
  compile_all(list.all(), GetParam());
}

INSTANTIATE_TEST_SUITE_P(Architectures, Sources, ::testing::Values("sm_80", "sm_90", "sm_100"),
                         [](const auto& p) { return std::string(p.param); });

}  // namespace
}  // namespace cresset::cuda
