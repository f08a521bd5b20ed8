// Runs elementwise rows on the GPU: picks or compiles the kernel of a call and launches it.
#include "core/ops/elementwise.h"

#include <array>
#include <bit>
#include <cstring>
#include <limits>

#include "cuda/divide.h"
#include "cuda/kernel_table.h"
#include "cuda/launch.h"
#include "cuda/nvrtc.h"
#include "cuda/row_source.h"

namespace cresset::cuda {
namespace {

/// One launch in the making: the output's lane is the last one.
struct Job {
  RowSpec spec;
  RowArgs args;
  const Tensor* tensors[most_inputs + 1] = {};  ///< null for scalars and unread inputs
  int lanes[most_inputs + 1];                   ///< the lanes that walk memory
  int lane_count = 0;
};

// ---- operands

template <class T> void put_number(double (&cell)[2], T value) {
  static_assert(sizeof(T) <= sizeof(cell));
  std::memcpy(cell, &value, sizeof(T));
}

void set_number(double (&cell)[2], const Scalar& s, Compute compute) {
  switch (compute) {
    case Compute::F32: return put_number(cell, static_cast<float>(s.to_double()));
    case Compute::F64: return put_number(cell, s.to_double());
    case Compute::I64: return put_number(cell, s.to_int());
    case Compute::C64: return put_number(cell, std::complex<float>(s.to_complex()));
    case Compute::C128: return put_number(cell, s.to_complex());
  }
}

// The value of a one-element tensor of the CPU.
Scalar host_number(const Tensor& t) {
  return visit_dtype(t.dtype(), [&]<class T>() {
    const T v = *t.data<T>();
    if constexpr (std::is_same_v<T, bool>)
      return Scalar(v);
    else if constexpr (std::is_integral_v<T>)
      return Scalar(static_cast<int64_t>(v));
    else if constexpr (requires { v.imag(); })
      return Scalar(std::complex<double>(v));
    else
      return Scalar(static_cast<double>(v));
  });
}

// Whether every index is the same element: one number, possibly expanded.
bool is_constant(const Tensor& t) {
  if (t.numel() == 1) return true;
  for (size_t d = 0; d < t.sizes().size(); ++d)
    if (t.strides()[d] != 0 && t.sizes()[d] != 1) return false;
  return t.numel() > 0;
}

void add_input(Job& job, int k, const Operand& o) {
  RowSpec& spec = job.spec;
  spec.used |= static_cast<uint8_t>(1 << k);
  job.args.in[k] = nullptr;
  if (o.is_tensor() && o.tensor().device().is_cuda()) {
    const Tensor& t = o.tensor();
    spec.in[k] = t.dtype();
    job.args.in[k] = data_of(t);
    if (is_constant(t)) {
      spec.scalar |= static_cast<uint8_t>(1 << k);
      return;
    }
    job.tensors[k] = &t;
    job.lanes[job.lane_count++] = k;
    return;
  }
  spec.scalar |= static_cast<uint8_t>(1 << k);
  if (o.is_tensor()) {
    CHECK(o.tensor().numel() == 1, Device, launching_op(),
          ": expected a tensor on the GPU or a number, got shape ", o.tensor().sizes(), " on ",
          o.tensor().device());
    set_number(job.args.numbers[k], host_number(o.tensor()), spec.compute);
  } else {
    set_number(job.args.numbers[k], o.scalar(), spec.compute);
  }
  // Numbers of the host arrive in the compute type: their dtype makes no difference.
  spec.in[k] = DType::Bool;
}

void add_output(Job& job, const Tensor& out) {
  job.spec.out = out.dtype();
  job.args.out = data_of(out);
  job.args.n = out.numel();
  job.tensors[most_inputs] = &out;
  job.lanes[job.lane_count++] = most_inputs;
}

size_t lane_bytes(const Job& job, int k) {
  return itemsize(k == most_inputs ? job.spec.out : job.spec.in[k]);
}
const void* lane_address(const Job& job, int k) {
  return k == most_inputs ? job.args.out : job.args.in[k];
}

// Rows of complex numbers and of special functions are long: one element at a time keeps their
// compilation short.
bool is_long(const RowSpec& spec) {
  static const auto* table = [] {
    auto* t = new std::array<std::array<bool, 4>, row_count>{};
    for (size_t r = 0; r < row_count; ++r)
      for (int i = 0; i < 4; ++i) {
        const RowInfo& info = row_infos[r];
        const char* formula = i == 0 ? info.forward : info.derivative[i - 1];
        (*t)[r][i] = formula && calls_special(formula);
      }
    return t;
  }();
  if (spec.row == copy_row) return false;
  return spec.compute == Compute::C64 || spec.compute == Compute::C128 ||
         (*table)[spec.row][spec.derivative + 1];
}

// The most elements that one access of 16 bytes holds in the narrowest operand, at most 8.
int widest_pack(const Job& job) {
  if (is_long(job.spec)) return 1;
  size_t least = 16;
  for (int i = 0; i < job.lane_count; ++i) least = std::min(least, lane_bytes(job, job.lanes[i]));
  return std::min(16 >> std::countr_zero(least), 8);
}

bool is_aligned(const Job& job, int k, int pack) {
  const size_t bytes = std::min<size_t>(16, lane_bytes(job, k) * static_cast<size_t>(pack));
  return (reinterpret_cast<uintptr_t>(lane_address(job, k)) & (bytes - 1)) == 0;
}

// ---- geometry

/// Collapsed dims, innermost first, with the strides of each lane.
struct Shape {
  Dims sizes;
  Dims strides[most_inputs + 1];
};

bool is_flat(const Job& job) {
  const Tensor& out = *job.tensors[most_inputs];
  if (!out.is_contiguous()) return false;
  for (int i = 0; i + 1 < job.lane_count; ++i) {
    const Tensor& t = *job.tensors[job.lanes[i]];
    if (!t.is_contiguous() || !(t.sizes() == out.sizes())) return false;
  }
  return true;
}

Shape broadcast_shape(const Job& job) {
  const Tensor& out = *job.tensors[most_inputs];
  const size_t rank = out.sizes().size();
  Shape s;
  for (size_t i = rank; i-- > 0;) s.sizes.push_back(out.sizes()[i]);
  for (int i = 0; i < job.lane_count; ++i) {
    const Tensor& t = *job.tensors[job.lanes[i]];
    Dims& strides = s.strides[job.lanes[i]];
    strides.assign(rank, 0);
    const size_t own = t.sizes().size();
    for (size_t d = 0; d < own; ++d)
      if (t.sizes()[d] != 1) strides[own - 1 - d] = t.strides()[d];
  }
  return s;
}

// Dims by rising stride of the output, then of the inputs; neighbours that lie end to end merge.
void collapse(const Job& job, Shape& s) {
  auto before = [&](size_t a, size_t b) {
    for (int i = job.lane_count; i-- > 0;) {
      const Dims& strides = s.strides[job.lanes[i]];
      if (strides[a] != 0 && strides[b] != 0 && strides[a] != strides[b])
        return strides[a] < strides[b];
    }
    return false;
  };
  for (size_t i = 1; i < s.sizes.size(); ++i)
    for (size_t j = i; j > 0 && before(j, j - 1); --j) {
      std::swap(s.sizes[j], s.sizes[j - 1]);
      for (int k = 0; k < job.lane_count; ++k)
        std::swap(s.strides[job.lanes[k]][j], s.strides[job.lanes[k]][j - 1]);
    }
  size_t kept = 0;
  for (size_t d = 0; d < s.sizes.size(); ++d) {
    if (s.sizes[d] == 1) continue;
    bool merges = kept > 0;
    for (int k = 0; merges && k < job.lane_count; ++k) {
      const Dims& strides = s.strides[job.lanes[k]];
      merges = strides[d] == strides[kept - 1] * s.sizes[kept - 1];
    }
    if (merges) {
      s.sizes[kept - 1] *= s.sizes[d];
      continue;
    }
    s.sizes[kept] = s.sizes[d];
    for (int k = 0; k < job.lane_count; ++k)
      s.strides[job.lanes[k]][kept] = s.strides[job.lanes[k]][d];
    ++kept;
  }
  s.sizes.resize(kept);
  for (int k = 0; k < job.lane_count; ++k) s.strides[job.lanes[k]].resize(kept);
}

// Whether runs of `pack` elements of the innermost dim can be moved as one.
bool packs_fit(const Job& job, const Shape& s, int pack) {
  if (s.sizes.empty() || s.sizes[0] % pack != 0) return false;
  for (int i = 0; i < job.lane_count; ++i) {
    const int k = job.lanes[i];
    const Dims& strides = s.strides[k];
    if (strides[0] == 0 && k != most_inputs) continue;
    if (strides[0] != 1 || !is_aligned(job, k, pack)) return false;
    for (size_t d = 1; d < strides.size(); ++d)
      if (strides[d] % pack != 0) return false;
  }
  return true;
}

bool fits_32_bits(const Job& job, const Shape& s) {
  constexpr int64_t limit = std::numeric_limits<int32_t>::max();
  if (job.args.n > limit) return false;
  for (int i = 0; i < job.lane_count; ++i) {
    int64_t reach = 0;
    for (size_t d = 0; d < s.sizes.size(); ++d)
      reach += (s.sizes[d] - 1) * std::abs(s.strides[job.lanes[i]][d]);
    if (reach > limit) return false;
  }
  return true;
}

// ---- launches

void run_kernel(const Job& job, int64_t items, int64_t items_per_block, void* space) {
  const unsigned threads = space ? shape_threads : flat_threads;
  if (items == 0) return;
  const CUfunction kernel =
      kernel_of(job.spec.key(), "row_kernel", [&] { return row_source(job.spec); });
  void* list[] = {const_cast<RowArgs*>(&job.args), space};
  launch_kernel(kernel, blocks_for(items, items_per_block), 1, threads, 1, list);
}

void run_flat(Job& job) {
  int pack = widest_pack(job);
  for (int i = 0; i < job.lane_count; ++i)
    if (!is_aligned(job, job.lanes[i], pack)) pack = 1;
  job.spec.layout = Layout::Flat;
  job.spec.pack = static_cast<uint8_t>(pack);
  run_kernel(job, job.args.n, int64_t{flat_threads} * pack, nullptr);
}

template <class Index> Space<Index> space_of(const Job& job, const Shape& s, int pack) {
  Space<Index> space = {};
  space.rank = static_cast<int>(s.sizes.size());
  for (int d = 0; d < space.rank; ++d) {
    space.sizes[d] = static_cast<Index>(d == 0 ? s.sizes[0] / pack : s.sizes[d]);
    set_magic(static_cast<uint32_t>(space.sizes[d]), space.magic[d], space.shift[d]);
    for (int i = 0; i < job.lane_count; ++i) {
      const int k = job.lanes[i];
      space.strides[k][d] = static_cast<Index>(s.strides[k][d] * (d == 0 ? pack : 1));
    }
  }
  for (int i = 0; i < job.lane_count; ++i)
    if (job.lanes[i] < most_inputs)
      space.splat[job.lanes[i]] = space.rank > 0 && s.strides[job.lanes[i]][0] == 0;
  return space;
}

template <class Index> void run_space(Job& job, const Shape& s, int pack) {
  Space<Index> space = space_of<Index>(job, s, pack);
  job.args.n /= pack;
  run_kernel(job, job.args.n, shape_threads, &space);
}

// The dim along which an operand lies that the output does not, as where one of both is transposed:
// 0 where there is none or too little to gain.
size_t turned_dim(const Job& job, const Shape& s) {
  constexpr int64_t least = 16, least_elements = 1 << 14;
  if (job.args.n < least_elements || s.sizes[0] < least || s.strides[most_inputs][0] != 1) return 0;
  for (int i = 0; i < job.lane_count && job.lanes[i] < 4; ++i) {
    const Dims& strides = s.strides[job.lanes[i]];
    for (size_t d = 1; strides[0] >= least && d < strides.size(); ++d)
      if (strides[d] == 1 && s.sizes[d] >= least) return d;
  }
  return 0;
}

// Runs a job in tiles of dim 0 and `other`; false where they do not fit.
bool run_tiled(Job& job, const Shape& given, size_t other) {
  Shape s = given;
  std::swap(s.sizes[1], s.sizes[other]);
  size_t shared_bytes = 0;
  for (int i = 0; i < job.lane_count; ++i) {
    const int k = job.lanes[i];
    std::swap(s.strides[k][1], s.strides[k][other]);
    if (k >= 4 || s.strides[k][0] == 0 || s.strides[k][1] != 1) continue;
    job.spec.turned |= static_cast<uint8_t>(1 << k);
    shared_bytes += 32 * 33 * lane_bytes(job, k);
  }
  int64_t blocks = (s.sizes[0] + 31) / 32 * ((s.sizes[1] + 31) / 32);
  for (size_t d = 2; d < s.sizes.size(); ++d) blocks *= s.sizes[d];
  if (shared_bytes > 48 * 1024 || blocks > std::numeric_limits<int32_t>::max()) {
    job.spec.turned = 0;
    return false;
  }
  job.spec.pack = 1;
  job.spec.layout = Layout::Tiled;
  Space<int32_t> space = space_of<int32_t>(job, s, 1);
  run_kernel(job, blocks, 1, &space);
  return true;
}

void run_shape(Job job, const Shape& s);

// More dims than a kernel walks: one launch per index of the outermost.
void split_outermost(const Job& job, const Shape& s) {
  const size_t last = s.sizes.size() - 1;
  Shape inner = s;
  inner.sizes.resize(last);
  for (int i = 0; i < job.lane_count; ++i) inner.strides[job.lanes[i]].resize(last);
  for (int64_t at = 0; at < s.sizes[last]; ++at) {
    Job part = job;
    part.args.n = job.args.n / s.sizes[last];
    for (int i = 0; i < job.lane_count; ++i) {
      const int k = job.lanes[i];
      const int64_t bytes = at * s.strides[k][last] * static_cast<int64_t>(lane_bytes(job, k));
      if (k == most_inputs)
        part.args.out = static_cast<char*>(job.args.out) + bytes;
      else
        part.args.in[k] = static_cast<const char*>(job.args.in[k]) + bytes;
    }
    run_shape(part, inner);
  }
}

void run_shape(Job job, const Shape& s) {
  if (s.sizes.size() > most_dims) return split_outermost(job, s);
  bool flat = s.sizes.size() <= 1;
  for (int i = 0; flat && i < job.lane_count && !s.sizes.empty(); ++i)
    flat = s.strides[job.lanes[i]][0] == 1;
  if (flat) return run_flat(job);
  int pack = widest_pack(job);
  while (pack > 1 && !packs_fit(job, s, pack)) pack /= 2;
  job.spec.pack = static_cast<uint8_t>(pack);
  const bool narrow = fits_32_bits(job, s);
  const size_t turned = narrow ? turned_dim(job, s) : 0;
  if (turned && run_tiled(job, s, turned)) return;
  job.spec.layout = narrow ? Layout::Strided32 : Layout::Strided64;
  if (narrow)
    run_space<int32_t>(job, s, pack);
  else
    run_space<int64_t>(job, s, pack);
}

void run(Job& job) {
  if (job.args.n == 0) return;
  if (is_flat(job)) return run_flat(job);
  Shape s = broadcast_shape(job);
  collapse(job, s);
  run_shape(job, s);
}

/// A call whose tensors all look alike: no geometry has to be worked out.
void run_uniform(const RowCall& call, Job& job) {
  RowSpec& spec = job.spec;
  RowArgs& args = job.args;
  const DType dtype = call.out->dtype();
  const int device = current_device();
  uintptr_t bits = 0;
  const auto address = [&](const Tensor& t) {
    if (t.device().index != device) [[unlikely]]
      data_of(t);  // says so
    char* data = t.device_data<char>();
    bits |= reinterpret_cast<uintptr_t>(data);
    return data;
  };
  for (size_t k = 0; k < call.in.size(); ++k) {
    spec.used |= static_cast<uint8_t>(1 << k);
    spec.in[k] = dtype;
    args.in[k] = address(call.in[k]->tensor());
  }
  spec.out = dtype;
  args.out = address(*call.out);
  args.n = call.out->numel();
  const size_t pack = is_long(spec) || bits % 16 != 0 ? 1 : 16 / itemsize(dtype);
  spec.pack = static_cast<uint8_t>(pack);
  run_kernel(job, args.n, flat_threads * static_cast<int64_t>(pack), nullptr);
}

void run_row(const RowCall& call) {
  Job job;
  job.spec.row = static_cast<uint16_t>(call.row);
  job.spec.derivative = static_cast<int8_t>(call.derivative);
  job.spec.compute = call.compute;
  const int params = row_info(call.row).param_count;
  for (int i = 0; i < params; ++i) job.args.params[i] = call.params[i];
  if (call.uniform) return run_uniform(call, job);
  for (size_t k = 0; k < call.in.size(); ++k)
    if (call.in[k]) add_input(job, static_cast<int>(k), *call.in[k]);
  add_output(job, *call.out);
  run(job);
}

void run_copy(const Operand& src, const Tensor& dst) {
  DType from = src.is_tensor() ? src.tensor().dtype() : src.scalar().dtype(DType::Float64);
  Job job;
  job.spec.row = copy_row;
  job.spec.compute = ops::compute_for(from);
  add_input(job, 0, src);
  add_output(job, dst);
  run(job);
}

}  // namespace

template <> const ElementwiseKernels& cuda_table<ElementwiseKernels>() {
  static constexpr ElementwiseKernels table = {.row = run_row, .copy = run_copy};
  return table;
}

}  // namespace cresset::cuda
