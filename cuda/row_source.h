// The CUDA source of one elementwise kernel, written from its row's formula text.
#pragma once

#include <string>

#include "core/cpu/loops.h"
#include "core/tensor/dtype.h"
#include "cuda/elementwise_args.h"

namespace cresset::cuda {

/// Tiled: 32-bit walks in squares of the two innermost dims, some operands along the other one.
enum class Layout : uint8_t { Flat, Strided32, Strided64, Tiled };

/// Everything that a kernel is compiled for; equal keys mean equal kernels.
struct RowSpec {
  uint16_t row;            ///< a Row, or `copy_row`
  int8_t derivative = -1;  ///< or -1 for the forward formula
  Compute compute = Compute::F32;
  Layout layout = Layout::Flat;
  uint8_t pack = 1;    ///< elements per item: 1, 2, 4 or 8
  uint8_t used = 0;    ///< bit k: input k is read
  uint8_t scalar = 0;  ///< bit k: input k is one element for all
  uint8_t turned = 0;  ///< bit k < 4: input k of a tiled layout lies along dim 1; pack is 1 there
  DType in[most_inputs] = {};
  DType out = DType::Float32;

  uint64_t key() const {
    uint64_t k = row;
    k = k << 3 | static_cast<uint64_t>(derivative + 1);
    k = k << 3 | static_cast<uint64_t>(compute);
    k = k << 2 | static_cast<uint64_t>(layout);
    k = k << 4 | (layout == Layout::Tiled ? turned : pack);
    k = k << 5 | used;
    k = k << 5 | scalar;
    for (const DType d : in) k = k << 4 | static_cast<uint64_t>(d);
    return k << 4 | static_cast<uint64_t>(out);
  }
};

/// The identity in the source's compute type: copies that convert, and fills.
constexpr uint16_t copy_row = 1023;

/// The program, prelude and body; its kernel is called `row_kernel`.
std::string row_source(const RowSpec& spec);
std::string row_body(const RowSpec& spec);
bool needs_complex(const RowSpec& spec);
bool needs_special(const RowSpec& spec);

/// The texts that every program starts with: scalar wrappers and, where they are needed, complex
/// numbers and the special functions that are computed in double.
std::string prelude(bool complex, bool special);
/// Whether a formula calls a special function.
bool calls_special(const char* formula);

/// The C++ names of a memory type and of a compute wrapper in programs.
const char* memory_type(DType dtype);
const char* compute_type(Compute compute);

}  // namespace cresset::cuda
