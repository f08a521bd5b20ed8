// CUDA kernels of the embeddings.
#include "core/ops/embedding.h"

#include "cuda/device.cuh"

namespace cresset::cuda {
namespace {

template <class T>
__global__ void limit_rows(const uint8_t* used, T* weight, int64_t width, double most, double p) {
  if (!used[blockIdx.x]) return;
  T* row = weight + static_cast<int64_t>(blockIdx.x) * width;
  double s = 0;
  for (int64_t c = threadIdx.x; c < width; c += blockDim.x) {
    const double v = fabs(static_cast<double>(widen(row[c])));
    if (isinf(p))
      s = v > s ? v : s;
    else
      s += p == 2 ? v * v : p == 1 ? v : pow(v, p);
  }
  s = isinf(p) ? block_fold(s, 0.0, Larger()) : block_fold(s, 0.0, Plus());
  const double norm = isinf(p) || p == 1 ? s : p == 2 ? sqrt(s) : pow(s, 1 / p);
  if (!(norm > most)) return;
  const double scale = most / (norm + 1e-7);
  for (int64_t c = threadIdx.x; c < width; c += blockDim.x)
    row[c] = narrow<T>(static_cast<Acc<T>>(static_cast<double>(widen(row[c])) * scale));
}

// Rows may be named many times: those in use are marked first, then each is scaled once.
void limit_norm(const Tensor& weight, const Tensor& index, double max_norm, double p) {
  const int64_t rows = weight.size(0);
  if (rows == 0 || index.numel() == 0) return;
  Tensor marks = scratch(static_cast<size_t>(rows), weight.device());
  uint8_t* used = data_of<uint8_t>(marks);
  const int64_t* at = pointer<int64_t>(index);
  CUDA_CHECK(cudaMemsetAsync(used, 0, static_cast<size_t>(rows), current_stream()));
  for_each(index.numel(), [=] __device__(int64_t i) {
    if (at[i] >= 0 && at[i] < rows) used[at[i]] = 1;
  });
  visit_floating(weight.dtype(), [&]<class T>() {
    limit_rows<T><<<static_cast<unsigned>(rows), 128, 0, current_stream()>>>(
        used, pointer<T>(weight), weight.size(1), max_norm, p);
  });
  check_launch();
}

// Bags are runs of neighbouring indices: the first thread of a run walks it.
template <class T>
void bag_argmax_as(const Tensor& weight, const Tensor& index, const Tensor& bag,
                   const Tensor& best) {
  const int64_t width = weight.size(1), rows = weight.size(0), n = index.numel();
  const T* w = pointer<T>(weight);
  const int64_t *at = pointer<int64_t>(index), *bags = pointer<int64_t>(bag);
  int64_t* to = pointer<int64_t>(best);
  for_each(n * width, [=] __device__(int64_t k) {
    const int64_t i = k / width, c = k - i * width, own = bags[i];
    if (own < 0 || (i > 0 && bags[i - 1] == own)) return;
    int64_t found = -1;
    for (int64_t j = i; j < n && bags[j] == own; ++j) {
      const int64_t row = at[j];
      if (row < 0 || row >= rows) continue;
      if (found < 0 || widen(w[row * width + c]) > widen(w[found * width + c])) found = row;
    }
    to[own * width + c] = found;
  });
}

void bag_argmax(const Tensor& weight, const Tensor& index, const Tensor& bag, const Tensor& best) {
  visit_floating(weight.dtype(), [&]<class T>() { bag_argmax_as<T>(weight, index, bag, best); });
}

}  // namespace

template <> const EmbeddingKernels& cuda_table<EmbeddingKernels>() {
  static constexpr EmbeddingKernels table = {.limit_norm = limit_norm, .bag_argmax = bag_argmax};
  return table;
}

}  // namespace cresset::cuda
