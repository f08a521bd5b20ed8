// CUDA kernels of the CTC loss: A. Graves et al., "Connectionist temporal classification" (2006).
#include "core/ops/ctc.h"

#include "cuda/device.cuh"

namespace cresset::cuda {
namespace {

constexpr double never = -std::numeric_limits<double>::infinity();

__device__ double log_add(double a, double b) {
  const double high = a < b ? b : a, low = a < b ? a : b;
  return low == never ? high : high + log1p(exp(low - high));
}

/// A CtcCall as kernels take it; lengths are on the device.
template <class T> struct Call {
  const T* x;
  const int64_t *labels, *input_lengths, *target_lengths;
  T *alpha, *loss;
  int64_t batch, classes, label_room, time_room, width, blank;
  bool zero_infinity;
};

/// One sample: its labels with blanks between, and its scores.
template <class T> struct Sample {
  const T* x;
  const int64_t* labels;
  int64_t time, states, step, blank;

  __device__ Sample(const Call<T>& c, int64_t n)
      : x(c.x + n * c.classes),
        labels(c.labels + n * c.label_room),
        time(c.input_lengths[n]),
        states(2 * c.target_lengths[n] + 1),
        step(c.batch * c.classes),
        blank(c.blank) {}
  __device__ int64_t label(int64_t s) const { return s % 2 ? labels[s / 2] : blank; }
  __device__ double score(int64_t t, int64_t s) const {
    return static_cast<double>(x[t * step + label(s)]);
  }
  /// Whether a path may go from state s - 2 to s without the blank between.
  __device__ bool skips(int64_t s) const { return s >= 2 && s % 2 && label(s) != label(s - 2); }
};

// One block a sample, its threads over the states; time goes step by step.
template <class T> __global__ void forward_kernel(Call<T> c) {
  const int64_t n = blockIdx.x;
  const Sample<T> p(c, n);
  T* alpha = c.alpha + n * c.time_room * c.width;
  if (p.time == 0) {
    if (threadIdx.x == 0) c.loss[n] = static_cast<T>(p.states == 1 ? 0 : -never);
    return;
  }
  for (int64_t t = 0; t < p.time; ++t) {
    T* now = alpha + t * c.width;
    const T* before = now - c.width;
    for (int64_t s = threadIdx.x; s < p.states; s += blockDim.x) {
      double paths = t == 0 && s < 2 ? 0 : never;
      if (t > 0) {
        paths = before[s];
        if (s >= 1) paths = log_add(paths, before[s - 1]);
        if (p.skips(s)) paths = log_add(paths, before[s - 2]);
      }
      now[s] = static_cast<T>(paths + p.score(t, s));
    }
    __syncthreads();
  }
  if (threadIdx.x != 0) return;
  const T* last = alpha + (p.time - 1) * c.width;
  double total = last[p.states - 1];
  if (p.states > 1) total = log_add(total, last[p.states - 2]);
  c.loss[n] = static_cast<T>(-total);
}

// `room` holds two rows of states and one of classes for every sample.
template <class T> __global__ void backward_kernel(Call<T> c, const T* g, double* room, T* dx) {
  const int64_t n = blockIdx.x;
  const double loss = c.loss[n];
  if (c.zero_infinity && isinf(loss)) return;
  const Sample<T> p(c, n);
  const T* alpha = c.alpha + n * c.time_room * c.width;
  double* rows[2] = {room + n * (2 * c.width + c.classes), nullptr};
  rows[1] = rows[0] + c.width;
  double* mass = rows[1] + c.width;
  for (int64_t t = p.time - 1; t >= 0; --t) {
    double* beta = rows[t & 1];
    const double* later = rows[1 - (t & 1)];
    for (int64_t k = threadIdx.x; k < c.classes; k += blockDim.x) mass[k] = never;
    for (int64_t s = threadIdx.x; s < p.states; s += blockDim.x) {
      double paths = t == p.time - 1 && s >= p.states - 2 ? 0 : never;
      if (t < p.time - 1) {
        paths = later[s];
        if (s + 1 < p.states) paths = log_add(paths, later[s + 1]);
        if (s + 2 < p.states && p.skips(s + 2)) paths = log_add(paths, later[s + 2]);
      }
      beta[s] = paths + p.score(t, s);
    }
    __syncthreads();
    // The first state of each label adds up all states of that label, in order.
    for (int64_t s = threadIdx.x; s < p.states; s += blockDim.x) {
      const int64_t label = p.label(s);
      bool first = true;
      for (int64_t r = 0; r < s && first; ++r) first = p.label(r) != label;
      if (!first) continue;
      double m = never;
      for (int64_t r = s; r < p.states; ++r)
        if (p.label(r) == label)
          m = log_add(m, beta[r] + static_cast<double>(alpha[t * c.width + r]));
      mass[label] = m;
    }
    __syncthreads();
    for (int64_t k = threadIdx.x; k < c.classes; k += blockDim.x) {
      const double score = static_cast<double>(p.x[t * p.step + k]);
      const double through = mass[k] == never ? 0 : exp(mass[k] + loss - score);
      dx[t * p.step + n * c.classes + k] =
          static_cast<T>((exp(score) - through) * static_cast<double>(g[n]));
    }
    __syncthreads();
  }
}

/// The lengths' copies on the device, kept while a kernel runs in stream order.
struct Lengths {
  Tensor inputs, targets;
  explicit Lengths(const CtcCall& c)
      : inputs(upload<int64_t>(c.input_lengths, c.loss->device())),
        targets(upload<int64_t>(c.target_lengths, c.loss->device())) {}
};

template <class T> Call<T> make_call(const CtcCall& c, const Lengths& lengths) {
  return {pointer<T>(*c.log_probs),
          pointer<int64_t>(*c.targets),
          data_of<int64_t>(lengths.inputs),
          data_of<int64_t>(lengths.targets),
          pointer<T>(*c.alpha),
          pointer<T>(*c.loss),
          c.log_probs->size(1),
          c.log_probs->size(2),
          c.targets->size(1),
          c.alpha->size(1),
          c.alpha->size(2),
          c.blank,
          c.zero_infinity};
}

constexpr int ctc_threads = 128;

template <class T> void forward_as(const CtcCall& c) {
  const Lengths lengths(c);
  forward_kernel<T><<<static_cast<unsigned>(c.loss->numel()), ctc_threads, 0, current_stream()>>>(
      make_call<T>(c, lengths));
  check_launch();
}

template <class T> void backward_as(const CtcCall& c, const Tensor& g, const Tensor& dx) {
  const Lengths lengths(c);
  const Call<T> call = make_call<T>(c, lengths);
  const size_t row = static_cast<size_t>(2 * call.width + call.classes);
  Tensor room = scratch(8 * row * static_cast<size_t>(call.batch), dx.device());
  backward_kernel<T><<<static_cast<unsigned>(call.batch), ctc_threads, 0, current_stream()>>>(
      call, pointer<T>(g), data_of<double>(room), pointer<T>(dx));
  check_launch();
}

void forward(const CtcCall& c) {
  if (c.loss->numel() == 0) return;
  if (c.log_probs->dtype() == DType::Float32)
    forward_as<float>(c);
  else
    forward_as<double>(c);
}

void backward(const CtcCall& c, const Tensor& g, const Tensor& dx) {
  if (c.loss->numel() == 0) return;
  if (c.log_probs->dtype() == DType::Float32)
    backward_as<float>(c, g, dx);
  else
    backward_as<double>(c, g, dx);
}

}  // namespace

template <> const CtcKernels& cuda_table<CtcKernels>() {
  static constexpr CtcKernels table = {.forward = forward, .backward = backward};
  return table;
}

}  // namespace cresset::cuda
