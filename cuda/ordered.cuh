// Sums into places that many elements may share, in the order of the elements.
#pragma once

#include "core/tensor/math_mode.h"
#include "cuda/atomic.cuh"
#include "cuda/sort.h"

namespace cresset::cuda {

/// Whether the order in which threads come shows in a sum of this type.
template <class T> inline constexpr bool order_matters = !std::is_integral_v<T>;

/// The elements by target, stably; the key of an element is its target + 1, so that those left out
/// (-1) come first.
template <class Target>
SortedKeys sort_targets(int64_t count, int64_t places, Device device, Target target) {
  Tensor memory = scratch(8 * static_cast<size_t>(count), device);
  uint64_t* number = data_of<uint64_t>(memory);
  for_each(count, [=] __device__(int64_t i) { number[i] = static_cast<uint64_t>(target(i) + 1); });
  int bits = 1;
  while (bits < 63 && (int64_t{1} << bits) <= places) ++bits;
  return sort_keys(memory, 1, count, bits);
}

/// to[target(i)] += value(i) for i < count; targets are below `places`, -1 is left out. Elements
/// are sorted by target, stably, and the first of each run adds up the run: equal bits in every
/// run.
template <class T, class Target, class Value>
void ordered_sums(int64_t count, int64_t places, Device device, Target target, Value value, T* to) {
  const SortedKeys sorted = sort_targets(count, places, device, target);
  const uint64_t* keys = sorted.keys;
  const uint32_t* order = sorted.places;
  for_each(count, [=] __device__(int64_t p) {
    const uint64_t key = keys[p];
    if (key == 0 || (p > 0 && keys[p - 1] == key)) return;
    Acc<T> sum = Acc<T>(0);
    for (int64_t q = p; q < count && keys[q] == key; ++q) sum = sum + widen(value(order[q]));
    T& place = to[key - 1];
    place = narrow<T>(widen(place) + sum);
  });
}

/// The same by atomics, whose order varies, unless deterministic results are asked for.
template <class T, class Target, class Value>
void scattered_sums(int64_t count, int64_t places, Device device, Target target, Value value,
                    T* to) {
  if (order_matters<T> && math_mode().deterministic && count < int64_t{1} << 32)
    return ordered_sums<T>(count, places, device, target, value, to);
  for_each(count, [=] __device__(int64_t i) {
    const int64_t at = target(i);
    if (at >= 0) atomic_plus(to + at, value(i));
  });
}

/// Whether writes to one place are ordered, so that the last one stays as on the CPU. Many writes
/// are ordered only where deterministic results are asked for: PyTorch leaves them to chance.
inline bool orders_writes(int64_t count) {
  return count <= 2048 || (math_mode().deterministic && count < int64_t{1} << 32);
}

/// to[target(i)] = value(i) for i < count; targets are below `places`, -1 is left out.
template <class T, class Target, class Value>
void scattered_writes(int64_t count, int64_t places, Device device, Target target, Value value,
                      T* to) {
  if (!orders_writes(count)) {
    for_each(count, [=] __device__(int64_t i) {
      const int64_t at = target(i);
      if (at >= 0) to[at] = value(i);
    });
    return;
  }
  const SortedKeys sorted = sort_targets(count, places, device, target);
  const uint64_t* keys = sorted.keys;
  const uint32_t* order = sorted.places;
  for_each(count, [=] __device__(int64_t p) {
    const uint64_t key = keys[p];
    if (key != 0 && (p + 1 == count || keys[p + 1] != key)) to[key - 1] = value(order[p]);
  });
}

}  // namespace cresset::cuda
