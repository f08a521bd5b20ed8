// Atomic read-modify-write of any element type, for scatters.
#pragma once

#include "cuda/device.cuh"

namespace cresset::cuda {

/// *to = f(*to) as one step, for elements of 1, 2, 4 or 8 bytes.
template <class T, class F> __device__ void atomic_update(T* to, F f) {
  if constexpr (sizeof(T) < 4) {
    // The 32-bit word that holds the element is exchanged.
    const uintptr_t address = reinterpret_cast<uintptr_t>(to);
    unsigned* word = reinterpret_cast<unsigned*>(address & ~uintptr_t{3});
    const unsigned shift = static_cast<unsigned>(address & 3) * 8;
    const unsigned mask = (sizeof(T) == 1 ? 0xffu : 0xffffu) << shift;
    unsigned old = *word, seen;
    do {
      seen = old;
      union {
        T value;
        unsigned bits;
      } now;
      now.bits = (seen & mask) >> shift;
      now.value = f(now.value);
      old = atomicCAS(word, seen, (seen & ~mask) | ((now.bits << shift) & mask));
    } while (old != seen);
  } else {
    using W = std::conditional_t<sizeof(T) == 4, unsigned, unsigned long long>;
    W* word = reinterpret_cast<W*>(to);
    W old = *word, seen;
    do {
      seen = old;
      union Bits {
        W bits;
        T value;
        __device__ Bits(W b) : bits(b) {}
      } now(seen);
      now.value = f(now.value);
      old = atomicCAS(word, seen, now.bits);
    } while (old != seen);
  }
}

/// *to += x. Sums of floats depend on the order in which threads come.
template <class T> __device__ void atomic_plus(T* to, T x) {
  if constexpr (std::is_same_v<T, float> || std::is_same_v<T, double> ||
                std::is_same_v<T, int32_t>) {
    atomicAdd(to, x);
  } else if constexpr (std::is_same_v<T, int64_t>) {
    atomicAdd(reinterpret_cast<unsigned long long*>(to), static_cast<unsigned long long>(x));
  } else if constexpr (is_complex_type<T>) {
    atomicAdd(&to->re, x.re);
    atomicAdd(&to->im, x.im);
  } else if constexpr (std::is_same_v<T, bool>) {
    if (x) *to = true;
  } else {
    atomic_update(to, [x](T v) { return narrow<T>(widen(v) + widen(x)); });
  }
}

}  // namespace cresset::cuda
