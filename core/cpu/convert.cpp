// Loads and stores between memory dtypes and the compute types of the elementwise loops.
#include "core/cpu/convert.h"

#include <array>
#include <limits>

namespace cresset {
namespace {

template <class T> constexpr bool is_complex_type = requires(T x) { x.imag(); };

// Out-of-range and NaN floats become the smallest integer, as x86 conversion gives; C++ leaves
// them undefined.
inline int64_t float_to_int(double x) {
  constexpr double limit = 9223372036854775808.0;
  return x >= -limit && x < limit ? static_cast<int64_t>(x) : std::numeric_limits<int64_t>::min();
}

template <class To, class From> inline To convert(From x) {
  if constexpr (is_complex_type<From>) {
    if constexpr (is_complex_type<To>)
      return To(static_cast<typename To::value_type>(x.real()),
                static_cast<typename To::value_type>(x.imag()));
    else if constexpr (std::is_same_v<To, bool>)
      return x.real() != 0 || x.imag() != 0;
    else
      return convert<To>(x.real());
  } else if constexpr (std::is_same_v<From, Half> || std::is_same_v<From, BFloat16>) {
    return convert<To>(static_cast<float>(x));
  } else if constexpr (is_complex_type<To>) {
    return To(static_cast<typename To::value_type>(x), 0);
  } else if constexpr (std::is_same_v<To, bool>) {
    return x != From(0);
  } else if constexpr (std::is_same_v<To, Half> || std::is_same_v<To, BFloat16>) {
    return To(static_cast<float>(x));
  } else if constexpr (std::is_floating_point_v<From> && std::is_integral_v<To>) {
    return static_cast<To>(float_to_int(static_cast<double>(x)));
  } else {
    return static_cast<To>(x);
  }
}

template <class From, class To> void load(const void* src, int64_t stride, void* dst, int64_t n) {
  const From* s = static_cast<const From*>(src);
  To* d = static_cast<To*>(dst);
  if (stride == 1) {
    for (int64_t i = 0; i < n; ++i) d[i] = convert<To>(s[i]);
  } else {
    for (int64_t i = 0; i < n; ++i) d[i] = convert<To>(s[i * stride]);
  }
}

template <class From, class To> void store(const void* src, void* dst, int64_t stride, int64_t n) {
  const From* s = static_cast<const From*>(src);
  To* d = static_cast<To*>(dst);
  if (stride == 1) {
    for (int64_t i = 0; i < n; ++i) d[i] = convert<To>(s[i]);
  } else {
    for (int64_t i = 0; i < n; ++i) d[i * stride] = convert<To>(s[i]);
  }
}

template <class F> auto visit_compute(Compute c, F&& f) {
  switch (c) {
    case Compute::F32: return f.template operator()<float>();
    case Compute::F64: return f.template operator()<double>();
    case Compute::I64: return f.template operator()<int64_t>();
    case Compute::C64: return f.template operator()<std::complex<float>>();
    default: return f.template operator()<std::complex<double>>();
  }
}

}  // namespace

LoadFn load_function(DType from, Compute to) {
  return visit_dtype(from, [&]<class F>() {
    return visit_compute(to, []<class T>() -> LoadFn { return &load<F, T>; });
  });
}

StoreFn store_function(Compute from, DType to) {
  return visit_dtype(to, [&]<class T>() {
    return visit_compute(from, []<class F>() -> StoreFn { return &store<F, T>; });
  });
}

}  // namespace cresset
