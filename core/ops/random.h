// Generators by number, as calls name them, and the table of random kernels.
#pragma once

#include <memory>

#include "core/dispatch/decode.h"
#include "core/ops/launch.h"
#include "core/tensor/generator.h"
#include "core/tensor/philox.h"

namespace cresset {

/// The `generator` argument of random operators: a number, 0 for the default generator, -1 - i for
/// that of cuda:i.
struct GeneratorRef {
  int64_t id = 0;
};

template <> struct Arg<GeneratorRef> {
  static constexpr const char* schema = "Generator?";
  static GeneratorRef read(Frame& f) { return {static_cast<int64_t>(f.next())}; }
};

/// The generator of a number; shared, so that a fill outlives a generator freed meanwhile. One of
/// another device is an error.
std::shared_ptr<Generator> generator_of(GeneratorRef ref);
std::shared_ptr<PhiloxGenerator> philox_of(GeneratorRef ref, Device device);

/// What is drawn; the members that count are named beside.
enum class Distribution : uint8_t {
  Uniform,      ///< in [a, b)
  Normal,       ///< mean a, spread b
  LogNormal,    ///< the same of the logarithm
  Exponential,  ///< rate a
  Cauchy,       ///< median a, sigma b
  Geometric,    ///< chance a
  Bernoulli,    ///< chance a
  Integer,      ///< low + [0, range)
  AnyInteger,   ///< all 64 bits
  Natural       ///< what the dtype holds from 0 on
};
struct Draw {
  Distribution kind;
  double a = 0, b = 1;
  int64_t low = 0;
  uint64_t range = 0;
};

/// Of GPUs only: the CPU draws in core/tensor/distributions.cpp. Outputs are dense and filled in
/// the order of memory.
struct RandomKernels {
  void (*fill)(const Tensor& out, const Draw& draw, PhiloxGenerator& generator);
  /// 1 with the chance that each element of `p` gives; p is contiguous in out's order of memory.
  void (*bernoulli)(const Tensor& p, const Tensor& out, PhiloxGenerator& generator);
  void (*poisson)(const Tensor& rates, const Tensor& out, PhiloxGenerator& generator);
  /// y = x / keep where mask, drawn with the chance keep, is set, else 0; all in x's order.
  void (*dropout)(const Tensor& x, double keep, const Tensor& y, const Tensor& mask,
                  PhiloxGenerator& generator);
};

namespace ops {
/// Standard normal numbers of the default generator.
Tensor standard_normal(const Dims& size, Options options);
}  // namespace ops

}  // namespace cresset
