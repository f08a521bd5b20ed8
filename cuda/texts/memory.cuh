// Elements in memory: half types, conversions to and from compute types, packs of 16 bytes.
namespace cresset {

/// What every thread of a kernel does first: see Note [Overlapping launches] in cuda/nvrtc.cpp.
__device__ inline void wait_for_stream() {
#if __CUDA_ARCH__ >= 900
  asm volatile("griddepcontrol.wait;" ::: "memory");
#endif
}

struct Half {
  uint16_t bits;
};
struct BFloat16 {
  uint16_t bits;
};
template <class T>
inline constexpr bool is_half_type = std::is_same_v<T, Half> || std::is_same_v<T, BFloat16>;
template <class T> inline constexpr bool is_complex_type = false;
template <class R> inline constexpr bool is_complex_type<Cplx<R>> = true;

__device__ inline float widen(Half x) {
  float f;
  asm("cvt.f32.f16 %0, %1;" : "=f"(f) : "h"(x.bits));
  return f;
}
__device__ inline float widen(BFloat16 x) {
  return __uint_as_float(static_cast<unsigned>(x.bits) << 16);
}
template <class T> __device__ inline T narrow_half(float x);
template <> __device__ inline Half narrow_half<Half>(float x) {
  Half h;
  asm("cvt.rn.f16.f32 %0, %1;" : "=h"(h.bits) : "f"(x));
  return h;
}
template <> __device__ inline BFloat16 narrow_half<BFloat16>(float x) {
  BFloat16 h;
  asm("cvt.rn.bf16.f32 %0, %1;" : "=h"(h.bits) : "f"(x));
  return h;
}

// Floats out of range become the smallest integer, as on the CPU.
__device__ inline int64_t float_to_int(double x) {
  return x >= -0x1p63 && x < 0x1p63 ? static_cast<int64_t>(x) : std::numeric_limits<int64_t>::min();
}

template <class To, class From> __device__ inline To convert(From x) {
  if constexpr (std::is_same_v<To, From>) {
    return x;
  } else if constexpr (is_complex_type<From>) {
    if constexpr (is_complex_type<To>)
      return To(static_cast<decltype(To::re)>(x.re), static_cast<decltype(To::re)>(x.im));
    else if constexpr (std::is_same_v<To, bool>)
      return x.re != 0 || x.im != 0;
    else
      return convert<To>(x.re);
  } else if constexpr (is_half_type<From>) {
    return convert<To>(widen(x));
  } else if constexpr (is_complex_type<To>) {
    return To(static_cast<decltype(To::re)>(x), static_cast<decltype(To::re)>(0));
  } else if constexpr (std::is_same_v<To, bool>) {
    return x != From(0);
  } else if constexpr (is_half_type<To>) {
    return narrow_half<To>(static_cast<float>(x));
  } else if constexpr (std::floating_point<From> && std::is_integral_v<To>) {
    return static_cast<To>(float_to_int(static_cast<double>(x)));
  } else {
    return static_cast<To>(x);
  }
}

/// The element type of a value wrapper, as memory holds it.
template <class V> struct Cell;
template <class T> struct Cell<Num<T>> {
  using type = T;
  static __device__ Num<T> wrap(T x) { return Num<T>::of(x); }
  static __device__ T unwrap(Num<T> x) { return x.v; }
};
template <class R> struct Cell<Cplx<R>> {
  using type = Cplx<R>;
  static __device__ Cplx<R> wrap(Cplx<R> x) { return x; }
  static __device__ Cplx<R> unwrap(Cplx<R> x) { return x; }
};

template <class V, class T> __device__ inline V from_memory(T x) {
  return Cell<V>::wrap(convert<typename Cell<V>::type>(x));
}
template <class T, class V> __device__ inline T to_memory(V x) {
  return convert<T>(Cell<V>::unwrap(x));
}
template <class T> __device__ inline T to_memory(bool x) { return convert<T>(x ? 1 : 0); }

/// N neighbouring elements, moved in accesses of up to 16 bytes.
template <class T, int N> struct alignas(sizeof(T) * N < 16 ? sizeof(T) * N : 16) Pack { T v[N]; };
template <int N, class T> __device__ inline Pack<T, N> load_pack(const T* p) {
  return *reinterpret_cast<const Pack<T, N>*>(p);
}
template <int N, class T> __device__ inline void store_pack(T* p, const Pack<T, N>& x) {
  *reinterpret_cast<Pack<T, N>*>(p) = x;
}

}  // namespace cresset
