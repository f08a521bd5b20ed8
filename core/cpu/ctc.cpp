// CPU kernels of the CTC loss: A. Graves et al., "Connectionist temporal classification" (2006).
#include "core/ops/ctc.h"

#include <cmath>
#include <limits>

#include "core/cpu/parallel.h"

namespace cresset {
namespace {

constexpr double never = -std::numeric_limits<double>::infinity();

double log_add(double a, double b) {
  if (a < b) std::swap(a, b);
  return b == never ? a : a + std::log1p(std::exp(b - a));
}

/// One sample: its labels with blanks between, and its scores.
template <class T> struct Sample {
  const T* x;
  const int64_t* labels;
  int64_t time, states, step, width, blank;

  Sample(const CtcCall& c, int64_t n)
      : x(c.log_probs->data<T>() + n * c.log_probs->size(2)),
        labels(c.targets->data<int64_t>() + n * c.targets->size(1)),
        time(c.input_lengths[n]),
        states(2 * c.target_lengths[n] + 1),
        step(c.log_probs->size(1) * c.log_probs->size(2)),
        width(c.alpha->size(2)),
        blank(c.blank) {}

  int64_t label(int64_t s) const { return s % 2 ? labels[s / 2] : blank; }
  double score(int64_t t, int64_t s) const { return static_cast<double>(x[t * step + label(s)]); }
  /// Whether a path may go from state s - 2 to s without the blank between.
  bool skips(int64_t s) const { return s >= 2 && s % 2 && label(s) != label(s - 2); }
};

template <class T> double forward_sample(const Sample<T>& p, T* alpha) {
  if (p.time == 0) return p.states == 1 ? 0 : -never;
  for (int64_t t = 0; t < p.time; ++t) {
    T* now = alpha + t * p.width;
    const T* before = now - p.width;
    for (int64_t s = 0; s < p.states; ++s) {
      double paths = never;
      if (t == 0) {
        paths = s < 2 ? 0 : never;
      } else {
        paths = before[s];
        if (s >= 1) paths = log_add(paths, before[s - 1]);
        if (p.skips(s)) paths = log_add(paths, before[s - 2]);
      }
      now[s] = static_cast<T>(paths + p.score(t, s));
    }
  }
  const T* last = alpha + (p.time - 1) * p.width;
  double total = last[p.states - 1];
  if (p.states > 1) total = log_add(total, last[p.states - 2]);
  return -total;
}

template <class T>
void backward_sample(const Sample<T>& p, const T* alpha, double loss, double g, int64_t classes,
                     T* dx) {
  std::vector<double> beta(static_cast<size_t>(p.states), never), later(beta);
  std::vector<double> mass(static_cast<size_t>(classes));
  for (int64_t t = p.time - 1; t >= 0; --t) {
    std::swap(beta, later);
    std::fill(mass.begin(), mass.end(), never);
    for (int64_t s = 0; s < p.states; ++s) {
      double paths = never;
      if (t == p.time - 1) {
        paths = s >= p.states - 2 ? 0 : never;
      } else {
        paths = later[s];
        if (s + 1 < p.states) paths = log_add(paths, later[s + 1]);
        if (s + 2 < p.states && p.skips(s + 2)) paths = log_add(paths, later[s + 2]);
      }
      beta[s] = paths + p.score(t, s);
      double& m = mass[static_cast<size_t>(p.label(s))];
      m = log_add(m, beta[s] + static_cast<double>(alpha[t * p.width + s]));
    }
    for (int64_t c = 0; c < classes; ++c) {
      const double score = static_cast<double>(p.x[t * p.step + c]);
      const double through = mass[c] == never ? 0 : std::exp(mass[c] + loss - score);
      dx[t * p.step + c] = static_cast<T>((std::exp(score) - through) * g);
    }
  }
}

template <class F> void by_dtype(const Tensor& t, F f) {
  if (t.dtype() == DType::Float32)
    f(float{});
  else
    f(double{});
}

void forward(const CtcCall& c) {
  by_dtype(*c.log_probs, [&](auto zero) {
    using T = decltype(zero);
    const int64_t room = c.alpha->size(1) * c.alpha->size(2);
    parallel_for(0, c.loss->numel(), 1, [&](int64_t lo, int64_t hi) {
      for (int64_t n = lo; n < hi; ++n) {
        double loss = forward_sample(Sample<T>(c, n), c.alpha->data<T>() + n * room);
        c.loss->data<T>()[n] = static_cast<T>(loss);
      }
    });
  });
}

void backward(const CtcCall& c, const Tensor& g, const Tensor& dx) {
  by_dtype(*c.log_probs, [&](auto zero) {
    using T = decltype(zero);
    const int64_t room = c.alpha->size(1) * c.alpha->size(2), classes = dx.size(2);
    parallel_for(0, c.loss->numel(), 1, [&](int64_t lo, int64_t hi) {
      for (int64_t n = lo; n < hi; ++n) {
        const double loss = c.loss->data<T>()[n];
        if (c.zero_infinity && std::isinf(loss)) continue;
        backward_sample(Sample<T>(c, n), c.alpha->data<T>() + n * room, loss, g.data<T>()[n],
                        classes, dx.data<T>() + n * classes);
      }
    });
  });
}

}  // namespace

template <> const CtcKernels& cpu_kernels<CtcKernels>() {
  static constexpr CtcKernels table = {.forward = forward, .backward = backward};
  return table;
}

}  // namespace cresset
