// CUDA optimizer updates: all parameters of a step in one launch, their addresses as its argument.
#include "core/ops/optim.h"

#include "cuda/device.cuh"

namespace cresset::cuda {
namespace {

constexpr int update_threads = 256, per_thread = 8;
constexpr int64_t per_block = update_threads * per_thread;

/// A slot as the kernel sees it.
struct DeviceSlot {
  void* param;
  const void* grad;
  void* state[3];
  float* step;  ///< the step's number on the device, or null: then the corrections are given
  double correction1, correction2_sqrt;
  int64_t n;
  uint32_t first_block;
  DType dtype;
};

/// As many slots as a launch's argument holds.
template <int most> struct SlotList {
  int count = 0;
  DeviceSlot slot[most];
};
constexpr int few_slots = 32, many_slots = 320;

struct Corrections {
  double first, second_sqrt;
};

template <class A> struct Sgd {
  static constexpr int states = 1;
  SgdOptions o;
  __device__ Corrections corrections(const DeviceSlot&) const { return {1, 1}; }
  __device__ int used_states() const { return o.momentum != 0 ? 1 : 0; }
  __device__ bool reads_state() const { return !o.first; }
  __device__ void operator()(const Corrections&, A& p, A g, A* state) const {
    if (o.maximize) g = -g;
    if (o.weight_decay != 0) g += p * static_cast<A>(o.weight_decay);
    if (o.momentum != 0) {
      const A m = static_cast<A>(o.momentum);
      state[0] = o.first ? g : state[0] * m + g * static_cast<A>(1 - o.dampening);
      g = o.nesterov ? g + state[0] * m : state[0];
    }
    p -= g * static_cast<A>(o.lr);
  }
};

// Kingma and Ba, "Adam" (2015); Loshchilov and Hutter, "Decoupled weight decay" (2019).
template <class A> struct Adam {
  static constexpr int states = 3;
  AdamOptions o;
  __device__ Corrections corrections(const DeviceSlot& s) const {
    if (!s.step) return {s.correction1, s.correction2_sqrt};
    const double t = static_cast<double>(*s.step);
    return {1 - pow(o.beta1, t), sqrt(1 - pow(o.beta2, t))};
  }
  __device__ int used_states() const { return o.amsgrad ? 3 : 2; }
  __device__ bool reads_state() const { return true; }
  __device__ void operator()(const Corrections& c, A& p, A g, A* state) const {
    if (o.maximize) g = -g;
    if (o.decoupled)
      p *= static_cast<A>(1 - o.lr * o.weight_decay);
    else if (o.weight_decay != 0)
      g += p * static_cast<A>(o.weight_decay);
    state[0] += (g - state[0]) * static_cast<A>(1 - o.beta1);
    state[1] = state[1] * static_cast<A>(o.beta2) + g * g * static_cast<A>(1 - o.beta2);
    A square = state[1];
    if (o.amsgrad) square = state[2] = Larger()(square, state[2]);
    p -= state[0] * static_cast<A>(o.lr / c.first) /
         (sqrt(square) / static_cast<A>(c.second_sqrt) + static_cast<A>(o.eps));
  }
};

template <class T, template <class> class Update, class Options>
__device__ void update_part(const DeviceSlot& s, int64_t first, const Corrections& c,
                            const Options& options) {
  using A = Acc<T>;
  const Update<A> update{options};
  const int used = update.used_states();
  T* param = static_cast<T*>(s.param);
  const T* grad = static_cast<const T*>(s.grad);
#pragma unroll
  for (int k = 0; k < per_thread; ++k) {
    const int64_t i = first + k * update_threads + threadIdx.x;
    if (i >= s.n) return;
    A p = widen(param[i]), state[3] = {};
    if (update.reads_state())
#pragma unroll
      for (int j = 0; j < Update<A>::states; ++j)
        if (j < used) state[j] = widen(static_cast<const T*>(s.state[j])[i]);
    update(c, p, widen(grad[i]), state);
    param[i] = narrow<T>(p);
#pragma unroll
    for (int j = 0; j < Update<A>::states; ++j)
      if (j < used) static_cast<T*>(s.state[j])[i] = narrow<T>(state[j]);
  }
}

template <template <class> class Update, class Options, int most>
__global__ void __launch_bounds__(update_threads)
    update_kernel(const __grid_constant__ SlotList<most> list, Options options) {
  // The last slot that starts at or before this block.
  int lo = 0, hi = list.count - 1;
  while (lo < hi) {
    const int mid = (lo + hi + 1) / 2;
    if (list.slot[mid].first_block <= blockIdx.x)
      lo = mid;
    else
      hi = mid - 1;
  }
  const DeviceSlot& s = list.slot[lo];
  __shared__ Corrections corrections;
  if (threadIdx.x == 0) corrections = Update<double>{options}.corrections(s);
  __syncthreads();
  const int64_t first = static_cast<int64_t>(blockIdx.x - s.first_block) * per_block;
  switch (s.dtype) {
    case DType::Float64: return update_part<double, Update>(s, first, corrections, options);
    case DType::Float16: return update_part<__half, Update>(s, first, corrections, options);
    case DType::BFloat16: return update_part<__nv_bfloat16, Update>(s, first, corrections, options);
    default: return update_part<float, Update>(s, first, corrections, options);
  }
}

template <template <class> class Update, int most, class Options>
void run_list(std::span<const UpdateSlot> slots, const Options& options) {
  SlotList<most> list;
  uint32_t blocks = 0;
  for (const UpdateSlot& s : slots) {
    DeviceSlot& to = list.slot[list.count++];
    to = {s.param, s.grad,        {s.state[0], s.state[1], s.state[2]},
          s.step,  s.correction1, s.correction2_sqrt,
          s.n,     blocks,        s.dtype};
    blocks += static_cast<uint32_t>((s.n + per_block - 1) / per_block);
  }
  if (blocks == 0) return;
  update_kernel<Update, Options, most>
      <<<blocks, update_threads, 0, current_stream()>>>(list, options);
  check_launch();
}

template <template <class> class Update, class Options>
void run(std::span<const UpdateSlot> slots, const Options& options) {
  while (!slots.empty()) {
    const size_t part = std::min<size_t>(slots.size(), many_slots);
    if (part <= few_slots)
      run_list<Update, few_slots>(slots.first(part), options);
    else
      run_list<Update, many_slots>(slots.first(part), options);
    slots = slots.subspan(part);
  }
}

struct StepList {
  int count = 0;
  float* step[480];
};
__global__ void count_steps(const __grid_constant__ StepList list) {
  for (int i = threadIdx.x; i < list.count; i += blockDim.x) *list.step[i] += 1;
}

void sgd(std::span<const UpdateSlot> slots, const SgdOptions& options) { run<Sgd>(slots, options); }

// Steps that live on the device are counted there, so that a captured graph counts too.
void adam(std::span<const UpdateSlot> slots, const AdamOptions& options) {
  StepList steps;
  auto flush = [&] {
    if (steps.count) count_steps<<<1, 256, 0, current_stream()>>>(steps);
    check_launch();
    steps.count = 0;
  };
  for (const UpdateSlot& s : slots) {
    if (s.step) steps.step[steps.count++] = s.step;
    if (steps.count == 480) flush();
  }
  flush();
  run<Adam>(slots, options);
}

}  // namespace

template <> const OptimKernels& cuda_table<OptimKernels>() {
  static constexpr OptimKernels table = {.sgd = sgd, .adam = adam};
  return table;
}

}  // namespace cresset::cuda
