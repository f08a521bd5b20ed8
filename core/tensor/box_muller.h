// Box and Muller's transform of 16 uniform numbers into 16 normal ones, to PyTorch's last bit.
#pragma once

#include <bit>
#include <cmath>
#include <cstdint>
#include <numbers>

namespace cresset::detail {

// Note [Bit-equal normals]
// PyTorch evaluates blocks of floats with the polynomials of Cephes (S. Moshier) in AVX2, where the
// compiler fused some multiplications with the addition behind them. The same fusions are spelled
// out here by std::fma, so that every host gives the same bits, with or without FMA hardware.

/// Natural logarithm for x in (0, 1].
[[gnu::always_inline]] inline float log_cephes(float x) {
  // x = m 2^e with m in [sqrt(1/2), sqrt(2)); masks instead of branches, so that loops vectorise.
  const uint32_t bits = std::bit_cast<uint32_t>(x);
  const uint32_t mantissa = bits & 0x007fffffu;
  const int32_t small = mantissa < 0x3504f3u ? -1 : 0;
  const uint32_t half = mantissa | 0x3f000000u;
  const float exponent = static_cast<float>(static_cast<int32_t>(bits >> 23) - 126 + small);
  const float doubling = std::bit_cast<float>(half & static_cast<uint32_t>(small));
  const float m = (std::bit_cast<float>(half) - 1.0f) + doubling;

  const float z = m * m;
  float y = 7.0376836292e-2f;
  y = std::fma(y, m, -1.1514610310e-1f);
  y = std::fma(y, m, 1.1676998740e-1f);
  y = std::fma(y, m, -1.2420140846e-1f);
  y = std::fma(y, m, 1.4249322787e-1f);
  y = std::fma(y, m, -1.6668057665e-1f);
  y = std::fma(y, m, 2.0000714765e-1f);
  y = std::fma(y, m, -2.4999993993e-1f);
  y = std::fma(y, m, 3.3333331174e-1f);
  y *= m;
  y = std::fma(y, z, exponent * -2.12194440e-4f);
  y = std::fma(z, -0.5f, y);
  return std::fma(exponent, 0.693359375f, m + y);
}

struct SinCos {
  float sin;
  float cos;
};

/// Sine and cosine for x in [0, 2 pi).
[[gnu::always_inline]] inline SinCos sincos_cephes(float x) {
  const int32_t octant = (static_cast<int32_t>(x * 1.27323954473516f) + 1) & ~1;
  const float k = static_cast<float>(octant);
  // x - k pi/4, with pi/4 in three parts (Cody and Waite).
  x = std::fma(k, -0.78515625f, x);
  x = std::fma(k, -2.4187564849853515625e-4f, x);
  x = std::fma(k, -3.77489497744594108e-8f, x);

  const float z = x * x;
  float c = std::fma(2.443315711809948e-5f, z, -1.388731625493765e-3f);
  c = std::fma(c, z, 4.166664568298827e-2f);
  c = std::fma(c * z, z, z * -0.5f) + 1.0f;
  float s = std::fma(-1.9515295891e-4f, z, 8.3321608736e-3f);
  s = std::fma(s, z, -1.6666654611e-1f);
  s = std::fma(s * z, x, x);

  const uint32_t swap = (octant & 2) != 0 ? ~0u : 0u;
  const uint32_t s_bits = std::bit_cast<uint32_t>(s);
  const uint32_t c_bits = std::bit_cast<uint32_t>(c);
  const uint32_t sin_sign = static_cast<uint32_t>(octant & 4) << 29;
  const uint32_t cos_sign = static_cast<uint32_t>(~(octant - 2) & 4) << 29;
  return {std::bit_cast<float>(((c_bits & swap) | (s_bits & ~swap)) ^ sin_sign),
          std::bit_cast<float>(((s_bits & swap) | (c_bits & ~swap)) ^ cos_sign)};
}

/// data: [16] uniform numbers, the first 8 make the radii and the last 8 the angles.
[[gnu::always_inline]] inline void box_muller_lanes(float* data, float mean, float std) {
  constexpr float two_pi = static_cast<float>(2.0 * std::numbers::pi);
  float radius[8];
#pragma GCC unroll 1
  for (int i = 0; i < 8; ++i) radius[i] = -2.0f * log_cephes(1.0f - data[i]);
  for (int i = 0; i < 8; ++i) radius[i] = std::sqrt(radius[i]);
#pragma GCC unroll 1
  for (int i = 0; i < 8; ++i) {
    const SinCos angle = sincos_cephes(two_pi * data[i + 8]);
    data[i] = std::fma(radius[i] * angle.cos, std, mean);
    data[i + 8] = std::fma(radius[i] * angle.sin, std, mean);
  }
}

#if defined(__x86_64__)
[[gnu::target("avx2,fma")]] inline void box_muller_avx2(float* data, int64_t blocks, float mean,
                                                        float std) {
  for (int64_t b = 0; b < blocks; ++b) box_muller_lanes(data + 16 * b, mean, std);
}
#endif

/// Transforms `blocks` consecutive blocks of 16 in place.
inline void box_muller(float* data, int64_t blocks, float mean, float std) {
#if defined(__x86_64__)
  if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) {
    return box_muller_avx2(data, blocks, mean, std);
  }
#endif
  for (int64_t b = 0; b < blocks; ++b) box_muller_lanes(data + 16 * b, mean, std);
}

inline void box_muller(double* data, int64_t blocks, double mean, double std) {
  for (double* end = data + 16 * blocks; data != end; data += 16) {
    for (int i = 0; i < 8; ++i) {
      const double radius = std::sqrt(-2.0 * std::log(1.0 - data[i]));
      const double theta = 2.0 * std::numbers::pi * data[i + 8];
      data[i] = std::fma(radius * std::cos(theta), std, mean);
      data[i + 8] = std::fma(radius * std::sin(theta), std, mean);
    }
  }
}

/// Half and BFloat16: PyTorch rounds to T after every single operation.
template <class T> void box_muller(T* data, int64_t blocks, T mean, T std) {
  for (T* end = data + 16 * blocks; data != end; data += 16) {
    for (int i = 0; i < 8; ++i) {
      const T log = std::log(static_cast<float>(T(1.0f - data[i])));
      const T radius = std::sqrt(-2.0f * log);
      const T theta = static_cast<float>(2.0 * std::numbers::pi * data[i + 8]);
      const T cos = std::cos(static_cast<float>(theta));
      const T sin = std::sin(static_cast<float>(theta));
      data[i] = T(T(radius * cos) * std) + mean;
      data[i + 8] = T(T(radius * sin) * std) + mean;
    }
  }
}

}  // namespace cresset::detail
