// Every row's loops, for every SIMD target, against its formula in long double; then the edges.
#include "core/cpu/loops.h"

#include <gtest/gtest.h>
#include <hwy/targets.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <random>
#include <string>
#include <type_traits>
#include <vector>

#include "core/base/cplx.h"

namespace cresset {
namespace {

namespace reference {
#include "core/cpu/loops_body.h"

/// The default parameters of each row.
std::vector<double> params_of(Row id) {
  static const std::vector<double> all[] = {
#define ROW_NAME(name)                                                               \
  [] {                                                                               \
    const name##_row row;                                                            \
    const size_t count = row_info(Row::name).param_count;                            \
    std::vector<double> p(count);                                                    \
    if (count > 0) std::memcpy(p.data(), static_cast<const void*>(&row), 8 * count); \
    return p;                                                                        \
  }(),
#include "core/ops/elementwise.def"
#undef ROW_NAME
  };
  return all[static_cast<size_t>(id)];
}
}  // namespace reference

constexpr double inf = std::numeric_limits<double>::infinity();
constexpr double nan = std::numeric_limits<double>::quiet_NaN();
constexpr int64_t int_min = std::numeric_limits<int64_t>::min();

template <class T>
constexpr Compute compute_of = std::is_same_v<T, float>     ? Compute::F32
                               : std::is_same_v<T, int64_t> ? Compute::I64
                                                            : Compute::F64;

/// Runs a row forward (direction -1) or backward on vectors padded to whole blocks.
template <class T>
std::vector<T> run(Loop loop, Row row, std::vector<std::vector<T>> in,
                   std::vector<double> params = {}) {
  if (params.empty()) params = reference::params_of(row);
  size_t n = 0;
  for (const auto& v : in) n = std::max(n, v.size());
  const size_t padded = (n + loop_block - 1) / loop_block * loop_block;
  const void* pointers[5] = {};
  for (size_t i = 0; i < in.size(); ++i) {
    if (in[i].empty()) continue;
    in[i].resize(padded, in[i].back());
    pointers[i] = in[i].data();
  }
  std::vector<T> out(padded);
  loop(pointers, out.data(), params.data(), static_cast<int64_t>(padded));
  out.resize(n);
  return out;
}

template <class T>
std::vector<T> forward(Row row, std::vector<std::vector<T>> in, std::vector<double> params = {}) {
  const Loop loop = row_loops(row).forward[static_cast<int>(compute_of<T>)];
  return run<T>(loop, row, std::move(in), std::move(params));
}

template <class T> std::vector<T> convert(const auto& values) {
  return std::vector<T>(values.begin(), values.end());
}

/// Edge values against each other, and random numbers of several sizes.
std::vector<std::vector<float>> samples(int inputs) {
  const std::vector<float> edges = {0.f,        -0.f, 1.f,    -1.f,   0.5f,       2.f,
                                    -3.f,       20.f, -20.f,  1e-30f, float(inf), float(-inf),
                                    float(nan), 90.f, -105.f, 1e-40f};
  std::vector<std::vector<float>> in(inputs);
  for (size_t i = 0; i < edges.size() * edges.size(); ++i) {
    const size_t at[3] = {i % edges.size(), i / edges.size(), (i + i / edges.size()) % 16};
    for (int k = 0; k < inputs; ++k) in[k].push_back(edges[at[k]]);
  }
  std::mt19937 random(1);
  std::normal_distribution<float> normal;
  for (float size : {0.01f, 0.4f, 1.f, 4.f}) {
    for (int i = 0; i < 256; ++i) {
      for (auto& v : in) v.push_back(normal(random) * size);
    }
  }
  for (int i = 0; i < 256; ++i) {
    for (auto& v : in) v.push_back(static_cast<float>(static_cast<int>(random() % 9) - 4));
  }
  return in;
}

using Exact = long double;
using Inputs = std::vector<std::vector<float>>;

/// Rows whose result depends on the type itself: judged by the scalar of that type alone.
bool depends_on_type(Row row) { return row == Row::nextafter || row == Row::nan_to_num; }

/// Rows that subtract nearly equal terms: their error is that of the terms, however small the
/// difference, and the scalar formula is only sometimes luckier.
bool cancels(Row row) {
  constexpr Row rows[] = {Row::gelu, Row::mish,          Row::tanhshrink,
                          Row::sinc, Row::special_erfcx, Row::special_i1e};
  return std::find(std::begin(rows), std::end(rows), row) != std::end(rows);
}

/// A value is right when it is as near to the long double formula as the scalar formula of its own
/// type, up to a factor and a few units in the last place; the factor allows for cancellation.
template <class T> bool is_right(T got, T scalar, Exact exact, Exact absolute) {
  const T want = static_cast<T>(exact);
  // The formula itself may overflow on the way in T, as in inf - inf.
  if (std::isnan(want) || std::isnan(got)) return std::isnan(got) && std::isnan(scalar);
  if (got == want || got == scalar) return true;
  if (std::isinf(want) || !std::isfinite(got)) {
    // At the border of overflow either side is right.
    const Exact limit = std::numeric_limits<T>::max();
    return std::isfinite(exact) && std::abs(exact) > limit * 0.9999L;
  }
  const Exact eps = std::numeric_limits<T>::epsilon();
  const Exact tiny = std::numeric_limits<T>::min();
  const Exact own = std::isfinite(scalar) ? std::abs(scalar - exact) : 0;
  return std::abs(got - exact) <= 8 * eps * std::abs(exact) + 8 * own + 4 * tiny + absolute * eps;
}

struct Tables {
  const loops_detail::LoopSet *simd, *scalar, *exact;
};

template <class T>
void check_loop(Row row, int direction, const Tables& tables, const Inputs& in,
                const std::string& where) {
  const size_t id = static_cast<size_t>(row);
  const auto pick = [&](const loops_detail::LoopSet* set) {
    return direction < 0 ? set[id].forward : set[id].backward[direction];
  };
  std::vector<std::vector<T>> narrow;
  std::vector<std::vector<Exact>> wide;
  for (const auto& v : in) {
    narrow.push_back(convert<T>(v));
    wide.push_back(convert<Exact>(v));
  }
  const std::vector<T> got = run<T>(pick(tables.simd), row, narrow);
  const std::vector<T> scalar = run<T>(pick(tables.scalar), row, narrow);
  std::vector<Exact> exact = run<Exact>(pick(tables.exact), row, wide);
  if (depends_on_type(row)) exact = convert<Exact>(scalar);
  int failures = 0;
  for (size_t i = 0; i < got.size() && failures < 3; ++i) {
    Exact absolute = cancels(row) ? 100 : 0;
    for (const auto& v : in) absolute *= v.empty() ? 1 : 1 + std::abs(v[i]);
    if (is_right(got[i], scalar[i], exact[i], absolute)) continue;
    ++failures;
    std::string inputs;
    for (const auto& v : in) inputs += v.empty() ? " -" : " " + std::to_string(v[i]);
    ADD_FAILURE() << where << row_info(row).name << " direction " << direction << " at" << inputs
                  << ": got " << got[i] << ", scalar " << scalar[i] << ", exact " << exact[i];
  }
}

/// The inputs of a backward loop: g, then only what the derivative says it reads.
Inputs backward_inputs(Row row, int direction, const Inputs& in) {
  const uint8_t uses = row_info(row).uses[direction];
  Inputs all(5);
  all[0] = in[0];
  for (size_t i = 0; i < all[0].size(); ++i) all[0][i] = 0.25f + static_cast<float>(i % 7);
  for (size_t k = 0; k < in.size(); ++k) {
    if (uses >> k & 1) all[k + 1] = in[k];
  }
  if (uses >> 3 & 1) all[4] = forward<float>(row, in);
  return all;
}

template <class T>
void check_all_rows(const loops_detail::LoopSet* simd, const std::string& where) {
  constexpr Compute compute = compute_of<T>;
  const Tables tables = {simd, reference::loop_table<Num<T>, compute>(),
                         reference::loop_table<Num<Exact>, compute>()};
  for (size_t id = 0; id < row_count; ++id) {
    const Row row = static_cast<Row>(id);
    if (!class_has(row_info(row).cls, compute)) continue;
    const Inputs in = samples(input_count(row_info(row).kind));
    check_loop<T>(row, -1, tables, in, where);
    for (int i = 0; i < 3; ++i) {
      if (row_info(row).derivative[i] == nullptr) continue;
      check_loop<T>(row, i, tables, backward_inputs(row, i, in), where);
    }
  }
}

class SimdTarget : public testing::TestWithParam<int64_t> {
 protected:
  void TearDown() override {
    hwy::SetSupportedTargetsForTest(0);
    hwy::GetChosenTarget().Update(hwy::SupportedTargets());
  }
};

TEST_P(SimdTarget, EveryRowMatchesItsFormula) {
  if ((hwy::SupportedTargets() & GetParam()) == 0) return;
  hwy::SetSupportedTargetsForTest(GetParam());
  hwy::GetChosenTarget().Update(hwy::SupportedTargets());
  const std::string name = std::string(hwy::TargetName(GetParam())) + " ";
  check_all_rows<float>(loops_detail::f32_loops(), name + "float ");
  check_all_rows<double>(loops_detail::f64_loops(), name + "double ");
}

INSTANTIATE_TEST_SUITE_P(All, SimdTarget, testing::Values(HWY_SSE4, HWY_AVX2, HWY_AVX3),
                         [](const auto& info) { return hwy::TargetName(info.param); });

TEST(Rows, LoopsExistWhereTheClassSays) {
  for (size_t id = 0; id < row_count; ++id) {
    const RowInfo& info = row_infos[id];
    const RowLoops& loops = row_loops(static_cast<Row>(id));
    for (int c = 0; c < compute_count; ++c) {
      const bool has = class_has(info.cls, static_cast<Compute>(c));
      EXPECT_EQ(loops.forward[c] != nullptr, has) << info.name;
      for (int i = 0; i < 3; ++i) {
        const bool differentiates =
            has && info.derivative[i] != nullptr && static_cast<Compute>(c) != Compute::I64;
        EXPECT_EQ(loops.backward[i][c] != nullptr, differentiates) << info.name << " " << i;
      }
    }
  }
}

TEST(Rows, ScanOfTexts) {
  static_assert(uses_name("g * conj(1 - y * y)", 'y'));
  static_assert(!uses_name("g * my(xy, y1)", 'y'));
  static_assert(row_info(Row::mul).uses[0] == 2 && row_info(Row::mul).uses[1] == 1);
  static_assert(row_info(Row::tanh).uses[0] == 8);
  static_assert(row_info(Row::add).uses[0] == 0 && row_info(Row::add).param_count == 1);
  static_assert(row_info(Row::special_zeta).derivative[0] == nullptr);
  static_assert(row_info(Row::floor).differentiable && row_info(Row::floor).zero_gradient);
  EXPECT_STREQ(row_info(Row::softplus).members, "double beta = 1; double threshold = 20;");
}

TEST(Loops, InPlaceAndUnaligned) {
  std::vector<float> buffer(loop_block * 3 + 1, 0.5f);
  const void* in[] = {buffer.data() + 1};
  row_loops(Row::exp).forward[0](in, buffer.data() + 1, nullptr, loop_block * 3);
  EXPECT_EQ(buffer[0], 0.5f);
  for (int i = 1; i <= loop_block * 3; ++i) EXPECT_FLOAT_EQ(buffer[i], std::exp(0.5f));
}

/// The largest error of a float row over [low, high], in units in the last place.
double worst_ulp(Row row, double (*exact)(double), double low, double high) {
  std::vector<float> x(1 << 16);
  for (size_t i = 0; i < x.size(); ++i) {
    x[i] = static_cast<float>(low + (high - low) * static_cast<double>(i) / (x.size() - 1.0));
  }
  const std::vector<float> y = forward<float>(row, {x});
  double worst = 0;
  for (size_t i = 0; i < x.size(); ++i) {
    const double want = exact(x[i]);
    if (std::abs(want) < 1.2e-38 || std::abs(want) > 3.4e38) continue;
    const double ulp = std::ldexp(1.0, std::ilogb(want) - 23);
    worst = std::max(worst, std::abs(y[i] - want) / ulp);
  }
  return worst;
}

TEST(Loops, FloatErrorsOverWideRanges) {
  const auto expect = [](Row row, double (*f)(double), double low, double high, double ulps) {
    EXPECT_LE(worst_ulp(row, f, low, high), ulps) << row_info(row).name;
  };
  expect(Row::exp, std::exp, -87, 88.7, 1.5);
  expect(Row::exp2, std::exp2, -126, 127.9, 1.5);
  expect(Row::expm1, std::expm1, -20, 88.7, 2.5);
  expect(Row::log, std::log, 1e-6, 3e38, 1.5);
  expect(Row::log, std::log, 0.5, 2, 1.5);
  expect(Row::log1p, std::log1p, -0.99, 3, 2.5);
  expect(Row::tanh, std::tanh, -10, 10, 3);
  expect(Row::sin, std::sin, -11000, 11000, 2);
  expect(Row::cos, std::cos, -1e6, 1e6, 2);
  expect(Row::tan, std::tan, -100, 100, 4);
  expect(Row::atan, std::atan, -50, 50, 2.5);
  expect(Row::asin, std::asin, -1, 1, 2.5);
  expect(Row::acos, std::acos, -1, 1, 2.5);
  expect(Row::erf, std::erf, -5, 5, 5);
  // Builds with sanitizers contract other multiply-adds: 6.7 instead of 5.9 in the far tail.
  expect(Row::erfc, std::erfc, -4, 9, 7);
  expect(Row::sinh, std::sinh, -89, 89, 3);
  expect(Row::lgamma, std::lgamma, 3, 500, 1);
}

TEST(Loops, ClampAndMaximumKeepNaN) {
  const std::vector<double> x = {nan, -2, 0.5, 3};
  const auto same = [](const std::vector<double>& got, const std::vector<double>& want) {
    for (size_t i = 0; i < want.size(); ++i) {
      if (std::isnan(want[i]))
        EXPECT_TRUE(std::isnan(got[i])) << i;
      else
        EXPECT_EQ(got[i], want[i]) << i;
    }
  };
  same(forward<double>(Row::clamp, {x, {0, 0, 0, 0}, {1, 1, 1, 1}}), {nan, 0, 0.5, 1});
  same(forward<double>(Row::clamp, {x, {0, nan, 0, 0}, {1, 1, nan, 1}}), {nan, nan, nan, 1});
  same(forward<double>(Row::clamp, {x, {2, 2, 2, 2}, {-1, -1, -1, -1}}), {nan, -1, -1, -1});
  same(forward<double>(Row::maximum, {x, {0, nan, 0, 0}}), {nan, nan, 0.5, 3});
  same(forward<double>(Row::fmax, {x, {0, nan, 0, 0}}), {0, -2, 0.5, 3});
  same(forward<double>(Row::relu, {x}), {nan, 0, 0.5, 3});
}

TEST(Loops, GradientAtTies) {
  const auto gradient = [](Row row, int i, std::vector<std::vector<double>> in) {
    in.insert(in.begin(), std::vector<double>(in[0].size(), 1));
    return run<double>(row_loops(row).backward[i][1], row, std::move(in));
  };
  using V = std::vector<double>;
  EXPECT_EQ(gradient(Row::maximum, 0, {{1, 2}, {1, 3}}), (V{0.5, 0}));
  EXPECT_EQ(gradient(Row::maximum, 1, {{1, 2}, {1, 3}}), (V{0.5, 1}));
  EXPECT_EQ(gradient(Row::abs, 0, {{0, -2}}), (V{0, -1}));
  EXPECT_EQ(gradient(Row::clamp, 0, {{0, 1, 1.5}, {0, 0, 0}, {1, 1, 1}}), (V{1, 1, 0}));
  EXPECT_EQ(gradient(Row::pow, 0, {{0, 0, 3}, {0, 2, 0}}), (V{0, 0, 0}));
  const V y = forward<double>(Row::pow, {{0, 0, 3}, {0, 2, 0}});
  const V by_exponent = gradient(Row::pow, 1, {{0, 0, 3}, {0, 2, 0}, {}, y});
  EXPECT_EQ(V(by_exponent.begin(), by_exponent.begin() + 2), (V{0, 0}));
  EXPECT_DOUBLE_EQ(by_exponent[2], std::log(3.0));
}

TEST(Loops, IntegerDivisionNeverTraps) {
  using V = std::vector<int64_t>;
  const V a = {9, -9, 9, -9, int_min}, b = {4, 4, -4, -4, -1};
  EXPECT_EQ(forward<int64_t>(Row::remainder, {a, b}), (V{1, 3, -3, -1, 0}));
  EXPECT_EQ(forward<int64_t>(Row::fmod, {a, b}), (V{1, -1, 1, -1, 0}));
  EXPECT_EQ(forward<int64_t>(Row::floor_divide, {a, b}), (V{2, -3, -3, 2, int_min}));
  EXPECT_EQ(forward<int64_t>(Row::trunc_divide, {a, b}), (V{2, -2, -2, 2, int_min}));
  EXPECT_EQ(forward<int64_t>(Row::floor_divide, {{4, 5}, {0, 0}}).size(), 2u);
  EXPECT_EQ(forward<double>(Row::floor_divide, {{1.0, 4.0}, {0.1, 0.0}}),
            (std::vector<double>{9, inf}));
}

TEST(Loops, IntegerPowersAndBits) {
  using V = std::vector<int64_t>;
  const V base = {3, -3, 1, -1, 3, -1, 0, 3}, exponent = {-2, -1, -5, -5, 4, -4, 0, 40};
  EXPECT_EQ(forward<int64_t>(Row::pow, {base, exponent}),
            (V{0, 0, 1, -1, 81, 1, 1, -6289078614652622815}));
  EXPECT_EQ(forward<int64_t>(Row::gcd, {{12, 0, -12, int_min}, {18, 5, 18, 6}}), (V{6, 5, 6, 2}));
  EXPECT_EQ(forward<int64_t>(Row::lcm, {{4, 0, -4}, {6, 5, 6}}), (V{12, 0, 12}));
  EXPECT_EQ(forward<int64_t>(Row::bitwise_left_shift, {{1, 1, 1}, {3, 64, -1}}), (V{8, 0, 0}));
  EXPECT_EQ(forward<int64_t>(Row::bitwise_right_shift, {{-8, -8, 8}, {1, 99, -1}}), (V{-4, -1, 0}));
  EXPECT_EQ(forward<int64_t>(Row::logical_and, {{2, 0, 5}, {7, 1, 0}}), (V{1, 0, 0}));
  const V big = {(int64_t{1} << 53) + 1};
  EXPECT_EQ(forward<int64_t>(Row::add, {big, {1}}), (V{(int64_t{1} << 53) + 2}));
}

using Z = std::complex<double>;

std::vector<Z> complex_row(Row row, int direction, std::vector<std::vector<Z>> in) {
  const RowLoops& loops = row_loops(row);
  const int c = static_cast<int>(Compute::C128);
  return run<Z>(direction < 0 ? loops.forward[c] : loops.backward[direction][c], row,
                std::move(in));
}

void expect_near(Z got, Z want) { EXPECT_LE(std::abs(got - want), 1e-14 * (1 + std::abs(want))); }

TEST(Loops, ComplexGradientsAreConjugate) {
  const Z x(5, -12), one(1, 0);
  expect_near(complex_row(Row::abs, 0, {{one}, {x}})[0], x / 13.0);
  expect_near(complex_row(Row::abs, 0, {{one}, {Z(0, 0)}})[0], 0);
  expect_near(complex_row(Row::abs, 0, {{one}, {Z(-1e-23, 0)}})[0], -1);
  expect_near(complex_row(Row::square, 0, {{one}, {x}})[0], std::conj(2.0 * x));
  expect_near(complex_row(Row::angle, 0, {{one}, {Z(2, 2)}})[0], Z(-0.25, 0.25));
  const Z y = std::exp(Z(0, 0.5));
  expect_near(complex_row(Row::exp, 0, {{one}, {}, {}, {}, {y}})[0], std::conj(y));
}

TEST(Loops, ComplexBranchCuts) {
  expect_near(complex_row(Row::sqrt, -1, {{Z(-4, 0.0)}})[0], Z(0, 2));
  expect_near(complex_row(Row::sqrt, -1, {{Z(-4, -0.0)}})[0], Z(0, -2));
  expect_near(complex_row(Row::log, -1, {{Z(-1, -0.0)}})[0], Z(0, -M_PI));
  expect_near(complex_row(Row::asin, -1, {{Z(2, 0.0)}})[0], std::asin(Z(2, 0.0)));
  expect_near(complex_row(Row::pow, -1, {{Z(0, 0)}, {Z(0, 0)}})[0], 1);
  expect_near(complex_row(Row::log1p, -1, {{Z(1e-20, 1e-20)}})[0] * 1e20, Z(1, 1));
  expect_near(complex_row(Row::expm1, -1, {{Z(1e-20, 1e-20)}})[0] * 1e20, Z(1, 1));
  expect_near(complex_row(Row::div, -1, {{Z(1e300, 1e300)}, {Z(1e300, 1e300)}})[0], 1);
}

}  // namespace
}  // namespace cresset
