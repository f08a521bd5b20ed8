// Continuous distributions and yes-or-no draws; how many bits each takes is PyTorch's choice.
#include "core/tensor/distributions.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <numbers>

#include "core/tensor/box_muller.h"
#include "core/tensor/random_fill.h"

namespace cresset {
namespace {

using detail::Compute;
using detail::fill;
using detail::FloatElement;
using detail::GeneratorLock;

/// Uniform in [0, 1) with as many bits as T has digits.
template <FloatElement T> Compute<T> unit(Generator& generator) {
  if constexpr (std::is_same_v<T, double>) {
    return generator.uniform_double();
  } else {
    constexpr uint32_t range = 1u << std::numeric_limits<T>::digits;
    return static_cast<float>(generator.random() & (range - 1)) * (1.0f / range);
  }
}

template <FloatElement T>
void uniform(Generator& generator, T* out, int64_t n, double low, double high) {
  constexpr double largest = std::numeric_limits<T>::max();
  CHECK(low >= -largest && high <= largest && low <= high && high - low <= largest, Value,
        "uniform_: expected low <= high with low, high and high - low within ", dtype_of<T>,
        ", got [", low, ", ", high, ")");
  const GeneratorLock lock(generator.mutex());
  if (low == 0.0 && high == 1.0) return fill(out, n, [&] { return unit<T>(generator); });
  const Compute<T> base = static_cast<T>(low);
  const Compute<T> width = static_cast<T>(static_cast<T>(high) - base);
  fill(out, n, [&] { return std::fma(unit<T>(generator), width, base); });
}

double normal(Generator& generator, double mean, double std) {
  return std::fma(generator.normal_double(), std, mean);
}

template <FloatElement T>
void normal_blocks(Generator& generator, T* out, int64_t n, T mean, T std) {
  const auto draw = [&] { return unit<T>(generator); };
  fill(out, n, draw);
  detail::box_muller(out, n / 16, mean, std);
  if (n % 16 != 0) {
    // The last 16 are drawn anew, over what the full blocks left there.
    fill(out + n - 16, 16, draw);
    detail::box_muller(out + n - 16, 1, mean, std);
  }
}

}  // namespace

void fill_uniform(Generator& generator, DType dtype, void* out, int64_t n, double low,
                  double high) {
  if (is_complex(dtype)) return fill_uniform(generator, to_real(dtype), out, 2 * n, low, high);
  detail::visit_float("uniform_", dtype,
                      [&]<class T>() { uniform(generator, static_cast<T*>(out), n, low, high); });
}

void fill_normal(Generator& generator, DType dtype, void* out, int64_t n, double mean, double std,
                 bool contiguous) {
  CHECK(std >= 0.0, Value, "normal_: expected std >= 0, got ", std);
  if (is_complex(dtype)) {
    const double part = std / std::sqrt(2.0);
    return fill_normal(generator, to_real(dtype), out, 2 * n, mean, part, contiguous);
  }
  detail::visit_float("normal_", dtype, [&]<class T>() {
    const GeneratorLock lock(generator.mutex());
    T* data = static_cast<T*>(out);
    if (n >= 16 && contiguous) {
      normal_blocks(generator, data, n, static_cast<T>(mean), static_cast<T>(std));
    } else {
      fill(data, n, [&] { return normal(generator, mean, std); });
    }
  });
}

void fill_log_normal(Generator& generator, DType dtype, void* out, int64_t n, double mean,
                     double std) {
  CHECK(std > 0.0, Value, "log_normal_: expected std > 0, got ", std);
  detail::visit_float("log_normal_", dtype, [&]<class T>() {
    const GeneratorLock lock(generator.mutex());
    fill(static_cast<T*>(out), n, [&] { return std::exp(normal(generator, mean, std)); });
  });
}

void fill_exponential(Generator& generator, DType dtype, void* out, int64_t n, double lambda) {
  CHECK(lambda > 0.0, Value, "exponential_: expected lambda > 0, got ", lambda);
  detail::visit_float("exponential_", dtype, [&]<class T>() {
    const GeneratorLock lock(generator.mutex());
    detail::exponential(generator, static_cast<T*>(out), n, lambda);
  });
}

void fill_cauchy(Generator& generator, DType dtype, void* out, int64_t n, double median,
                 double sigma) {
  CHECK(sigma > 0.0, Value, "cauchy_: expected sigma > 0, got ", sigma);
  detail::visit_float("cauchy_", dtype, [&]<class T>() {
    const GeneratorLock lock(generator.mutex());
    fill(static_cast<T*>(out), n, [&] {
      const double slope = std::tan(std::numbers::pi * (generator.uniform_double() - 0.5));
      return std::fma(sigma, slope, median);
    });
  });
}

void fill_geometric(Generator& generator, DType dtype, void* out, int64_t n, double p) {
  CHECK(p > 0.0 && p < 1.0, Value, "geometric_: expected p in (0, 1), got ", p);
  detail::visit_number("geometric_", dtype, [&]<class T>() {
    const GeneratorLock lock(generator.mutex());
    const double log_failure = std::log1p(-p);
    fill(static_cast<T*>(out), n, [&] {
      const double trials = std::ceil(std::log(generator.uniform_double()) / log_failure);
      if constexpr (std::integral<T>) {
        // A draw of 0 gives infinity, which no integer holds.
        return static_cast<int64_t>(std::min(trials, 0x1p62));
      } else {
        return trials;
      }
    });
  });
}

namespace {

/// The least integer k for which k / 2^53 is not below p.
uint64_t bernoulli_limit(double p) { return static_cast<uint64_t>(std::ceil(p * 0x1p53)); }

// out[i] = uniform_double() < p, decided on the integers that the doubles are made of.
template <class T>
[[gnu::always_inline]] inline void compare_words(const uint64_t* words, T* out, int64_t n,
                                                 uint64_t limit, T yes, T no) {
  for (int64_t i = 0; i < n; ++i) {
    // The first of two draws is the upper half; it lies in the lower half of the pair.
    uint64_t bits = (words[i] << 32 | words[i] >> 32) & 0x1fffffffffffffu;
    out[i] = static_cast<int64_t>(bits) < static_cast<int64_t>(limit) ? yes : no;
  }
}

#if defined(__x86_64__)
template <class T>
[[gnu::target("avx2"), gnu::optimize("O3")]] void compare_avx2(const uint64_t* words, T* out,
                                                               int64_t n, uint64_t limit, T yes,
                                                               T no) {
  compare_words(words, out, n, limit, yes, no);
}
#endif
template <class T>
void compare_plain(const uint64_t* words, T* out, int64_t n, uint64_t limit, T yes, T no) {
  compare_words(words, out, n, limit, yes, no);
}

template <class T> void bernoulli_numbers(Generator& generator, T* out, int64_t n, double p) {
  static_assert(std::endian::native == std::endian::little);
  constexpr int64_t block = 2048;
  alignas(64) uint64_t words[block];
  auto compare = &compare_plain<T>;
#if defined(__x86_64__)
  if (__builtin_cpu_supports("avx2")) compare = &compare_avx2<T>;
#endif
  const uint64_t limit = bernoulli_limit(p);
  const T yes = static_cast<T>(1.0f), no = static_cast<T>(0.0f);
  for (int64_t done = 0; done < n; done += block) {
    int64_t count = std::min(block, n - done);
    generator.random_words(reinterpret_cast<uint32_t*>(words), 2 * count);
    compare(words, out + done, count, limit, yes, no);
  }
}

}  // namespace

void fill_bernoulli(Generator& generator, DType dtype, void* out, int64_t n, double p) {
  CHECK(p >= 0.0 && p <= 1.0, Value, "bernoulli_: expected p in [0, 1], got ", p);
  detail::visit_real("bernoulli_", dtype, [&]<class T>() {
    const GeneratorLock lock(generator.mutex());
    bernoulli_numbers(generator, static_cast<T*>(out), n, p);
  });
}

namespace {

template <class T, FloatElement P>
void bernoulli(Generator& generator, T* out, int64_t n, const P* p) {
  for (int64_t i = 0; i < n; ++i) {
    CHECK(p[i] >= 0 && p[i] <= 1, Value, "bernoulli_: expected p in [0, 1], got ",
          static_cast<double>(p[i]));
  }
  const GeneratorLock lock(generator.mutex());
  fill(out, n, [&] {
    if constexpr (std::is_same_v<P, double>) {
      return generator.uniform_double() < *p++;
    } else {
      return generator.uniform_float() < static_cast<float>(*p++);
    }
  });
}

}  // namespace

void fill_bernoulli(Generator& generator, DType dtype, void* out, int64_t n, DType p_dtype,
                    const void* p) {
  detail::visit_real("bernoulli_", dtype, [&]<class T>() {
    detail::visit_float("bernoulli_", p_dtype, [&]<class P>() {
      bernoulli(generator, static_cast<T*>(out), n, static_cast<const P*>(p));
    });
  });
}

}  // namespace cresset
