// The loops of the rows that compute in double, for every SIMD target.
#include <cstring>
#include <type_traits>

#include "core/cpu/loops.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "core/cpu/loops_f64.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "core/cpu/vec.h"

HWY_BEFORE_NAMESPACE();
namespace cresset {
namespace HWY_NAMESPACE {

#include "core/cpu/loops_body.h"

static const loops_detail::LoopSet* f64_table() { return loop_table<Vec<double>, Compute::F64>(); }

}  // namespace HWY_NAMESPACE
}  // namespace cresset
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace cresset {

HWY_EXPORT(f64_table);

const loops_detail::LoopSet* loops_detail::f64_loops() { return HWY_DYNAMIC_DISPATCH(f64_table)(); }

}  // namespace cresset
#endif
