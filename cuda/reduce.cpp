// Runs reductions on the GPU: plans the walk, picks or compiles the kernel, splits long outputs.
#include "core/ops/reduce.h"

#include <bit>
#include <cmath>
#include <limits>

#include "core/ops/ops.h"
#include "cuda/divide.h"
#include "cuda/kernel_table.h"
#include "cuda/launch.h"
#include "cuda/reduce_args.h"
#include "cuda/reduce_source.h"

namespace cresset::cuda {
namespace {

constexpr int64_t threads = 256;

/// Dims of one kind in walking order, innermost first, with strides of x and of y.
struct DimList {
  Dims sizes, in, out;

  void add(int64_t size, int64_t in_stride, int64_t out_stride) {
    if (size == 1) return;
    size_t at = 0;
    while (at < sizes.size() && in[at] <= in_stride) ++at;
    sizes.insert(at, size);
    in.insert(at, in_stride);
    out.insert(at, out_stride);
  }
  void collapse() {
    size_t kept = 0;
    for (size_t d = 0; d < sizes.size(); ++d) {
      if (kept > 0 && in[d] == in[kept - 1] * sizes[kept - 1] &&
          out[d] == out[kept - 1] * sizes[kept - 1]) {
        sizes[kept - 1] *= sizes[d];
        continue;
      }
      sizes[kept] = sizes[d], in[kept] = in[d], out[kept] = out[d];
      ++kept;
    }
    sizes.resize(kept), in.resize(kept), out.resize(kept);
  }
  int64_t reach() const {
    int64_t r = 0;
    for (size_t d = 0; d < sizes.size(); ++d) r += (sizes[d] - 1) * std::abs(in[d]);
    return r;
  }
};

struct Plan {
  DimList kept, red;
  int64_t outputs = 1, length = 1;
};

Plan make_plan(const Tensor& x, std::span<const int64_t> over) {
  Plan p;
  size_t next = over.size();
  int64_t out_stride = 1;
  for (int64_t d = x.dim(); d-- > 0;) {
    if (next > 0 && over[next - 1] == d) {
      --next;
      p.length *= x.size(d);
      p.red.add(x.size(d), x.stride(d), 0);
    } else {
      p.outputs *= x.size(d);
      p.kept.add(x.size(d), x.stride(d), out_stride);
      out_stride *= x.size(d);
    }
  }
  p.kept.collapse();
  // Stride 0 on the y side of reduced dims would merge anything: only x decides.
  DimList red;
  for (size_t d = 0; d < p.red.sizes.size(); ++d) {
    const size_t last = red.sizes.size();
    if (last > 0 && p.red.in[d] == red.in[last - 1] * red.sizes[last - 1]) {
      red.sizes[last - 1] *= p.red.sizes[d];
    } else {
      red.sizes.push_back(p.red.sizes[d]);
      red.in.push_back(p.red.in[d]);
      red.out.push_back(0);
    }
  }
  p.red = red;
  return p;
}

template <class Index> Walk<Index> walk_of(const DimList& dims, int pack) {
  Walk<Index> w = {};
  w.rank = static_cast<int>(dims.sizes.size());
  for (int d = 0; d < w.rank; ++d) {
    const int by = d == 0 ? pack : 1;
    w.sizes[d] = static_cast<Index>(dims.sizes[d] / by);
    set_magic(static_cast<uint32_t>(w.sizes[d]), w.magic[d], w.shift[d]);
    w.in[d] = static_cast<Index>(dims.in[d] * by);
    w.out[d] = static_cast<Index>(dims.out[d] * by);
  }
  return w;
}

// Whether packs along the innermost of `along` are whole and aligned, whatever the others' indices.
bool packs_fit(const Tensor& x, const DimList& along, const DimList& others, int pack) {
  if (along.sizes.empty() || along.in[0] != 1 || along.sizes[0] % pack != 0) return false;
  const size_t bytes = itemsize(x.dtype()) * static_cast<size_t>(pack);
  if (reinterpret_cast<uintptr_t>(x.device_data()) % bytes != 0) return false;
  for (size_t d = 1; d < along.in.size(); ++d)
    if (along.in[d] % pack != 0) return false;
  for (const int64_t stride : others.in)
    if (stride % pack != 0) return false;
  return true;
}

/// Blocks and threads of a launch; `units` are what one split's share is counted in.
struct Grid {
  unsigned blocks, threads_x, threads_y;
  int64_t splits = 1, per_split = 0;
};

// Few outputs are split, so that there is work for the whole GPU: `blocks` per multiprocessor. Each
// thread keeps several units.
void choose_splits(Grid& g, int64_t units, int64_t lanes, int blocks) {
  const int64_t wanted = int64_t{multiprocessors()} * blocks;
  g.per_split = std::max<int64_t>(units, 1);
  if (g.blocks >= wanted / 2) return;
  const int64_t useful = units / std::max<int64_t>(lanes * 8, 1);
  const int64_t splits = std::min<int64_t>({(wanted + g.blocks - 1) / g.blocks, useful, 65535});
  if (splits < 2) return;
  g.per_split = (units + splits - 1) / splits;
  g.splits = (units + g.per_split - 1) / g.per_split;
}

/// A reduction with everything that its kernels need.
struct Job {
  ReduceProgram program;
  const Tensor* x = nullptr;
  void* y = nullptr;
  void* indices = nullptr;
  const void* center = nullptr;
  double p = 2, divisor = 1;
};

template <class Index> void run_kernels(Job& job, const Plan& plan, Grid grid) {
  const ReduceProgram& program = job.program;
  const int kept_pack = program.rows ? 1 : program.pack;
  const int red_pack = program.rows && !program.run ? program.pack : 1;
  ReduceArgs<Index> args = {};
  args.x = job.x->device_data();
  args.center = job.center;
  args.y = job.y;
  args.indices = job.indices;
  args.outputs = plan.outputs;
  args.items = plan.outputs / kept_pack;
  args.length = plan.length;
  args.per_split = grid.per_split;
  args.p = job.p;
  args.divisor = job.divisor;
  args.kept = walk_of<Index>(plan.kept, kept_pack);
  args.red = walk_of<Index>(plan.red, red_pack);
  Tensor partial;
  if (grid.splits > 1) {
    const int64_t bytes =
        grid.splits * plan.outputs * static_cast<int64_t>(accumulator_bytes(program));
    partial = empty(Dims{bytes}, {DType::UInt8, job.x->device()});
    args.partial = data_of(partial);
  }
  const auto source = [&] { return reduce_source(program); };
  void* list[] = {&args, nullptr};
  launch_kernel(kernel_of(program.key(), "reduce_kernel", source), grid.blocks,
                static_cast<unsigned>(grid.splits), grid.threads_x, grid.threads_y, list);
  if (grid.splits == 1) return;
  int splits = static_cast<int>(grid.splits);
  const unsigned along = splits > 64 && plan.outputs < 4096 ? 256 : 32;
  // The second kernel knows nothing of how the first one walked.
  ReduceProgram second = program;
  second.combine = second.rows = true;
  second.run = second.line = false;
  second.pack = 1;
  void* combine_list[] = {&args, &splits};
  launch_kernel(kernel_of(second.key(), "combine_kernel", [&] { return reduce_source(second); }),
                blocks_for(plan.outputs, threads / along), 1, along,
                static_cast<unsigned>(threads / along), combine_list);
}

Grid choose_rows(Job& job, const Plan& plan, int widest) {
  ReduceProgram& program = job.program;
  program.rows = true;
  program.run = plan.red.sizes.size() <= 1 && (plan.red.sizes.empty() || plan.red.in[0] == 1);
  int pack = widest;
  if (!program.run)
    while (pack > 1 && !packs_fit(*job.x, plan.red, plan.kept, pack)) pack /= 2;
  program.pack = static_cast<uint8_t>(pack);
  const int64_t packs = std::max<int64_t>(plan.length / pack, 1);
  const int64_t along = std::min<int64_t>(
      threads, static_cast<int64_t>(std::bit_ceil(static_cast<uint64_t>((packs + 3) / 4))));
  Grid g{blocks_for(plan.outputs, threads / along), static_cast<unsigned>(along),
         static_cast<unsigned>(threads / along)};
  choose_splits(g, packs, along, 4);
  return g;
}

Grid choose_columns(Job& job, const Plan& plan, int widest) {
  ReduceProgram& program = job.program;
  program.rows = program.run = false;
  int pack = widest;
  while (pack > 1 && !packs_fit(*job.x, plan.kept, plan.red, pack)) pack /= 2;
  program.pack = static_cast<uint8_t>(pack);
  const int64_t items = plan.outputs / pack;
  const int64_t across = std::min<int64_t>(
      32, static_cast<int64_t>(std::bit_ceil(static_cast<uint64_t>(std::max<int64_t>(items, 1)))));
  Grid g{blocks_for(items, across), static_cast<unsigned>(across),
         static_cast<unsigned>(threads / across)};
  choose_splits(g, plan.length, threads / across, 8);
  return g;
}

bool fits_32_bits(const Plan& plan) {
  // Loops step beyond the end, by a turn of all splits at most.
  constexpr int64_t limit = std::numeric_limits<int32_t>::max() - (1 << 23);
  return plan.outputs <= limit && plan.length <= limit &&
         plan.kept.reach() + plan.red.reach() <= limit;
}

void run(Job& job, std::span<const int64_t> over) {
  const Tensor& x = *job.x;
  data_of(x);
  const Plan plan = make_plan(x, over);
  if (plan.outputs == 0) return;
  CHECK(plan.kept.sizes.size() <= reduce_dims && plan.red.sizes.size() <= reduce_dims,
        NotImplemented, launching_op(), ": more than ", reduce_dims,
        " dims that do not lie end to end, on ", x.device());
  const int widest =
      static_cast<int>(std::min<size_t>(16 / std::min<size_t>(16, itemsize(x.dtype())), 8));
  const bool columns = !plan.kept.sizes.empty() && plan.kept.in[0] == 1 &&
                       !plan.red.sizes.empty() && plan.red.in[0] != 1;
  const Grid grid = columns ? choose_columns(job, plan, widest) : choose_rows(job, plan, widest);
  job.program.line = !job.program.run && plan.red.sizes.size() == 1;
  job.program.wide_index = !fits_32_bits(plan);
  if (job.program.wide_index)
    run_kernels<int64_t>(job, plan, grid);
  else
    run_kernels<int32_t>(job, plan, grid);
}

uint8_t p_kind(double p) {
  if (p == 0) return 0;
  if (p == 1) return 1;
  if (p == 2) return 2;
  if (std::isinf(p)) return p > 0 ? 3 : 4;
  return 5;
}

void reduce(const ReduceCall& c) {
  CHECK(!(is_complex(c.x->dtype()) && (c.op == ReduceOp::Max || c.op == ReduceOp::Min)), DType,
        launching_op(), ": complex numbers have no order");
  Job job;
  job.program = {.op = c.op, .in = c.x->dtype(), .out = c.y->dtype(), .p_kind = p_kind(c.p)};
  if (c.op != ReduceOp::Norm) job.program.p_kind = 2;
  job.x = c.x;
  job.y = data_of(*c.y);
  job.center = c.center ? data_of(*c.center) : nullptr;
  job.p = c.p;
  job.divisor = c.divisor;
  run(job, c.over);
}

void extreme(const Tensor& x, int64_t dim, bool largest, const Tensor& values,
             const Tensor& indices) {
  Job job;
  job.program = {.op = largest ? ReduceOp::Max : ReduceOp::Min,
                 .places = true,
                 .in = x.dtype(),
                 .out = x.dtype()};
  job.x = &x;
  job.y = values.defined() ? data_of(values) : nullptr;
  job.indices = data_of(indices);
  run(job, x.dim() ? std::span<const int64_t>(&dim, 1) : std::span<const int64_t>());
}

}  // namespace

template <> const ReduceKernels& cuda_table<ReduceKernels>() {
  static constexpr ReduceKernels table = {.reduce = reduce, .extreme = extreme};
  return table;
}

}  // namespace cresset::cuda
