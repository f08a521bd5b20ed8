// Sorts and merges the dims of a reduction.
#include "core/cpu/reduce_plan.h"

namespace cresset {
namespace {

// Adds a dim to lists sorted by falling input stride.
void insert_dim(Dims& sizes, Dims& in, Dims* out, int64_t size, int64_t stride,
                int64_t out_stride) {
  size_t at = sizes.size();
  while (at > 0 && in[at - 1] < stride) --at;
  sizes.insert(at, size);
  in.insert(at, stride);
  if (out) out->insert(at, out_stride);
}

// Merges neighbours that are one dim in memory.
void merge_dims(Dims& sizes, Dims& in, Dims* out) {
  size_t last = 0;
  for (size_t i = 1; i < sizes.size(); ++i) {
    bool joins = in[last] == in[i] * sizes[i] && (!out || (*out)[last] == (*out)[i] * sizes[i]);
    if (joins) {
      sizes[last] *= sizes[i];
    } else {
      sizes[++last] = sizes[i];
    }
    in[last] = in[i];
    if (out) (*out)[last] = (*out)[i];
  }
  if (sizes.empty()) return;
  sizes.resize(last + 1);
  in.resize(last + 1);
  if (out) out->resize(last + 1);
}

}  // namespace

ReducePlan plan_reduction(const Tensor& x, std::span<const int64_t> over) {
  ReducePlan p;
  const int64_t rank = x.dim();
  if (static_cast<int64_t>(over.size()) == rank && x.is_contiguous()) {
    p.length = x.numel();
    p.red = {p.length};
    p.red_in = {1};
    return p;
  }
  size_t left = over.size();
  int64_t out_stride = 1;
  for (int64_t d = rank - 1; d >= 0; --d) {
    const int64_t size = x.size(d), stride = x.stride(d);
    if (left > 0 && over[left - 1] == d) {
      --left;
      p.length *= size;
      if (size != 1) insert_dim(p.red, p.red_in, nullptr, size, stride, 0);
    } else {
      p.outputs *= size;
      if (size != 1) insert_dim(p.kept, p.kept_in, &p.kept_out, size, stride, out_stride);
      out_stride *= size;
    }
  }
  if (p.length == 0 || p.red.empty()) {
    p.red = {p.length};
    p.red_in = {0};
  } else {
    merge_dims(p.red, p.red_in, nullptr);
  }
  if (p.outputs == 0) return p;
  merge_dims(p.kept, p.kept_in, &p.kept_out);
  p.columns = !p.kept.empty() && (p.length <= 1 || p.kept_in.back() < p.red_in.back());
  return p;
}

}  // namespace cresset
