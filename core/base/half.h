// The 16-bit storage types Half (IEEE binary16) and BFloat16, with arithmetic done in float.
#pragma once

#include <bit>
#include <cstdint>
#include <limits>

namespace cresset {

/// Bits of the binary16 nearest to `value`, ties to even; overflow gives infinity, NaN stays NaN.
constexpr uint16_t half_bits_from_float(float value) {
  const uint32_t bits = std::bit_cast<uint32_t>(value);
  const uint32_t sign = (bits >> 16) & 0x8000u;
  const uint32_t magnitude = bits & 0x7fffffffu;
  if (magnitude > 0x7f800000u) return static_cast<uint16_t>(sign | 0x7e00u);
  // 65520 is the midpoint between the largest finite half and the next power of two.
  if (magnitude >= 0x477ff000u) return static_cast<uint16_t>(sign | 0x7c00u);
  if (magnitude < 0x38800000u) {
    // Below 2^-14: adding 0.5 aligns the float's last bit with 2^-24, the unit of a half denormal,
    // so that the addition itself rounds to nearest even.
    const float aligned = std::bit_cast<float>(magnitude) + 0.5f;
    return static_cast<uint16_t>(sign | (std::bit_cast<uint32_t>(aligned) - 0x3f000000u));
  }
  const uint32_t odd = (magnitude >> 13) & 1u;
  const uint32_t rounded = magnitude - 0x38000000u + 0xfffu + odd;
  return static_cast<uint16_t>(sign | (rounded >> 13));
}

/// The float equal to a binary16 given by its bits.
constexpr float float_from_half_bits(uint16_t half) {
  const uint32_t sign = (static_cast<uint32_t>(half) & 0x8000u) << 16;
  const uint32_t magnitude = half & 0x7fffu;
  if (magnitude >= 0x7c00u) {
    return std::bit_cast<float>(sign | 0x7f800000u | ((magnitude & 0x3ffu) << 13));
  }
  if (magnitude < 0x400u) {
    const float value = static_cast<float>(magnitude) * 0x1p-24f;
    return std::bit_cast<float>(sign | std::bit_cast<uint32_t>(value));
  }
  return std::bit_cast<float>(sign | ((magnitude << 13) + 0x38000000u));
}

/// Bits of the bfloat16 nearest to `value`, ties to even; NaN becomes the quiet NaN 0x7fc0.
constexpr uint16_t bfloat16_bits_from_float(float value) {
  const uint32_t bits = std::bit_cast<uint32_t>(value);
  if ((bits & 0x7fffffffu) > 0x7f800000u) return 0x7fc0u;
  return static_cast<uint16_t>((bits + 0x7fffu + ((bits >> 16) & 1u)) >> 16);
}

/// The float equal to a bfloat16 given by its bits.
constexpr float float_from_bfloat16_bits(uint16_t bits) {
  return std::bit_cast<float>(static_cast<uint32_t>(bits) << 16);
}

/// IEEE binary16; converts both ways implicitly, so expressions are evaluated in float.
struct Half {
  uint16_t bits;

  Half() = default;
  constexpr Half(float value) : bits(half_bits_from_float(value)) {}
  constexpr operator float() const { return float_from_half_bits(bits); }

  static constexpr Half from_bits(uint16_t bits) {
    Half half(0.0f);
    half.bits = bits;
    return half;
  }
  constexpr Half& operator+=(float other) { return *this = Half(*this + other); }
  constexpr Half& operator-=(float other) { return *this = Half(*this - other); }
  constexpr Half& operator*=(float other) { return *this = Half(*this * other); }
  constexpr Half& operator/=(float other) { return *this = Half(*this / other); }
};

/// The upper half of a float32; converts both ways implicitly, so expressions run in float.
struct BFloat16 {
  uint16_t bits;

  BFloat16() = default;
  constexpr BFloat16(float value) : bits(bfloat16_bits_from_float(value)) {}
  constexpr operator float() const { return float_from_bfloat16_bits(bits); }

  static constexpr BFloat16 from_bits(uint16_t bits) {
    BFloat16 value(0.0f);
    value.bits = bits;
    return value;
  }
  constexpr BFloat16& operator+=(float other) { return *this = BFloat16(*this + other); }
  constexpr BFloat16& operator-=(float other) { return *this = BFloat16(*this - other); }
  constexpr BFloat16& operator*=(float other) { return *this = BFloat16(*this * other); }
  constexpr BFloat16& operator/=(float other) { return *this = BFloat16(*this / other); }
};

static_assert(sizeof(Half) == 2 && sizeof(BFloat16) == 2);

}  // namespace cresset

template <> struct std::numeric_limits<cresset::Half> : std::numeric_limits<float> {
  static constexpr int digits = 11;
  static constexpr int digits10 = 3;
  static constexpr int max_digits10 = 5;
  static constexpr int min_exponent = -13;
  static constexpr int max_exponent = 16;
  static constexpr cresset::Half min() { return cresset::Half::from_bits(0x0400); }
  static constexpr cresset::Half max() { return cresset::Half::from_bits(0x7bff); }
  static constexpr cresset::Half lowest() { return cresset::Half::from_bits(0xfbff); }
  static constexpr cresset::Half epsilon() { return cresset::Half::from_bits(0x1400); }
  static constexpr cresset::Half infinity() { return cresset::Half::from_bits(0x7c00); }
  static constexpr cresset::Half quiet_NaN() { return cresset::Half::from_bits(0x7e00); }
  static constexpr cresset::Half denorm_min() { return cresset::Half::from_bits(0x0001); }
};

template <> struct std::numeric_limits<cresset::BFloat16> : std::numeric_limits<float> {
  static constexpr int digits = 8;
  static constexpr int digits10 = 2;
  static constexpr int max_digits10 = 4;
  static constexpr cresset::BFloat16 min() { return cresset::BFloat16::from_bits(0x0080); }
  static constexpr cresset::BFloat16 max() { return cresset::BFloat16::from_bits(0x7f7f); }
  static constexpr cresset::BFloat16 lowest() { return cresset::BFloat16::from_bits(0xff7f); }
  static constexpr cresset::BFloat16 epsilon() { return cresset::BFloat16::from_bits(0x3c00); }
  static constexpr cresset::BFloat16 infinity() { return cresset::BFloat16::from_bits(0x7f80); }
  static constexpr cresset::BFloat16 quiet_NaN() { return cresset::BFloat16::from_bits(0x7fc0); }
  static constexpr cresset::BFloat16 denorm_min() { return cresset::BFloat16::from_bits(0x0001); }
};
