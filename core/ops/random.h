// Generators by number, as calls name them, and random values for other operators.
#pragma once

#include <memory>

#include "core/dispatch/decode.h"
#include "core/tensor/generator.h"

namespace cresset {

/// The `generator` argument of random operators: a number, 0 for the default generator.
struct GeneratorRef {
  int64_t id = 0;
};

template <> struct Arg<GeneratorRef> {
  static constexpr const char* schema = "Generator?";
  static GeneratorRef read(Frame& f) { return {static_cast<int64_t>(f.next())}; }
};

/// The generator of a number; shared, so that a fill outlives a generator freed meanwhile.
std::shared_ptr<Generator> generator_of(GeneratorRef ref);

}  // namespace cresset
