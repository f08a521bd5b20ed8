// Runs elementwise loops over broadcast, strided, mixed-dtype operands: the one CPU driver.
#include "core/ops/elementwise.h"

#include <algorithm>
#include <cstring>
#include <memory>

#include "core/cpu/convert.h"
#include "core/cpu/parallel.h"

namespace cresset {
namespace {

constexpr int max_operands = 6;  // five inputs and the output
constexpr int64_t block = 1024;
constexpr int64_t grain = 131072;  // waking a sleeping thread costs as much as this many
constexpr int64_t long_row = 128;
constexpr size_t cell = 16;  // bytes of the widest compute type

/// One operand in the coalesced iteration space.
struct Lane {
  char* data = nullptr;
  DType dtype = DType::Float32;
  size_t size = 4;
  bool used = false, direct = false, constant = false;
  LoadFn load = nullptr;
  alignas(16) char number[cell];
  Dims strides;  // in elements, innermost first
};

/// A loop with what it needs beside pointers. A null loop copies.
struct LoopRun {
  Loop loop = nullptr;
  const void* params = nullptr;
  size_t width = 4;  // bytes of a compute value
  int inputs = 0;
};

/// The whole job: shape with the innermost dim first, lanes (output last).
struct Job : LoopRun {
  Compute compute = Compute::F32;
  StoreFn store = nullptr;
  Dims shape;
  int64_t total = 1;
  Lane lanes[max_operands];
  Lane& out() { return lanes[inputs]; }
};

/// Room for one block of every operand, and for ragged ends.
struct Buffers {
  alignas(64) char buffer[max_operands][(block + loop_block) * cell];
  alignas(64) char tail[max_operands][loop_block * cell];
};

// On the heap: a large thread-local object would make every thread-local access of this library
// a call.
Buffers& scratch() {
  thread_local std::unique_ptr<Buffers> buffers;
  if (!buffers) buffers = std::make_unique<Buffers>();
  return *buffers;
}

void* address(Lane& l, int64_t element) { return l.data + element * static_cast<int64_t>(l.size); }

void set_number(Lane& l, const Scalar& s, Compute c) {
  switch (c) {
    case Compute::F32: {
      float v = static_cast<float>(s.to_double());
      std::memcpy(l.number, &v, sizeof v);
      break;
    }
    case Compute::F64: {
      double v = s.to_double();
      std::memcpy(l.number, &v, sizeof v);
      break;
    }
    case Compute::I64: {
      int64_t v = s.to_int();
      std::memcpy(l.number, &v, sizeof v);
      break;
    }
    case Compute::C64: {
      std::complex<float> v(s.to_complex());
      std::memcpy(l.number, &v, sizeof v);
      break;
    }
    case Compute::C128: {
      std::complex<double> v = s.to_complex();
      std::memcpy(l.number, &v, sizeof v);
      break;
    }
  }
}

void set_tensor(Lane& l, const Tensor& t, const Job& job) {
  l.data = static_cast<char*>(t.data());
  l.dtype = t.dtype();
  l.size = itemsize(t.dtype());
  l.direct = t.dtype() == memory_dtype(job.compute);
  l.load = l.direct ? nullptr : load_function(t.dtype(), job.compute);
}

// Strides of `t` broadcast to `rank` dims, innermost first.
void set_strides(Lane& l, const Tensor& t, const Tensor& out) {
  size_t rank = out.sizes().size(), own = t.sizes().size();
  l.strides.assign(rank, 0);
  for (size_t i = 0; i < own; ++i) {
    size_t from_end = own - 1 - i;
    if (t.sizes()[i] != 1) l.strides[from_end] = t.strides()[i];
  }
}

// Orders dims by the output's strides (then by the inputs') and merges those that lie end to end.
void coalesce(Job& job) {
  size_t rank = job.shape.size();
  auto before = [&](size_t a, size_t b) {
    for (int k = job.inputs; k >= 0; --k) {
      const Lane& l = job.lanes[k];
      if (!l.used || l.constant) continue;
      int64_t x = l.strides[a], y = l.strides[b];
      if (x != 0 && y != 0 && x != y) return x < y;
    }
    return false;
  };
  for (size_t i = 1; i < rank; ++i)
    for (size_t j = i; j > 0 && before(j, j - 1); --j) {
      std::swap(job.shape[j], job.shape[j - 1]);
      for (int k = 0; k <= job.inputs; ++k)
        if (job.lanes[k].used && !job.lanes[k].constant)
          std::swap(job.lanes[k].strides[j], job.lanes[k].strides[j - 1]);
    }
  size_t kept = 0;
  for (size_t i = 0; i < rank; ++i) {
    if (job.shape[i] == 1) continue;
    bool merge = kept > 0;
    for (int k = 0; merge && k <= job.inputs; ++k) {
      const Lane& l = job.lanes[k];
      if (l.used && !l.constant) merge = l.strides[i] == l.strides[kept - 1] * job.shape[kept - 1];
    }
    if (merge) {
      job.shape[kept - 1] *= job.shape[i];
      continue;
    }
    job.shape[kept] = job.shape[i];
    for (int k = 0; k <= job.inputs; ++k)
      if (job.lanes[k].used && !job.lanes[k].constant)
        job.lanes[k].strides[kept] = job.lanes[k].strides[i];
    ++kept;
  }
  if (kept == 0) {
    kept = 1;
    if (rank == 0) {
      job.shape.push_back(1);
      for (Lane& l : job.lanes) l.strides.push_back(0);
    }
    job.shape[0] = 1;
    // A single element: contiguous by definition.
    for (int k = 0; k <= job.inputs; ++k)
      if (job.lanes[k].used && !job.lanes[k].constant) job.lanes[k].strides[0] = 1;
  }
  job.shape.resize(kept);
}

void fill_cells(void* dst, const void* value, size_t width, int64_t n) {
  char* d = static_cast<char*>(dst);
  for (int64_t i = 0; i < n; ++i) std::memcpy(d + static_cast<size_t>(i) * width, value, width);
}

/// A position in the iteration space: coordinates of dims 1.. and the offset in the innermost.
struct Cursor {
  Dims at;
  void seek(const Job& job, int64_t linear) {
    at.assign(job.shape.size(), 0);
    for (size_t d = 0; d < job.shape.size(); ++d) {
      at[d] = linear % job.shape[d];
      linear /= job.shape[d];
    }
  }
  void next_row(const Job& job) {
    at[0] = 0;
    for (size_t d = 1; d < job.shape.size(); ++d) {
      if (++at[d] < job.shape[d]) return;
      at[d] = 0;
    }
  }
  int64_t element(const Lane& l) const {
    int64_t e = 0;
    for (size_t d = 0; d < at.size(); ++d) e += at[d] * l.strides[d];
    return e;
  }
};

// Calls f(cursor, done, run) for each run of innermost elements of [cursor, cursor + n).
template <class F> void for_runs(const Job& job, Cursor c, int64_t n, F&& f) {
  for (int64_t done = 0; done < n;) {
    int64_t run = std::min(n - done, job.shape[0] - c.at[0]);
    f(c, done, run);
    done += run;
    if (done < n) c.next_row(job);
  }
}

void gather(const Job& job, Lane& l, const Cursor& c, int64_t n, char* dst) {
  for_runs(job, c, n, [&](const Cursor& at, int64_t done, int64_t run) {
    char* d = dst + static_cast<size_t>(done) * job.width;
    const void* src = address(l, at.element(l));
    if (!l.direct) {
      l.load(src, l.strides[0], d, run);
    } else if (l.strides[0] == 1) {
      std::memcpy(d, src, static_cast<size_t>(run) * job.width);
    } else if (l.strides[0] == 0) {
      fill_cells(d, src, job.width, run);
    } else {
      load_function(l.dtype, job.compute)(src, l.strides[0], d, run);
    }
  });
}

void scatter(Job& job, const Cursor& c, int64_t n, const char* src) {
  Lane& l = job.out();
  for_runs(job, c, n, [&](const Cursor& at, int64_t done, int64_t run) {
    job.store(src + static_cast<size_t>(done) * job.width, address(l, at.element(l)), l.strides[0],
              run);
  });
}

// Whether a whole block may be read at p: what starts on a cache line may be read to the line's
// end, for allocations are whole lines.
bool fills_line(const void* p, size_t width) {
  return loop_block * width <= 64 && reinterpret_cast<uintptr_t>(p) % 64 == 0;
}

// Whether a whole block may be written behind the end of `t`: the rest of its last cache line
// belongs to no tensor.
bool owns_line(const Tensor& t, size_t width) {
  const Storage& storage = t.storage();
  return loop_block * width <= 64 && storage.context() == nullptr && t.offset() == 0 &&
         storage.bytes() == static_cast<size_t>(t.numel()) * width;
}

// Runs the loop on n elements at given places (null: not read); the ragged end of what is not
// padded to whole blocks goes through buffers that are.
void run_loop(const LoopRun& run, const void* const* in, void* out, int64_t n, const bool* padded,
              bool out_padded) {
  int64_t whole = n & ~(loop_block - 1);
  if (whole < n && out_padded) {
    bool all_padded = true;
    for (int k = 0; k < run.inputs; ++k) all_padded &= !in[k] || padded[k];
    if (all_padded) whole += loop_block;
  }
  if (whole) run.loop(in, out, run.params, whole);
  if (whole >= n) return;
  Buffers& buffers = scratch();
  const void* tail_in[max_operands];
  size_t rest = static_cast<size_t>(n - whole) * run.width;
  size_t skip = static_cast<size_t>(whole) * run.width;
  for (int k = 0; k < run.inputs; ++k) {
    const char* src = static_cast<const char*>(in[k]) + skip;
    tail_in[k] = src;
    if (!in[k] || padded[k] || fills_line(src, run.width)) continue;
    std::memset(buffers.tail[k], 0, loop_block * run.width);
    std::memcpy(buffers.tail[k], src, rest);
    tail_in[k] = buffers.tail[k];
  }
  char* result = buffers.tail[run.inputs];
  run.loop(tail_in, result, run.params, loop_block);
  std::memcpy(static_cast<char*>(out) + skip, result, rest);
}

/// Where the loop reads its inputs in one block, and which of them are padded buffers.
struct Sources {
  const void* in[max_operands] = {};
  bool padded[max_operands] = {};
};

// Fills the buffers of constants for [lo, hi). Whether the loop can run over it in one go.
bool prepare_sources(Job& job, Sources& s, int64_t lo, int64_t hi) {
  bool one_go = job.shape.size() == 1 && job.loop && job.out().direct && job.out().strides[0] == 1;
  for (int k = 0; k < job.inputs; ++k) {
    Lane& l = job.lanes[k];
    if (!l.used) continue;
    if (!l.constant) {
      one_go &= l.direct && l.strides[0] == 1;
      continue;
    }
    int64_t cells = (hi - lo + loop_block - 1) / loop_block * loop_block;
    fill_cells(scratch().buffer[k], l.number, job.width, std::min(block, cells));
    s.in[k] = scratch().buffer[k];
    s.padded[k] = true;
    one_go &= hi - lo <= block;
  }
  return one_go;
}

// Points the sources at n elements from the cursor: in place where they lie end to end.
void locate_sources(Job& job, Sources& s, const Cursor& c, int64_t n) {
  bool one_run = c.at[0] + n <= job.shape[0];
  for (int k = 0; k < job.inputs; ++k) {
    Lane& l = job.lanes[k];
    if (!l.used || l.constant) continue;
    s.padded[k] = !(one_run && l.direct && l.strides[0] == 1);
    if (s.padded[k]) gather(job, l, c, n, scratch().buffer[k]);
    s.in[k] = s.padded[k] ? scratch().buffer[k] : address(l, c.element(l));
  }
}

// Computes n elements from the cursor.
void run_block(Job& job, Sources& s, const Cursor& c, int64_t n) {
  Lane& o = job.out();
  locate_sources(job, s, c, n);
  bool direct = o.direct && o.strides[0] == 1 && c.at[0] + n <= job.shape[0];
  char* buffer = scratch().buffer[job.inputs];
  void* out = direct ? address(o, c.element(o)) : buffer;
  if (job.loop)
    run_loop(job, s.in, out, n, s.padded, !direct);
  else if (direct)
    std::memcpy(out, s.in[0], static_cast<size_t>(n) * job.width);
  if (!direct) scatter(job, c, n, job.loop ? buffer : static_cast<const char*>(s.in[0]));
}

void run_range(Job& job, int64_t lo, int64_t hi) {
  Sources s;
  if (prepare_sources(job, s, lo, hi)) {
    for (int k = 0; k < job.inputs; ++k)
      if (job.lanes[k].used && !job.lanes[k].constant) s.in[k] = address(job.lanes[k], lo);
    run_loop(job, s.in, address(job.out(), lo), hi - lo, s.padded, false);
    return;
  }
  Cursor c;
  for (int64_t p = lo; p < hi;) {
    c.seek(job, p);
    int64_t n = std::min(block, hi - p);
    // Long rows are taken row by row, in place; short ones are packed into a block.
    if (job.shape[0] >= long_row) n = std::min(n, job.shape[0] - c.at[0]);
    run_block(job, s, c, n);
    p += n;
  }
}

bool same_layout(const Tensor& t, const Tensor& out) {
  return t.is_contiguous() && t.sizes() == out.sizes();
}

void run(Job& job, std::span<const Operand* const> in, const Tensor& out) {
  job.width = itemsize(memory_dtype(job.compute));
  job.inputs = static_cast<int>(in.size());
  bool flat = out.is_contiguous();
  for (size_t k = 0; k < in.size(); ++k) {
    Lane& l = job.lanes[k];
    if (!in[k]) continue;
    l.used = true;
    if (!in[k]->is_tensor()) {
      l.constant = true;
      set_number(l, in[k]->scalar(), job.compute);
      continue;
    }
    const Tensor& t = in[k]->tensor();
    set_tensor(l, t, job);
    if (t.numel() == 1) {
      l.constant = true;
      load_function(t.dtype(), job.compute)(l.data, 1, l.number, 1);
      continue;
    }
    flat &= same_layout(t, out);
  }
  Lane& o = job.out();
  o.used = true;
  set_tensor(o, out, job);
  job.store = store_function(job.compute, out.dtype());
  job.total = out.numel();
  if (job.total == 0) return;
  if (flat) {
    job.shape.push_back(job.total);
    for (int k = 0; k <= job.inputs; ++k) job.lanes[k].strides.push_back(1);
  } else {
    for (size_t i = out.sizes().size(); i-- > 0;) job.shape.push_back(out.sizes()[i]);
    set_strides(o, out, out);
    for (size_t k = 0; k < in.size(); ++k)
      if (job.lanes[k].used && !job.lanes[k].constant)
        set_strides(job.lanes[k], in[k]->tensor(), out);
    coalesce(job);
  }
  parallel_for(0, job.total, grain, [&](int64_t lo, int64_t hi) { run_range(job, lo, hi); });
}

// Whether every index of a tensor is the same element: an expanded number.
bool is_constant(const Tensor& t) {
  for (size_t d = 0; d < t.sizes().size(); ++d)
    if (t.sizes()[d] != 1 && t.strides()[d] != 0) return false;
  return true;
}

/// Where the operands of a loop over contiguous memory lie.
struct FlatOperands {
  const char* in[max_operands] = {};
  bool padded[max_operands] = {};
  bool whole_lines = false;  ///< a last block of fewer elements may be computed in full
};

void run_flat(const LoopRun& run, const FlatOperands& flat, const Tensor& out) {
  const int64_t n = out.numel();
  const int64_t end = flat.whole_lines ? (n + loop_block - 1) / loop_block * loop_block : n;
  char* to = static_cast<char*>(out.data());
  parallel_for(0, end, grain, [&](int64_t lo, int64_t hi) {
    const void* from[max_operands];
    size_t skip = static_cast<size_t>(lo) * run.width;
    for (int k = 0; k < run.inputs; ++k) from[k] = flat.in[k] ? flat.in[k] + skip : nullptr;
    run_loop(run, from, to + skip, hi - lo, flat.padded, false);
  });
}

void run_uniform(const LoopRun& run, const RowCall& call) {
  FlatOperands flat{.whole_lines = owns_line(*call.out, run.width)};
  for (size_t k = 0; k < call.in.size(); ++k) {
    flat.in[k] = call.in[k]->tensor().data<char>();
    flat.whole_lines = flat.whole_lines && fills_line(flat.in[k], run.width);
  }
  run_flat(run, flat, *call.out);
}

// The common case without a job: contiguous operands of the compute type and one shape, and
// numbers as long as the tensors are small.
bool run_contiguous(const LoopRun& run, const RowCall& call) {
  const Tensor& out = *call.out;
  const DType dtype = memory_dtype(call.compute);
  const int64_t n = out.numel();
  if (out.dtype() != dtype || !out.is_contiguous() || n == 0) return false;
  FlatOperands flat{.whole_lines = owns_line(out, run.width)};
  for (size_t k = 0; k < call.in.size(); ++k) {
    if (!call.in[k]) continue;
    const Operand& o = *call.in[k];
    if (o.is_tensor() && o.tensor().dtype() != dtype) return false;
    if (o.is_tensor() && same_layout(o.tensor(), out)) {
      flat.in[k] = o.tensor().data<char>();
      flat.whole_lines = flat.whole_lines && fills_line(flat.in[k], run.width);
      continue;
    }
    if (n > block || (o.is_tensor() && !is_constant(o.tensor()))) return false;
    Lane number;
    if (!o.is_tensor()) set_number(number, o.scalar(), call.compute);
    const void* value = o.is_tensor() ? o.tensor().data() : static_cast<void*>(number.number);
    char* cells = scratch().buffer[k];
    fill_cells(cells, value, run.width, (n + loop_block - 1) / loop_block * loop_block);
    flat.in[k] = cells;
    flat.padded[k] = true;
  }
  run_flat(run, flat, out);
  return true;
}

void run_row(const RowCall& call) {
  const RowLoops& loops = row_loops(call.row);
  int c = static_cast<int>(call.compute);
  LoopRun loop{.loop = call.derivative < 0 ? loops.forward[c] : loops.backward[call.derivative][c],
               .params = call.params,
               .width = itemsize(memory_dtype(call.compute)),
               .inputs = static_cast<int>(call.in.size())};
  ASSERT(loop.loop);
  if (call.uniform) return run_uniform(loop, call);
  if (run_contiguous(loop, call)) return;
  Job job;
  static_cast<LoopRun&>(job) = loop;
  job.compute = call.compute;
  run(job, call.in, *call.out);
}

// Copies of whole blocks of the same type need no conversion.
bool copy_block(const Operand& src, const Tensor& dst) {
  if (!src.is_tensor() || src.tensor().dtype() != dst.dtype()) return false;
  const Tensor& s = src.tensor();
  if (!(s.sizes() == dst.sizes())) return false;
  bool same = s.is_contiguous() && dst.is_contiguous();
  if (!same && !(s.strides() == dst.strides() && is_dense(s))) return false;
  size_t size = itemsize(dst.dtype());
  char* to = static_cast<char*>(dst.data());
  const char* from = static_cast<const char*>(s.data());
  parallel_for(0, dst.numel(), grain * 4, [&](int64_t lo, int64_t hi) {
    std::memmove(to + lo * static_cast<int64_t>(size), from + lo * static_cast<int64_t>(size),
                 static_cast<size_t>(hi - lo) * size);
  });
  return true;
}

void run_copy(const Operand& src, const Tensor& dst) {
  if (copy_block(src, dst)) return;
  DType from = src.is_tensor() ? src.tensor().dtype() : src.scalar().dtype(DType::Float64);
  if (!src.is_tensor() && src.scalar().kind() == Scalar::Kind::Float) from = DType::Float64;
  Job job;
  job.compute = ops::compute_for(from);
  const Operand* in[] = {&src};
  run(job, in, dst);
}

}  // namespace

template <> const ElementwiseKernels& cpu_kernels<ElementwiseKernels>() {
  static constexpr ElementwiseKernels table = {.row = run_row, .copy = run_copy};
  return table;
}

}  // namespace cresset
