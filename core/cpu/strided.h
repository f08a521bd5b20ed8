// Walks several tensors of one shape together, in runs along their last dim.
#pragma once

#include <array>

#include "core/base/small_vector.h"

namespace cresset {

/// A shape and K sets of strides for it, in elements.
template <size_t K> struct Strided {
  Dims sizes;
  std::array<Dims, K> strides;
  int64_t numel() const {
    int64_t n = 1;
    for (int64_t s : sizes) n *= s;
    return n;
  }
};

/// Strides of a tensor of shape `own` seen as the broadcast shape `sizes`.
inline Dims broadcast_strides(const Dims& own, const Dims& strides, const Dims& sizes) {
  Dims out(sizes.size());
  size_t lead = sizes.size() - own.size();
  for (size_t i = lead; i < sizes.size(); ++i) out[i] = own[i - lead] == 1 ? 0 : strides[i - lead];
  return out;
}

/// Drops dims of size 1 and merges dims that every operand walks as one; at least one dim is left.
template <size_t K> Strided<K> coalesced(const Strided<K>& s) {
  Strided<K> out;
  for (size_t d = 0; d < s.sizes.size(); ++d) {
    if (s.sizes[d] == 1) continue;
    bool merge = !out.sizes.empty();
    for (size_t k = 0; merge && k < K; ++k)
      merge = out.strides[k].back() == s.strides[k][d] * s.sizes[d];
    if (merge) {
      out.sizes.back() *= s.sizes[d];
      for (size_t k = 0; k < K; ++k) out.strides[k].back() = s.strides[k][d];
    } else {
      out.sizes.push_back(s.sizes[d]);
      for (size_t k = 0; k < K; ++k) out.strides[k].push_back(s.strides[k][d]);
    }
  }
  if (out.sizes.empty()) {
    out.sizes.push_back(1);
    for (Dims& strides : out.strides) strides.push_back(0);
  }
  return out;
}

/// Calls `f(offsets, first, length)` for the runs of the elements [lo, hi) in row-major order:
/// `offsets` of the run's first element in each operand, `first` its number.
template <size_t K, class F> void for_each_run(const Strided<K>& s, int64_t lo, int64_t hi, F&& f) {
  const size_t last = s.sizes.size() - 1;
  Dims at(s.sizes.size());
  std::array<int64_t, K> offset{};
  int64_t rest = lo;
  for (size_t d = last + 1; d-- > 0;) {
    at[d] = rest % s.sizes[d];
    rest /= s.sizes[d];
    for (size_t k = 0; k < K; ++k) offset[k] += at[d] * s.strides[k][d];
  }
  for (int64_t i = lo; i < hi;) {
    int64_t length = std::min(hi - i, s.sizes[last] - at[last]);
    f(offset, i, length);
    i += length;
    if (i >= hi) return;
    for (size_t k = 0; k < K; ++k) offset[k] -= at[last] * s.strides[k][last];
    at[last] = 0;
    for (size_t d = last; d-- > 0;) {
      for (size_t k = 0; k < K; ++k) offset[k] += s.strides[k][d];
      if (++at[d] < s.sizes[d]) break;
      for (size_t k = 0; k < K; ++k) offset[k] -= s.sizes[d] * s.strides[k][d];
      at[d] = 0;
    }
  }
}

/// Sixteen bytes, for moving complex128.
struct Bytes16 {
  uint64_t half[2];
};

/// Calls `f.operator()<T>()` with a plain type of `bytes` bytes, for loops that only move elements.
template <class F> decltype(auto) visit_bytes(size_t bytes, F&& f) {
  switch (bytes) {
    case 1: return f.template operator()<uint8_t>();
    case 2: return f.template operator()<uint16_t>();
    case 4: return f.template operator()<uint32_t>();
    case 8: return f.template operator()<uint64_t>();
    default: return f.template operator()<Bytes16>();
  }
}

}  // namespace cresset
