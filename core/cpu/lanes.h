// Calls a scalar function on each lane of a vector; compiled once for all SIMD targets.
#pragma once

namespace cresset::lanes {

template <class F, class T> [[gnu::noinline]] void map(F* f, T* x, int n) {
  for (int i = 0; i < n; ++i) x[i] = static_cast<T>(f(x[i]));
}

template <class F, class T> [[gnu::noinline]] void map(F* f, T* x, const T* y, int n) {
  for (int i = 0; i < n; ++i) x[i] = static_cast<T>(f(x[i], y[i]));
}

}  // namespace cresset::lanes
