// The parts of the standard library that the core's scalar headers use, for NVRTC.
using int8_t = signed char;
using uint8_t = unsigned char;
using int16_t = short;
using uint16_t = unsigned short;
using int32_t = int;
using uint32_t = unsigned int;
using int64_t = long long;
using uint64_t = unsigned long long;
using size_t = unsigned long;
#define INFINITY __builtin_bit_cast(float, 0x7f800000u)
inline constexpr float NAN = __builtin_bit_cast(float, 0x7fc00000u);

namespace std {

template <class A, class B> inline constexpr bool is_same_v = false;
template <class A> inline constexpr bool is_same_v<A, A> = true;
template <class T>
inline constexpr bool is_integral_v =
    is_same_v<T, bool> || is_same_v<T, char> || is_same_v<T, signed char> ||
    is_same_v<T, unsigned char> || is_same_v<T, short> || is_same_v<T, unsigned short> ||
    is_same_v<T, int> || is_same_v<T, unsigned int> || is_same_v<T, long> ||
    is_same_v<T, unsigned long> || is_same_v<T, long long> || is_same_v<T, unsigned long long>;
template <class T>
concept floating_point = is_same_v<T, float> || is_same_v<T, double>;
template <bool c, class A, class B> struct conditional { using type = A; };
template <class A, class B> struct conditional<false, A, B> { using type = B; };
template <bool c, class A, class B> using conditional_t = typename conditional<c, A, B>::type;

template <class T> struct numeric_limits;
template <> struct numeric_limits<float> {
  static constexpr float max() { return 3.402823466e+38f; }
  static constexpr float infinity() { return __builtin_bit_cast(float, 0x7f800000u); }
  static constexpr float quiet_NaN() { return __builtin_bit_cast(float, 0x7fc00000u); }
};
template <> struct numeric_limits<double> {
  static constexpr double max() { return 1.7976931348623157e+308; }
  static constexpr double infinity() { return __builtin_bit_cast(double, 0x7ff0000000000000ull); }
  static constexpr double quiet_NaN() { return __builtin_bit_cast(double, 0x7ff8000000000000ull); }
};
template <> struct numeric_limits<long long> {
  static constexpr long long max() { return 0x7fffffffffffffffll; }
  static constexpr long long min() { return -0x7fffffffffffffffll - 1; }
};

#define SHIM1(name)                                              \
  __device__ inline float name(float x) { return ::name##f(x); } \
  __device__ inline double name(double x) { return ::name(x); }
#define SHIM2(name)                                                          \
  __device__ inline float name(float a, float b) { return ::name##f(a, b); } \
  __device__ inline double name(double a, double b) { return ::name(a, b); }
SHIM1(sqrt)
SHIM1(exp)
SHIM1(exp2)
SHIM1(expm1)
SHIM1(log)
SHIM1(log2)
SHIM1(log10)
SHIM1(log1p)
SHIM1(sin)
SHIM1(cos)
SHIM1(tan)
SHIM1(asin)
SHIM1(acos)
SHIM1(atan)
SHIM1(sinh)
SHIM1(cosh)
SHIM1(tanh)
SHIM1(asinh)
SHIM1(acosh)
SHIM1(atanh)
SHIM1(erf)
SHIM1(erfc)
SHIM1(floor)
SHIM1(ceil)
SHIM1(trunc)
SHIM1(nearbyint)
SHIM1(lgamma)
SHIM1(tgamma)
SHIM2(fmod)
SHIM2(pow)
SHIM2(atan2)
SHIM2(hypot)
SHIM2(copysign)
SHIM2(nextafter)
SHIM2(remainder)
SHIM2(fmin)
SHIM2(fmax)
#undef SHIM1
#undef SHIM2
__device__ inline float abs(float x) { return ::fabsf(x); }
__device__ inline double abs(double x) { return ::fabs(x); }
__device__ inline double fma(double a, double b, double c) { return ::fma(a, b, c); }
__device__ inline bool isnan(float x) { return x != x; }
__device__ inline bool isnan(double x) { return x != x; }
__device__ inline bool isfinite(float x) { return x - x == 0; }
__device__ inline bool isfinite(double x) { return x - x == 0; }
__device__ inline bool isinf(float x) { return x == x && x - x != 0; }
__device__ inline bool isinf(double x) { return x == x && x - x != 0; }
__device__ inline bool signbit(float x) { return __float_as_int(x) < 0; }
__device__ inline bool signbit(double x) { return __double_as_longlong(x) < 0; }

}  // namespace std
