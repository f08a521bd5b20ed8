// Integer draws: ranges, permutations, counts and categories.
#include <algorithm>
#include <cmath>
#include <span>
#include <utility>
#include <vector>

#include "core/tensor/distributions.h"
#include "core/tensor/random_fill.h"

namespace cresset {
namespace {

using detail::Compute;
using detail::fill;
using detail::FloatElement;
using detail::GeneratorLock;
using detail::RealElement;

/// The bound that PyTorch uses for a float type: `edge`, or when its neighbour on the side of
/// `direction` (+1 or -1, into the range) rounds over it, one unit in the last place inside.
template <FloatElement T> int64_t move_inside(int64_t edge, int direction) {
  if (edge == std::numeric_limits<int64_t>::max() && direction > 0) return edge;
  const int64_t neighbour = edge + direction;
  const double value = static_cast<T>(neighbour);
  if (std::abs(value) >= 0x1p63) return edge;
  const auto rounded = static_cast<int64_t>(value);
  if (direction > 0 ? rounded >= edge : rounded < edge) return edge;
  const int exponent = std::ilogb(static_cast<double>(neighbour));
  return rounded + direction * (int64_t{1} << (exponent - std::numeric_limits<T>::digits + 1));
}

struct IntRange {
  int64_t low;
  /// The largest member.
  int64_t last;
};

template <RealElement T> IntRange randint_range(int64_t low, std::optional<int64_t> high) {
  if (high) {
    CHECK(low < *high, Value, "random_: expected low < high, got [", low, ", ", *high, ")");
  }
  IntRange range{low, high ? *high - 1 : 0};
  bool representable = true;
  if constexpr (FloatElement<T>) {
    range.low = move_inside<T>(low, 1);
    range.last =
        high ? move_inside<T>(*high, -1) - 1 : int64_t{1} << std::numeric_limits<T>::digits;
    constexpr double largest = std::numeric_limits<T>::max();
    representable =
        static_cast<double>(range.low) >= -largest && static_cast<double>(range.last) <= largest;
  } else {
    constexpr int64_t largest = std::numeric_limits<T>::max();
    if (!high) range.last = largest;
    representable = range.low >= std::numeric_limits<T>::lowest() && range.last <= largest;
  }
  CHECK(representable && range.low <= range.last, Value, "random_: expected bounds within ",
        dtype_of<T>, ", got [", range.low, ", ", range.last, "]");
  return range;
}

template <RealElement T>
void randint(Generator& generator, T* out, int64_t n, int64_t low, std::optional<int64_t> high) {
  if (low == std::numeric_limits<int64_t>::lowest() && !high) {
    CHECK(sizeof(T) == 8 || (FloatElement<T> && !std::is_same_v<T, Half>), Value,
          "random_: expected low within ", dtype_of<T>, ", got ", low);
    const GeneratorLock lock(generator.mutex());
    return fill(out, n, [&] { return static_cast<int64_t>(generator.random64()); });
  }
  const IntRange range = randint_range<T>(low, high);
  // Unsigned arithmetic, since the width of an int64 range may exceed int64.
  const uint64_t base = static_cast<uint64_t>(range.low);
  const uint64_t width = static_cast<uint64_t>(range.last) - base + 1;
  const GeneratorLock lock(generator.mutex());
  // PyTorch takes 64 bits where 32 would favour some numbers by more than 1/16.
  if (width >= uint64_t{1} << 28) {
    fill(out, n, [&] { return static_cast<int64_t>(generator.random64() % width + base); });
  } else {
    const auto narrow = static_cast<uint32_t>(width);
    fill(out, n, [&] { return static_cast<int64_t>(generator.random() % narrow + base); });
  }
}

template <RealElement T> void random(Generator& generator, T* out, int64_t n) {
  const GeneratorLock lock(generator.mutex());
  if constexpr (std::is_same_v<T, double>) {
    fill(out, n, [&] { return generator.random64() % ((uint64_t{1} << 53) + 1); });
  } else if constexpr (FloatElement<T>) {
    constexpr uint32_t width = (1u << std::numeric_limits<T>::digits) + 1;
    fill(out, n, [&] { return static_cast<float>(generator.random() % width); });
  } else {
    constexpr auto mask = static_cast<uint64_t>(std::numeric_limits<T>::max());
    fill(out, n,
         [&] { return (sizeof(T) == 8 ? generator.random64() : generator.random()) & mask; });
  }
}

template <RealElement T> void randperm(Generator& generator, T* out, int64_t n) {
  const GeneratorLock lock(generator.mutex());
  for (int64_t i = 0; i < n; ++i) out[i] = static_cast<T>(i);
  // PyTorch takes 64 bits where 32 would favour some positions by more than 1/20.
  const bool wide = n >= std::numeric_limits<uint32_t>::max() / 20;
  for (int64_t i = 0; i < n - 1; ++i) {
    const uint64_t draw = wide ? generator.random64() : generator.random();
    std::swap(out[i], out[i + static_cast<int64_t>(draw % static_cast<uint64_t>(n - i))]);
  }
}

}  // namespace

void fill_randint(Generator& generator, DType dtype, void* out, int64_t n, int64_t low,
                  std::optional<int64_t> high) {
  detail::visit_real("random_", dtype,
                     [&]<class T>() { randint(generator, static_cast<T*>(out), n, low, high); });
}

std::pair<int64_t, uint64_t> integer_range(DType dtype, int64_t low, std::optional<int64_t> high) {
  IntRange range{0, 0};
  detail::visit_real("random_", dtype, [&]<class T>() { range = randint_range<T>(low, high); });
  return {range.low, static_cast<uint64_t>(range.last) - static_cast<uint64_t>(range.low) + 1};
}

void fill_random(Generator& generator, DType dtype, void* out, int64_t n) {
  detail::visit_real("random_", dtype,
                     [&]<class T>() { random(generator, static_cast<T*>(out), n); });
}

void fill_randperm(Generator& generator, DType dtype, void* out, int64_t n) {
  CHECK(n >= 0, Value, "randperm: expected n >= 0, got ", n);
  detail::visit_number("randperm", dtype,
                       [&]<class T>() { randperm(generator, static_cast<T*>(out), n); });
}

namespace {

/// Rates of 10 and more: transformed rejection, "PTRS" of W. Hoermann, The transformed rejection
/// method for generating Poisson random variables, 1993.
int64_t poisson_by_rejection(Generator& generator, double rate) {
  const double b = 0.931 + 2.53 * std::sqrt(rate);
  const double a = -0.059 + 0.02483 * b;
  const double inverse_alpha = 1.1239 + 1.1328 / (b - 3.4);
  const double inside = 0.9277 - 3.6224 / (b - 2);
  const double log_rate = std::log(rate);
  while (true) {
    const double u = generator.uniform_double() - 0.5;
    const double v = generator.uniform_double();
    const double us = 0.5 - std::abs(u);
    const double k = std::floor((2 * a / us + b) * u + rate + 0.43);
    if (us >= 0.07 && v <= inside) return static_cast<int64_t>(k);
    if (k < 0 || (us < 0.013 && v > us)) continue;
    const double bound = std::log(v) + std::log(inverse_alpha) - std::log(a / (us * us) + b);
    if (bound <= -rate + k * log_rate - std::lgamma(k + 1)) return static_cast<int64_t>(k);
  }
}

/// Small rates: uniform factors until their product falls to exp(-rate).
int64_t poisson_by_products(Generator& generator, double rate) {
  const double floor = std::exp(-rate);
  double product = generator.uniform_double();
  int64_t count = 0;
  for (; product > floor; ++count) product *= generator.uniform_double();
  return count;
}

int64_t poisson(Generator& generator, double rate) {
  if (rate == 0.0) return 0;
  return rate >= 10.0 ? poisson_by_rejection(generator, rate)
                      : poisson_by_products(generator, rate);
}

}  // namespace

void fill_poisson(Generator& generator, DType dtype, void* out, const void* rate, int64_t n) {
  detail::visit_float("poisson", dtype, [&]<class T>() {
    const T* rates = static_cast<const T*>(rate);
    for (int64_t i = 0; i < n; ++i) {
      // Beyond 2^62 a count leaves int64.
      CHECK(rates[i] >= 0 && rates[i] <= 0x1p62f, Value, "poisson: expected rates >= 0, got ",
            static_cast<double>(rates[i]));
    }
    const GeneratorLock lock(generator.mutex());
    fill(static_cast<T*>(out), n,
         [&] { return poisson(generator, static_cast<double>(*rates++)); });
  });
}

namespace {

template <FloatElement T> void check_weights(const T* weights, int64_t rows, int64_t categories) {
  for (int64_t r = 0; r < rows; ++r) {
    double sum = 0.0;
    for (int64_t c = 0; c < categories; ++c) {
      const double weight = weights[r * categories + c];
      CHECK(weight >= 0.0 && std::isfinite(weight), Value,
            "multinomial: expected finite weights >= 0, got ", weight);
      sum += weight;
    }
    CHECK(sum > 0.0, Value, "multinomial: expected a positive sum of weights in row ", r, ", got ",
          sum);
  }
}

/// Inverts the cumulative distribution by binary search, one 64-bit draw per sample.
template <FloatElement T>
void multinomial_row(Generator& generator, int64_t* out, const T* weights, int64_t samples,
                     std::vector<Compute<T>>& cumulative) {
  Compute<T> sum = 0;
  for (size_t c = 0; c < cumulative.size(); ++c) cumulative[c] = sum += weights[c];
  for (auto& value : cumulative) value /= sum;
  cumulative.back() = 1;
  const auto below = [](Compute<T> value, double limit) { return value < limit; };
  fill(out, samples, [&] {
    const double draw = generator.uniform_double();
    return std::lower_bound(cumulative.begin(), cumulative.end(), draw, below) - cumulative.begin();
  });
}

/// The `samples` largest of weight / Exp(1), an exponential race that equals in law drawing one by
/// one without replacement; `race` comes filled with the exponential numbers.
template <FloatElement T>
void multinomial_race(int64_t* out, const T* weights, int64_t samples, std::span<const T> race) {
  using Entry = std::pair<T, int64_t>;
  std::vector<Entry> entries(race.size());
  for (size_t c = 0; c < race.size(); ++c) {
    entries[c] = {static_cast<T>(weights[c] / race[c]), static_cast<int64_t>(c)};
  }
  // NaN, of 0 / 0, counts as the largest. The order of equal keys depends on the algorithm, which
  // is therefore chosen as PyTorch's topk chooses it.
  const auto larger = [](const Entry& a, const Entry& b) {
    const auto x = static_cast<Compute<T>>(a.first);
    const auto y = static_cast<Compute<T>>(b.first);
    return (std::isnan(x) && !std::isnan(y)) || x > y;
  };
  const auto begin = entries.begin();
  if (samples == 1) {
    std::iter_swap(begin, std::min_element(begin, entries.end(), larger));
  } else if (samples * 64 <= static_cast<int64_t>(entries.size())) {
    std::partial_sort(begin, begin + samples, entries.end(), larger);
  } else {
    std::nth_element(begin, begin + samples - 1, entries.end(), larger);
    std::sort(begin, begin + samples - 1, larger);
  }
  for (int64_t i = 0; i < samples; ++i) out[i] = entries[static_cast<size_t>(i)].second;
}

template <FloatElement T>
void multinomial(Generator& generator, int64_t* out, const T* weights, int64_t rows,
                 int64_t categories, int64_t samples) {
  std::vector<T> race(static_cast<size_t>(categories));
  for (int64_t r = 0; r < rows; ++r) {
    detail::exponential(generator, race.data(), categories, 1.0);
    multinomial_race<T>(out + r * samples, weights + r * categories, samples, race);
  }
}

template <FloatElement T>
void multinomial_with_replacement(Generator& generator, int64_t* out, const T* weights,
                                  int64_t rows, int64_t categories, int64_t samples) {
  std::vector<Compute<T>> cumulative(static_cast<size_t>(categories));
  for (int64_t r = 0; r < rows; ++r) {
    multinomial_row(generator, out + r * samples, weights + r * categories, samples, cumulative);
  }
}

}  // namespace

void fill_multinomial(Generator& generator, int64_t* out, DType dtype, const void* weights,
                      int64_t rows, int64_t categories, int64_t samples, bool replacement) {
  CHECK(samples > 0, Value, "multinomial: expected at least 1 sample, got ", samples);
  CHECK(replacement || samples <= categories, Value, "multinomial: expected at most ", categories,
        " samples without replacement, got ", samples);
  detail::visit_float("multinomial", dtype, [&]<class T>() {
    const T* values = static_cast<const T*>(weights);
    check_weights(values, rows, categories);
    const GeneratorLock lock(generator.mutex());
    // One sample is the same either way; PyTorch then takes the race, whose draws differ.
    if (replacement && samples > 1) {
      multinomial_with_replacement(generator, out, values, rows, categories, samples);
    } else {
      multinomial(generator, out, values, rows, categories, samples);
    }
  });
}

}  // namespace cresset
