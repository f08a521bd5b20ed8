// Seeding, block generation and the saved state of the random generator.
#include "core/tensor/generator.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <numbers>
#include <random>

#include "core/base/error.h"

namespace cresset {
namespace {

// PyTorch saves a C struct; these are the offsets of its fields, all little-endian. Each word of
// the twister takes 8 bytes, and `left` counts down to the next block while `next` counts up.
constexpr size_t seed_at = 0;
constexpr size_t left_at = 8;
constexpr size_t seeded_at = 12;
constexpr size_t next_at = 16;
constexpr size_t words_at = 24;
constexpr size_t normal_double_at = 5024;
constexpr size_t has_normal_double_at = 5040;
constexpr size_t normal_float_at = 5048;
constexpr size_t has_normal_float_at = 5052;

template <class T> void store(std::vector<uint8_t>& bytes, size_t at, T value) {
  std::memcpy(bytes.data() + at, &value, sizeof(T));
}

template <class T> T load(std::span<const uint8_t> bytes, size_t at) {
  T value;
  std::memcpy(&value, bytes.data() + at, sizeof(T));
  return value;
}

uint64_t entropy_seed() {
  std::random_device device;
  // 53 bits, so that JavaScript can hold the seed as a number.
  return (static_cast<uint64_t>(device()) << 32 | device()) & 0x1fffffffffffffu;
}

}  // namespace

Generator::Generator(uint64_t seed) { seed_words(seed); }

void Generator::seed_words(uint64_t seed) {
  seed_ = seed;
  next_ = 0;
  next_normal_double_.reset();
  next_normal_float_.reset();
  words_[0] = static_cast<uint32_t>(seed);
  for (uint32_t i = 1; i < word_count; ++i) {
    words_[i] = 1812433253u * (words_[i - 1] ^ words_[i - 1] >> 30) + i;
  }
}

void Generator::manual_seed(uint64_t seed) {
  const std::lock_guard lock(mutex_);
  seed_words(seed);
}

uint64_t Generator::seed() {
  const uint64_t seed = entropy_seed();
  manual_seed(seed);
  return seed;
}

uint64_t Generator::initial_seed() const {
  const std::lock_guard lock(mutex_);
  return seed_;
}

// Note [Wide twister]
// The recurrence reaches back 227 words at least, so that it runs in vectors; the compiler makes
// them from these loops when asked for -O3, once for every machine and once for AVX2.
namespace {

constexpr uint32_t block_words = 624;

[[gnu::always_inline]] inline void twist_block(uint32_t* w) {
  constexpr uint32_t shift = 397, wrap = block_words - shift;
  auto mixed = [](uint32_t u, uint32_t v) {
    uint32_t y = (u & 0x80000000u) | (v & 0x7fffffffu);
    return y >> 1 ^ (-(v & 1u) & 0x9908b0dfu);
  };
  for (uint32_t i = 0; i < wrap; ++i) w[i] = w[i + shift] ^ mixed(w[i], w[i + 1]);
  for (uint32_t i = wrap; i < block_words - 1; ++i) w[i] = w[i - wrap] ^ mixed(w[i], w[i + 1]);
  w[block_words - 1] = w[shift - 1] ^ mixed(w[block_words - 1], w[0]);
}

[[gnu::always_inline]] inline void temper_words(const uint32_t* w, uint32_t* out, uint32_t n) {
  for (uint32_t i = 0; i < n; ++i) {
    uint32_t y = w[i];
    y ^= y >> 11;
    y ^= (y << 7) & 0x9d2c5680u;
    y ^= (y << 15) & 0xefc60000u;
    out[i] = y ^ (y >> 18);
  }
}

// GCC vectorises loops of this length only at -O3.
#if defined(__clang__)
#define CRESSET_VECTORISED
#else
#define CRESSET_VECTORISED [[gnu::optimize("O3")]]
#endif

#if defined(__x86_64__)
[[gnu::target("avx2")]] CRESSET_VECTORISED void twist_avx2(uint32_t* w) { twist_block(w); }
[[gnu::target("avx2")]] CRESSET_VECTORISED void temper_avx2(const uint32_t* w, uint32_t* out,
                                                            uint32_t n) {
  temper_words(w, out, n);
}

bool has_avx2() { return __builtin_cpu_supports("avx2"); }
#endif

CRESSET_VECTORISED void twist_plain(uint32_t* w) { twist_block(w); }
CRESSET_VECTORISED void temper_plain(const uint32_t* w, uint32_t* out, uint32_t n) {
  temper_words(w, out, n);
}

}  // namespace

void Generator::refill() {
#if defined(__x86_64__)
  if (has_avx2()) {
    twist_avx2(words_.data());
    next_ = 0;
    return;
  }
#endif
  twist_plain(words_.data());
  next_ = 0;
}

void Generator::random_words(uint32_t* out, int64_t n) {
  while (n > 0) {
    if (next_ == 0 || next_ == word_count) refill();
    uint32_t part = static_cast<uint32_t>(std::min<int64_t>(n, word_count - next_));
    auto temper = &temper_plain;
#if defined(__x86_64__)
    if (has_avx2()) temper = &temper_avx2;
#endif
    temper(words_.data() + next_, out, part);
    next_ += part;
    out += part;
    n -= part;
  }
}

double Generator::normal_double() {
  if (next_normal_double_) {
    const double cached = *next_normal_double_;
    next_normal_double_.reset();
    return cached;
  }
  const double u1 = uniform_double();
  const double u2 = uniform_double();
  const double radius = std::sqrt(-2.0 * std::log1p(-u2));
  const double theta = 2.0 * std::numbers::pi * u1;
  next_normal_double_ = radius * std::sin(theta);
  return radius * std::cos(theta);
}

std::vector<uint8_t> Generator::get_state() const {
  const std::lock_guard lock(mutex_);
  std::vector<uint8_t> bytes(state_bytes, 0);
  store<uint64_t>(bytes, seed_at, seed_);
  store<int32_t>(bytes, left_at, next_ == 0 ? 1 : static_cast<int32_t>(word_count + 1 - next_));
  store<int32_t>(bytes, seeded_at, 1);
  store<uint64_t>(bytes, next_at, next_);
  for (uint32_t i = 0; i < word_count; ++i) {
    store<uint64_t>(bytes, words_at + 8 * i, words_[i]);
  }
  store<double>(bytes, normal_double_at, next_normal_double_.value_or(0.0));
  store<int32_t>(bytes, has_normal_double_at, next_normal_double_.has_value());
  store<float>(bytes, normal_float_at, next_normal_float_.value_or(0.0f));
  store<uint8_t>(bytes, has_normal_float_at, next_normal_float_.has_value());
  return bytes;
}

void Generator::set_state(std::span<const uint8_t> bytes) {
  CHECK(bytes.size() == state_bytes, Value, "set_rng_state: expected a state of ", state_bytes,
        " bytes, got ", bytes.size());
  const auto left = load<int32_t>(bytes, left_at);
  const auto next = load<uint64_t>(bytes, next_at);
  const bool fresh = next == 0 && left == 1;
  const bool running =
      next >= 1 && next <= word_count && left == static_cast<int64_t>(word_count + 1 - next);
  CHECK(load<int32_t>(bytes, seeded_at) == 1 && (fresh || running), Value,
        "set_rng_state: expected a state of the CPU generator, got left ", left, " and next ",
        next);

  const std::lock_guard lock(mutex_);
  seed_ = load<uint64_t>(bytes, seed_at);
  next_ = static_cast<uint32_t>(next);
  for (uint32_t i = 0; i < word_count; ++i) {
    words_[i] = static_cast<uint32_t>(load<uint64_t>(bytes, words_at + 8 * i));
  }
  next_normal_double_.reset();
  next_normal_float_.reset();
  if (load<int32_t>(bytes, has_normal_double_at) != 0) {
    next_normal_double_ = load<double>(bytes, normal_double_at);
  }
  if (load<uint8_t>(bytes, has_normal_float_at) != 0) {
    next_normal_float_ = load<float>(bytes, normal_float_at);
  }
}

Generator& default_generator() {
  static Generator generator(entropy_seed());
  return generator;
}

}  // namespace cresset
