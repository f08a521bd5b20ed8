// The contiguous loops of every elementwise row, one per compute type and direction.
#pragma once

#include <cstdint>

#include "core/ops/rows.h"

namespace cresset {

/// What a loop computes in. Half types ride in F32, bool and small integers in I64.
enum class Compute : uint8_t { F32, F64, I64, C64, C128 };

inline constexpr int compute_count = 5;
inline constexpr int64_t loop_block = 16;

/// A loop over contiguous memory aligned to its elements; n is a positive multiple of loop_block.
/// `params` points at the row's members as doubles, in order; `out` may equal an input.
using Loop = void (*)(const void* const* in, void* out, const void* params, int64_t n);

/// forward reads x | a b | a b c; backward[i] reads g, a or x, b, c, y and may be given null for
/// those that RowInfo::uses[i] lacks. Null where the class has no such compute type, or the row no
/// such derivative. Comparisons and predicates write 1 or 0 in the compute type.
struct RowLoops {
  Loop forward[compute_count];
  Loop backward[3][compute_count];
};

/// The loops of a row, for the CPU that runs this.
const RowLoops& row_loops(Row row);

/// Whether rows of a class have loops in a compute type.
constexpr bool class_has(DTypeClass cls, Compute compute) {
  const bool floats = compute == Compute::F32 || compute == Compute::F64;
  const bool ints = compute == Compute::I64;
  switch (cls) {
    case DTypeClass::number:
    case DTypeClass::number_nobool:
    case DTypeClass::logical: return true;
    case DTypeClass::real:
    case DTypeClass::real_nobool: return floats || ints;
    case DTypeClass::floating:
    case DTypeClass::floating_only: return floats;
    case DTypeClass::floating_complex: return !ints;
    case DTypeClass::integral:
    case DTypeClass::integer: return ints;
  }
  return false;
}

namespace loops_detail {

/// The loops of one row in one compute type.
struct LoopSet {
  Loop forward = nullptr;
  Loop backward[3] = {};
};

// Each gives row_count entries, indexed by Row.
const LoopSet* f32_loops();
const LoopSet* f64_loops();
const LoopSet* i64_loops();
const LoopSet* c64_loops();
const LoopSet* c128_loops();

}  // namespace loops_detail

}  // namespace cresset
