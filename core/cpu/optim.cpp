// Optimizer updates over many tensors at once, SIMD, parallel over all their elements.
#include "core/ops/optim.h"

#include <algorithm>

#include "core/cpu/parallel.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "core/cpu/optim.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>
#include "core/cpu/vec.h"

HWY_BEFORE_NAMESPACE();
namespace cresset {
namespace HWY_NAMESPACE {

template <class T> struct Sgd {
  using V = Vec<T>;
  const SgdOptions& o;

  HWY_INLINE void operator()(const UpdateSlot&, V& p, V g, V* state) const {
    if (o.maximize) g = -g;
    if (o.weight_decay != 0) g = g + p * o.weight_decay;
    if (o.momentum != 0) {
      state[0] = o.first ? g : state[0] * o.momentum + g * (1 - o.dampening);
      g = o.nesterov ? g + state[0] * o.momentum : state[0];
    }
    p = p - g * o.lr;
  }
};

// Kingma and Ba, "Adam" (2015); Loshchilov and Hutter, "Decoupled weight decay" (2019).
template <class T> struct Adam {
  using V = Vec<T>;
  const AdamOptions& o;

  HWY_INLINE void operator()(const UpdateSlot& slot, V& p, V g, V* state) const {
    if (o.maximize) g = -g;
    if (o.decoupled)
      p = p * (1 - o.lr * o.weight_decay);
    else if (o.weight_decay != 0)
      g = g + p * o.weight_decay;
    state[0] = state[0] + (g - state[0]) * (1 - o.beta1);
    state[1] = state[1] * o.beta2 + g * g * (1 - o.beta2);
    V square = state[1];
    if (o.amsgrad) square = state[2] = maximum(state[2], square);
    p = p - state[0] * (o.lr / slot.correction1) / (sqrt(square) / slot.correction2_sqrt + o.eps);
  }
};

// Applies `update` to n elements; S state tensors.
template <int S, class T, class F>
HWY_INLINE void update_run(const UpdateSlot& slot, T* p, const T* g, T* const* state, int64_t n,
                           const F& update) {
  using V = Vec<T>;
  constexpr int64_t width = V::width;
  V values[3];
  int64_t i = 0;
  for (; i + width <= n; i += width) {
    V param = V::load(p + i);
    for (int s = 0; s < S; ++s) values[s] = V::load(state[s] + i);
    update(slot, param, V::load(g + i), values);
    store(param, p + i);
    for (int s = 0; s < S; ++s) store(values[s], state[s] + i);
  }
  if (i == n) return;
  // The rest goes through a padded vector.
  T rest[5][width] = {};
  std::copy(p + i, p + n, rest[0]);
  std::copy(g + i, g + n, rest[1]);
  for (int s = 0; s < S; ++s) std::copy(state[s] + i, state[s] + n, rest[2 + s]);
  V param = V::load(rest[0]);
  for (int s = 0; s < S; ++s) values[s] = V::load(rest[2 + s]);
  update(slot, param, V::load(rest[1]), values);
  store(param, rest[0]);
  std::copy(rest[0], rest[0] + (n - i), p + i);
  for (int s = 0; s < S; ++s) {
    store(values[s], rest[2 + s]);
    std::copy(rest[2 + s], rest[2 + s] + (n - i), state[s] + i);
  }
}

// Half types: pieces are widened to float, updated and rounded once.
template <int S, class H, class F>
HWY_INLINE void update_half(const UpdateSlot& slot, int64_t lo, int64_t hi, const F& update) {
  constexpr int64_t piece = 256;
  float p[piece], g[piece], s[3][piece];
  float* const states[3] = {s[0], s[1], s[2]};
  H* param = static_cast<H*>(slot.param);
  const H* grad = static_cast<const H*>(slot.grad);
  for (int64_t at = lo; at < hi; at += piece) {
    const int64_t n = std::min(piece, hi - at);
    for (int64_t i = 0; i < n; ++i) p[i] = param[at + i];
    for (int64_t i = 0; i < n; ++i) g[i] = grad[at + i];
    for (int k = 0; k < S; ++k)
      for (int64_t i = 0; i < n; ++i) s[k][i] = static_cast<H*>(slot.state[k])[at + i];
    update_run<S>(slot, p, g, states, n, update);
    for (int64_t i = 0; i < n; ++i) param[at + i] = p[i];
    for (int k = 0; k < S; ++k)
      for (int64_t i = 0; i < n; ++i) static_cast<H*>(slot.state[k])[at + i] = s[k][i];
  }
}

template <int S, class T, class F>
HWY_INLINE void update_full(const UpdateSlot& slot, int64_t lo, int64_t hi, const F& update) {
  T* states[3] = {};
  for (int s = 0; s < S; ++s) states[s] = static_cast<T*>(slot.state[s]) + lo;
  update_run<S>(slot, static_cast<T*>(slot.param) + lo, static_cast<const T*>(slot.grad) + lo,
                states, hi - lo, update);
}

// Elements [lo, hi) of one slot.
template <int S, template <class> class Update, class Options>
void update_slot(const UpdateSlot& slot, int64_t lo, int64_t hi, const Options& options) {
  switch (slot.dtype) {
    case DType::Float64: return update_full<S, double>(slot, lo, hi, Update<double>{options});
    case DType::Float16: return update_half<S, Half>(slot, lo, hi, Update<float>{options});
    case DType::BFloat16: return update_half<S, BFloat16>(slot, lo, hi, Update<float>{options});
    default: return update_full<S, float>(slot, lo, hi, Update<float>{options});
  }
}

void sgd_slot(const UpdateSlot& slot, int64_t lo, int64_t hi, const SgdOptions& o) {
  if (o.momentum != 0)
    update_slot<1, Sgd>(slot, lo, hi, o);
  else
    update_slot<0, Sgd>(slot, lo, hi, o);
}

void adam_slot(const UpdateSlot& slot, int64_t lo, int64_t hi, const AdamOptions& o) {
  if (o.amsgrad)
    update_slot<3, Adam>(slot, lo, hi, o);
  else
    update_slot<2, Adam>(slot, lo, hi, o);
}

}  // namespace HWY_NAMESPACE
}  // namespace cresset
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace cresset {
namespace {

HWY_EXPORT(sgd_slot);
HWY_EXPORT(adam_slot);

// Walks the elements of all slots as one range, so that small and large tensors share threads.
template <class F> void for_all_elements(std::span<const UpdateSlot> slots, F f) {
  int64_t total = 0;
  for (const UpdateSlot& slot : slots) total += slot.n;
  parallel_for(0, total, 262144, [&](int64_t lo, int64_t hi) {
    int64_t start = 0;
    for (const UpdateSlot& slot : slots) {
      const int64_t from = std::max(lo, start) - start, to = std::min(hi, start + slot.n) - start;
      if (from < to) f(slot, from, to);
      start += slot.n;
    }
  });
}

void sgd(std::span<const UpdateSlot> slots, const SgdOptions& options) {
  for_all_elements(slots, [&](const UpdateSlot& slot, int64_t lo, int64_t hi) {
    HWY_DYNAMIC_DISPATCH(sgd_slot)(slot, lo, hi, options);
  });
}

void adam(std::span<const UpdateSlot> slots, const AdamOptions& options) {
  for_all_elements(slots, [&](const UpdateSlot& slot, int64_t lo, int64_t hi) {
    HWY_DYNAMIC_DISPATCH(adam_slot)(slot, lo, hi, options);
  });
}

}  // namespace

template <> const OptimKernels& cpu_kernels<OptimKernels>() {
  static constexpr OptimKernels table = {.sgd = sgd, .adam = adam};
  return table;
}

}  // namespace cresset
#endif
