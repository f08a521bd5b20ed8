// The loops of the rows that compute in int64 and complex, and the table over all compute types.
#include <array>
#include <cstring>
#include <type_traits>

#include "core/base/cplx.h"
#include "core/cpu/loops.h"

namespace cresset {

namespace scalar_rows {

#include "core/cpu/loops_body.h"

}  // namespace scalar_rows

const loops_detail::LoopSet* loops_detail::i64_loops() {
  return scalar_rows::loop_table<Num<int64_t>, Compute::I64>();
}

const loops_detail::LoopSet* loops_detail::c64_loops() {
  return scalar_rows::loop_table<Cplx<float>, Compute::C64>();
}

const loops_detail::LoopSet* loops_detail::c128_loops() {
  return scalar_rows::loop_table<Cplx<double>, Compute::C128>();
}

static std::array<RowLoops, row_count> gather_loops() {
  using namespace loops_detail;
  const LoopSet* sets[compute_count] = {f32_loops(), f64_loops(), i64_loops(), c64_loops(),
                                        c128_loops()};
  std::array<RowLoops, row_count> all{};
  for (size_t row = 0; row < row_count; ++row) {
    for (int c = 0; c < compute_count; ++c) {
      all[row].forward[c] = sets[c][row].forward;
      for (int i = 0; i < 3; ++i) all[row].backward[i][c] = sets[c][row].backward[i];
    }
  }
  return all;
}

const RowLoops& row_loops(Row row) {
  static const std::array<RowLoops, row_count> all = gather_loops();
  return all[static_cast<size_t>(row)];
}

}  // namespace cresset
