// The CPU's random numbers against those that PyTorch 2.11 drew after the same seed, bit for bit.
#include "core/tensor/generator.h"

#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <functional>
#include <vector>

#include "core/base/error.h"
#include "core/tensor/box_muller.h"
#include "core/tensor/distributions.h"

namespace cresset {
namespace {

template <class T>
std::vector<T> drawn(uint64_t seed, int64_t n, const std::function<void(Generator&, void*)>& fill) {
  Generator generator(seed);
  // std::vector<bool> has no memory to fill.
  static_assert(!std::is_same_v<T, bool>);
  std::vector<T> out(static_cast<size_t>(n));
  fill(generator, out.data());
  return out;
}

uint64_t hash_bytes(const void* data, size_t size) {
  uint64_t hash = 0xcbf29ce484222325u;  // FNV-1a
  for (size_t i = 0; i < size; ++i) {
    hash = (hash ^ static_cast<const uint8_t*>(data)[i]) * 0x100000001b3u;
  }
  return hash;
}

/// Hash of n elements filled after seed 11.
uint64_t hash_of(DType dtype, int64_t n, const std::function<void(Generator&, void*)>& fill) {
  Generator generator(11);
  std::vector<uint8_t> bytes(static_cast<size_t>(n) * itemsize(dtype));
  fill(generator, bytes.data());
  return hash_bytes(bytes.data(), bytes.size());
}

template <class T> void expect_start(const std::vector<T>& values, const std::vector<T>& start) {
  ASSERT_GE(values.size(), start.size());
  for (size_t i = 0; i < start.size(); ++i) EXPECT_EQ(values[i], start[i]) << "at " << i;
}

// First numbers of torch.manual_seed(42) and torch.rand / torch.randn.
TEST(Generator, UniformFloats) {
  const auto f32 = drawn<float>(
      42, 17, [](Generator& g, void* out) { fill_uniform(g, DType::Float32, out, 17, 0, 1); });
  expect_start(f32, {0.88226926f, 0.91500396f, 0.38286376f, 0.95930564f, 0.3904482f, 0.60089535f});
  const auto f64 = drawn<double>(
      42, 5, [](Generator& g, void* out) { fill_uniform(g, DType::Float64, out, 5, 0, 1); });
  expect_start(f64, {0.05815448596142969, 0.06291016742457756, 0.12358607277440903,
                     0.05258016436107704, 0.5261718968547618});
  const auto scaled = drawn<float>(
      4, 20, [](Generator& g, void* out) { fill_uniform(g, DType::Float32, out, 20, -2, 3); });
  expect_start(scaled, {0.7981931f, 0.795462f, -1.5427158f, -0.949984f, -1.9640272f});
}

TEST(Generator, NormalBelowSixteenIsDrawnInDouble) {
  const auto f32 = drawn<float>(
      42, 5, [](Generator& g, void* out) { fill_normal(g, DType::Float32, out, 5, 0, 1); });
  expect_start(f32, {0.33669037f, 0.1288094f, 0.23446237f, 0.23033303f, -1.1228564f});
  const auto f64 = drawn<double>(
      42, 5, [](Generator& g, void* out) { fill_normal(g, DType::Float64, out, 5, 0, 1); });
  expect_start(f64, {0.33669035438385886, 0.1288094051365897, 0.23446236336153173,
                     0.2303330279146119, -1.1228563767381703});
}

TEST(Generator, NormalFromSixteenOnIsDrawnInBlocksAndTheTailAnew) {
  const auto f32 = drawn<float>(
      42, 17, [](Generator& g, void* out) { fill_normal(g, DType::Float32, out, 17, 0, 1); });
  expect_start(f32, {1.9269153f, -0.15959747f, -0.49739754f, 0.43958926f, -0.75813115f, 1.0783176f,
                     0.80080056f, 1.6806206f, 0.3558599f, 1.2964228f, 0.6104665f, 1.3347378f,
                     -0.23162432f, 0.04175949f, -0.2515753f, 0.8598585f, -0.30972677f});
  const auto f64 = drawn<double>(
      42, 17, [](Generator& g, void* out) { fill_normal(g, DType::Float64, out, 17, 0, 1); });
  expect_start(f64, {0.2995562877502637, 1.504572275678796, 1.2715909667771088, 0.618669993885617});
  EXPECT_EQ(f64.back(), 0.2494118796915765);
  const auto shifted = drawn<float>(
      4, 20, [](Generator& g, void* out) { fill_normal(g, DType::Float32, out, 20, 1.5, 2); });
  expect_start(shifted, {-0.382833f, 4.0264935f, 1.1324612f, 1.8010108f, 3.7792313f});
}

TEST(Generator, WeightsOfLayers) {
  // torch.manual_seed(0); nn.Linear(10, 5).weight is uniform within 1 / sqrt(10).
  const double bound = 1 / std::sqrt(10.0);
  const auto linear = drawn<float>(0, 50, [&](Generator& g, void* out) {
    fill_uniform(g, DType::Float32, out, 50, -bound, bound);
  });
  expect_start(linear, {-0.0023675405f, 0.16963835f, -0.26026973f, -0.23272435f, -0.1217965f});
  EXPECT_EQ(linear.back(), -0.011410252f);
  const auto embedding = drawn<float>(
      0, 40, [](Generator& g, void* out) { fill_normal(g, DType::Float32, out, 40, 0, 1); });
  expect_start(embedding, {-1.1258398f, -1.1523602f, -0.25057858f, -0.4338788f, 0.84871036f});
  EXPECT_EQ(embedding.back(), 1.7066433f);
}

TEST(Generator, Integers) {
  const auto small = drawn<int64_t>(
      7, 50, [](Generator& g, void* out) { fill_randint(g, DType::Int64, out, 50, 0, 100); });
  expect_start(small, {15, 92, 21, 86, 83, 47, 87, 79, 88, 61, 58, 31, 8, 17, 62, 30, 66, 72});
  const auto large = drawn<int64_t>(7, 20, [](Generator& g, void* out) {
    fill_randint(g, DType::Int64, out, 20, -5, int64_t{1} << 40);
  });
  expect_start(large, {752589289487, 108678733351, 291927467744, 650436095315, 396377856283});
  const auto order = drawn<int64_t>(
      9, 10, [](Generator& g, void* out) { fill_randperm(g, DType::Int64, out, 10); });
  expect_start(order, {0, 5, 8, 7, 6, 2, 9, 1, 4, 3});
}

TEST(Generator, BernoulliOfTensorsAndOfNumbersDrawDifferently) {
  const std::vector<float> p(40, 0.3f);
  const auto by_tensor = drawn<float>(3, 40, [&](Generator& g, void* out) {
    fill_bernoulli(g, DType::Float32, out, 40, DType::Float32, p.data());
  });
  expect_start(by_tensor, {1, 1, 1, 1, 0, 1, 0, 0, 0, 0, 0, 0, 1, 0, 1, 0, 1, 0, 0, 0, 0, 1, 0, 1});
  // What dropout(ones(40), 0.25) keeps.
  const auto kept = drawn<float>(
      5, 40, [](Generator& g, void* out) { fill_bernoulli(g, DType::Float32, out, 40, 0.75); });
  expect_start(kept, {1, 1, 1, 1, 1, 0, 1, 1, 0, 1, 1, 1, 0, 1, 1, 1, 1, 1, 0, 1, 1, 1, 1, 1});
}

TEST(Generator, Multinomial) {
  const std::array<float, 4> weights{0.1f, 0.2f, 0.3f, 0.4f};
  const auto with = drawn<int64_t>(6, 20, [&](Generator& g, void* out) {
    fill_multinomial(g, static_cast<int64_t*>(out), DType::Float32, weights.data(), 1, 4, 20, true);
  });
  expect_start(with, {2, 3, 3, 2, 2, 3, 0, 3, 3, 3, 2, 0, 3, 2, 3, 3, 0, 1, 2, 0});
  const auto without = drawn<int64_t>(6, 3, [&](Generator& g, void* out) {
    fill_multinomial(g, static_cast<int64_t*>(out), DType::Float32, weights.data(), 1, 4, 3, false);
  });
  expect_start(without, {3, 2, 0});
  // A single sample takes the same draws with and without replacement.
  for (const bool replacement : {false, true}) {
    std::vector<float> rows(150);
    Generator maker(1);
    fill_uniform(maker, DType::Float32, rows.data(), 150, 0, 1);
    for (size_t i = 0; i < rows.size(); ++i) rows[i] = i % 50 % 7 == 0 ? 0.0f : rows[i];
    const auto single = drawn<int64_t>(11, 3, [&](Generator& g, void* out) {
      fill_multinomial(g, static_cast<int64_t*>(out), DType::Float32, rows.data(), 3, 50, 1,
                       replacement);
    });
    expect_start(single, {15, 48, 16});
  }
}

TEST(Generator, Poisson) {
  const std::vector<float> rates{0.0f,          2.6666667461f, 5.3333334923f, 8.0000009537f,
                                 10.666666985f, 13.333333969f, 16.000001907f, 18.666667938f,
                                 21.333332062f, 23.999998093f, 26.666664124f, 29.333333969f,
                                 31.999998093f, 34.666667938f, 37.333332062f, 40.0f};
  const auto counts = drawn<float>(11, 16, [&](Generator& g, void* out) {
    fill_poisson(g, DType::Float32, out, rates.data(), 16);
  });
  expect_start(counts, {0, 4, 2, 7, 18, 20, 15, 20, 16, 21, 30, 25, 31, 33, 30, 31});
}

struct LongCase {
  const char* label;
  DType dtype;
  int64_t n;
  uint64_t hash;
  std::function<void(Generator&, DType, void*, int64_t)> fill;
};

// Hashes of the bytes of tensors that PyTorch 2.11 filled after torch.manual_seed(11).
const std::vector<LongCase>& long_cases() {
  using G = Generator;
  constexpr auto F16 = DType::Float16, BF16 = DType::BFloat16, F32 = DType::Float32,
                 F64 = DType::Float64, I8 = DType::Int8, I64 = DType::Int64;
  const auto uniform = [](G& g, DType d, void* o, int64_t n) {
    fill_uniform(g, d, o, n, -1.25, 2.5);
  };
  const auto normal = [](G& g, DType d, void* o, int64_t n) { fill_normal(g, d, o, n, 0.7, 1.3); };
  const auto exponential = [](G& g, DType d, void* o, int64_t n) {
    fill_exponential(g, d, o, n, 1.7);
  };
  const auto bernoulli = [](G& g, DType d, void* o, int64_t n) {
    fill_bernoulli(g, d, o, n, 0.35);
  };
  const auto full = [](G& g, DType d, void* o, int64_t n) { fill_random(g, d, o, n); };
  const auto randint = [](int64_t low, std::optional<int64_t> high) {
    return [=](G& g, DType d, void* o, int64_t n) { fill_randint(g, d, o, n, low, high); };
  };
  constexpr int64_t lowest = std::numeric_limits<int64_t>::lowest();
  static const std::vector<LongCase> cases = {
      {"uniform_", F32, 20003, 0x92873164e0cac366, uniform},
      {"uniform_", F64, 20003, 0xf738e45d122957af, uniform},
      {"uniform_", F16, 1003, 0x325c4f5cf8d17485, uniform},
      {"uniform_", BF16, 1003, 0xbbf9e10c7ccfad80, uniform},
      {"normal_", F32, 20003, 0xd43d20acfe465ab1, normal},
      {"normal_", F64, 20003, 0xa64ea0d6f828c278, normal},
      {"normal_", F16, 1003, 0x3e3c202923cd6c1c, normal},
      {"normal_", BF16, 1003, 0x4e9122764893e50d, normal},
      {"log_normal_", F32, 20003, 0x72cd8265d678ec73,
       [](G& g, DType d, void* o, int64_t n) { fill_log_normal(g, d, o, n, 0.2, 0.5); }},
      {"exponential_", F32, 20003, 0x006d1310fdfd2a1f, exponential},
      {"exponential_", F64, 20003, 0x3caf62ca6868768a, exponential},
      {"cauchy_", F32, 20003, 0x8f547017daef8305,
       [](G& g, DType d, void* o, int64_t n) { fill_cauchy(g, d, o, n, 0.3, 2); }},
      {"geometric_", I64, 1003, 0x91d691a3ec6b4b8a,
       [](G& g, DType d, void* o, int64_t n) { fill_geometric(g, d, o, n, 0.2); }},
      {"bernoulli_", F32, 20003, 0x72cd238d126dd165, bernoulli},
      {"bernoulli_", DType::Bool, 1003, 0x3945db09df255ffe, bernoulli},
      {"random_()", F16, 1003, 0x3e9f09d1f995f045, full},
      {"random_()", I64, 1003, 0x957924c835773e63, full},
      {"random_(0, 2^28 - 1)", I64, 1003, 0x6443f275a28c022c, randint(0, (1 << 28) - 1)},
      {"random_(-7, 2^28 - 7)", I64, 1003, 0x2318a312afa46cea, randint(-7, (1 << 28) - 7)},
      {"random_(5, 2^40)", I64, 1003, 0x9fcaca0477d35d2f, randint(5, int64_t{1} << 40)},
      {"random_(-2^63, None)", I64, 1003, 0xb5d58985a4975f63, randint(lowest, std::nullopt)},
      {"random_(5, None)", I8, 1003, 0xa718775ca82c799e, randint(5, std::nullopt)},
      {"randperm", I64, 50000, 0xe61797a5852a94dd,
       [](G& g, DType d, void* o, int64_t n) { fill_randperm(g, d, o, n); }},
  };
  return cases;
}

TEST(Generator, LongFillsHaveEveryBitOfPyTorch) {
  for (const LongCase& c : long_cases()) {
    EXPECT_EQ(hash_of(c.dtype, c.n, [&](Generator& g, void* out) { c.fill(g, c.dtype, out, c.n); }),
              c.hash)
        << c.label << ' ' << c.dtype;
  }
}

TEST(Generator, FloatAndDoubleDrawsShareOneStream) {
  Generator generator(11);
  std::vector<double> all;
  const auto append = [&]<class T>(T, bool is_normal, int64_t n) {
    std::vector<T> values(static_cast<size_t>(n));
    if (is_normal) {
      fill_normal(generator, dtype_of<T>, values.data(), n, 0, 1);
    } else {
      fill_uniform(generator, dtype_of<T>, values.data(), n, 0, 1);
    }
    all.insert(all.end(), values.begin(), values.end());
  };
  append(float{}, true, 3);
  append(double{}, true, 3);
  append(float{}, true, 20);
  append(float{}, true, 5);
  append(float{}, false, 3);
  append(double{}, true, 2);
  append(double{}, false, 1);
  EXPECT_EQ(hash_bytes(all.data(), all.size() * sizeof(double)), 0x09eadbfaa349a90du);
}

TEST(Generator, SameNumbersWithoutFusedMultiplyAddHardware) {
  Generator generator(1);
  std::vector<float> fast(16 * 1000);
  fill_uniform(generator, DType::Float32, fast.data(), 16000, 0, 1);
  std::vector<float> plain = fast;
  detail::box_muller(fast.data(), 1000, 0.5f, 2.0f);
  for (size_t b = 0; b < 1000; ++b) detail::box_muller_lanes(plain.data() + 16 * b, 0.5f, 2.0f);
  EXPECT_EQ(fast, plain);
}

// Hashes of torch.get_rng_state() after torch.manual_seed(seed) and torch.randn(draws).
TEST(Generator, StateHasPyTorchsLayout) {
  struct Case {
    uint64_t seed;
    int64_t draws;
    uint64_t hash;
  };
  for (const Case& c :
       {Case{0, 0, 0xd383c07ab3df60e4}, Case{0, 5, 0x929ce7b9d64a122b},
        Case{~uint64_t{0}, 624, 0x3b05f4f9763d4f73}, Case{4294967303, 21, 0x552ed25a4998be40}}) {
    Generator generator(c.seed);
    std::vector<float> values(static_cast<size_t>(c.draws));
    fill_normal(generator, DType::Float32, values.data(), c.draws, 0, 1);
    const std::vector<uint8_t> state = generator.get_state();
    EXPECT_EQ(state.size(), 5056u);
    EXPECT_EQ(hash_bytes(state.data(), state.size()), c.hash) << c.seed << ' ' << c.draws;
  }
}

TEST(Generator, StateContinuesTheStream) {
  Generator first(3);
  first.normal_double();
  Generator second(99);
  second.set_state(first.get_state());
  EXPECT_EQ(second.initial_seed(), 3u);
  EXPECT_EQ(first.normal_double(), second.normal_double());
  EXPECT_EQ(first.random64(), second.random64());
  first.manual_seed(3);
  second.manual_seed(3);
  EXPECT_EQ(first.get_state(), second.get_state());
}

ErrorKind kind_of(const std::function<void()>& call) {
  try {
    call();
  } catch (const Error& error) {
    return error.kind;
  }
  return ErrorKind::Internal;
}

TEST(Generator, MistakesAreErrorsAndDrawNothing) {
  Generator g(5);
  const auto before = g.get_state();
  std::vector<double> out(4, 7.0);
  void* data = out.data();
  constexpr auto F64 = DType::Float64;
  const std::vector<float> bad{0.5f, 1.5f, NAN, -1.0f};
  const std::vector<std::function<void()>> calls = {
      [&] { fill_uniform(g, F64, data, 4, 2, 1); },
      [&] { fill_uniform(g, F64, data, 4, NAN, 1); },
      [&] { fill_uniform(g, DType::Float16, data, 4, 0, 1e6); },
      [&] { fill_normal(g, F64, data, 4, 0, -1); },
      [&] { fill_normal(g, F64, data, 4, 0, NAN); },
      [&] { fill_log_normal(g, F64, data, 4, 0, 0); },
      [&] { fill_exponential(g, F64, data, 4, 0); },
      [&] { fill_cauchy(g, F64, data, 4, 0, 0); },
      [&] { fill_geometric(g, F64, data, 4, 1); },
      [&] { fill_bernoulli(g, F64, data, 4, 1.01); },
      [&] { fill_bernoulli(g, F64, data, 4, DType::Float32, bad.data()); },
      [&] { fill_poisson(g, DType::Float32, data, bad.data(), 4); },
      [&] { fill_randint(g, F64, data, 4, 3, 3); },
      [&] { fill_randint(g, DType::UInt8, data, 4, 0, 257); },
      [&] { fill_randint(g, DType::Float16, data, 4, 0, int64_t{1} << 62); },
      [&] { fill_randint(g, DType::Int32, data, 4, std::numeric_limits<int64_t>::lowest(), {}); },
      [&] { fill_multinomial(g, nullptr, DType::Float32, bad.data(), 1, 4, 1, true); },
      [&] { fill_multinomial(g, nullptr, F64, data, 1, 4, 5, false); },
      [&] { g.set_state(std::vector<uint8_t>(100)); },
      [&] { g.set_state(std::vector<uint8_t>(5056)); },
  };
  for (size_t i = 0; i < calls.size(); ++i) EXPECT_EQ(kind_of(calls[i]), ErrorKind::Value) << i;
  EXPECT_EQ(kind_of([&] { fill_exponential(g, DType::Int64, data, 4, 1); }), ErrorKind::DType);
  EXPECT_EQ(kind_of([&] { fill_random(g, DType::Complex64, data, 2); }), ErrorKind::DType);
  EXPECT_EQ(kind_of([&] { fill_randperm(g, DType::Bool, data, 2); }), ErrorKind::DType);
  EXPECT_EQ(out, std::vector<double>(4, 7.0));
  EXPECT_EQ(g.get_state(), before);
}

}  // namespace
}  // namespace cresset
