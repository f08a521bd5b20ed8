// CPU kernels of the embeddings.
#include "core/ops/embedding.h"

#include <cmath>
#include <vector>

namespace cresset {
namespace {

template <class F> void visit_floating(DType dtype, F&& f) {
  visit_dtype(dtype, [&]<class T>() {
    if constexpr (!std::is_integral_v<T> && !requires { typename T::value_type; })
      f.template operator()<T>();
  });
}

template <class T> double norm_of(const T* row, int64_t n, double p) {
  double s = 0;
  if (std::isinf(p)) {
    for (int64_t c = 0; c < n; ++c) s = std::max(s, std::abs(static_cast<double>(row[c])));
    return s;
  }
  for (int64_t c = 0; c < n; ++c) {
    double v = std::abs(static_cast<double>(row[c]));
    s += p == 2 ? v * v : p == 1 ? v : std::pow(v, p);
  }
  return p == 2 ? std::sqrt(s) : p == 1 ? s : std::pow(s, 1 / p);
}

void limit_norm(const Tensor& weight, const Tensor& index, double max_norm, double p) {
  const int64_t width = weight.size(1);
  visit_floating(weight.dtype(), [&]<class T>() {
    std::vector<bool> done(static_cast<size_t>(weight.size(0)), false);
    for (int64_t i = 0; i < index.numel(); ++i) {
      const int64_t at = index.data<int64_t>()[i];
      if (done[static_cast<size_t>(at)]) continue;
      done[static_cast<size_t>(at)] = true;
      T* row = weight.data<T>() + at * width;
      const double norm = norm_of(row, width, p);
      if (!(norm > max_norm)) continue;
      const double scale = max_norm / (norm + 1e-7);
      for (int64_t c = 0; c < width; ++c)
        row[c] = static_cast<T>(static_cast<double>(row[c]) * scale);
    }
  });
}

void bag_argmax(const Tensor& weight, const Tensor& index, const Tensor& bag, const Tensor& best) {
  const int64_t width = weight.size(1);
  visit_floating(weight.dtype(), [&]<class T>() {
    const T* w = weight.data<T>();
    for (int64_t i = 0; i < index.numel(); ++i) {
      const int64_t at = index.data<int64_t>()[i], b = bag.data<int64_t>()[i];
      if (at < 0 || b < 0) continue;
      int64_t* row = best.data<int64_t>() + b * width;
      for (int64_t c = 0; c < width; ++c)
        if (row[c] < 0 || w[at * width + c] > w[row[c] * width + c]) row[c] = at;
    }
  });
}

}  // namespace

template <> const EmbeddingKernels& cpu_kernels<EmbeddingKernels>() {
  static constexpr EmbeddingKernels table = {.limit_norm = limit_norm, .bag_argmax = bag_argmax};
  return table;
}

}  // namespace cresset
