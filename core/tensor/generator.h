// The random generator of the CPU: Mersenne Twister with PyTorch's seeding, cache and saved state.
#pragma once

#include <array>
#include <cstdint>
#include <mutex>
#include <optional>
#include <span>
#include <vector>

namespace cresset {

/// Draws PyTorch's CPU numbers after the same seed (Matsumoto and Nishimura 1998, MT19937).
/// The members that draw do not lock: whoever draws holds `mutex()`, as the fills of
/// core/tensor/distributions.h do; seeding and the state functions lock by themselves.
class Generator {
 public:
  static constexpr uint64_t default_seed = 67280421310721;
  static constexpr size_t state_bytes = 5056;

  explicit Generator(uint64_t seed = default_seed);

  /// Starts over: only the low 32 bits choose the sequence, `initial_seed` keeps all 64.
  void manual_seed(uint64_t seed);
  /// Seeds from the system's entropy and returns the seed, which is below 2^53.
  uint64_t seed();
  uint64_t initial_seed() const;

  /// The layout of `torch.get_rng_state()`: 5056 bytes, interchangeable with PyTorch.
  std::vector<uint8_t> get_state() const;
  /// Throws Value when the bytes are not such a state; the generator is then unchanged.
  void set_state(std::span<const uint8_t> bytes);

  std::mutex& mutex() const { return mutex_; }

  uint32_t random() {
    if (next_ == 0 || next_ == word_count) refill();
    uint32_t y = words_[next_++];
    y ^= y >> 11;
    y ^= (y << 7) & 0x9d2c5680u;
    y ^= (y << 15) & 0xefc60000u;
    return y ^ (y >> 18);
  }
  /// n draws of random() at once: several times faster for long fills.
  void random_words(uint32_t* out, int64_t n);
  /// Two 32-bit draws, the first one in the upper half.
  uint64_t random64() {
    const uint64_t high = random();
    return high << 32 | random();
  }
  /// Uniform in [0, 1), a multiple of 2^-24, from one 32-bit draw.
  float uniform_float() { return static_cast<float>(random() & 0xffffffu) * 0x1p-24f; }
  /// Uniform in [0, 1), a multiple of 2^-53, from one 64-bit draw.
  double uniform_double() { return static_cast<double>(random64() & 0x1fffffffffffffu) * 0x1p-53; }
  /// Standard normal by Box and Muller; each second call returns what the first one left over.
  double normal_double();

 private:
  static constexpr uint32_t word_count = 624;

  void seed_words(uint64_t seed);
  void refill();

  uint64_t seed_ = 0;
  /// Words used of the current block; 0 right after seeding, when no block is made yet.
  uint32_t next_ = 0;
  std::array<uint32_t, word_count> words_;
  std::optional<double> next_normal_double_;
  /// Never drawn from on the CPU; kept so that a foreign state survives a round trip.
  std::optional<float> next_normal_float_;
  mutable std::mutex mutex_;
};

/// The generator behind `manual_seed`; seeded from the system's entropy on first use.
Generator& default_generator();

}  // namespace cresset
