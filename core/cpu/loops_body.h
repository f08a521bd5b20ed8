// The loops over a row, for any value wrapper V (a SIMD vector or a scalar).
//
// There is no include guard: this is included into each namespace that has its own row structs and
// wrappers, since code for a SIMD target must be defined inside that target's namespace. V offers
// Element, width (divides loop_block), load(const Element*) and store(V, Element*).

#define ROW_CALL inline __attribute__((always_inline))
#include "core/ops/row_structs.h"

template <class R> R load_row(const void* params) {
  R row;
  if constexpr (!std::is_empty_v<R>) std::memcpy(&row, params, sizeof(R));
  return row;
}

template <class V, class R, Row id>
void forward_loop(const void* const* in, void* out, const void* params, int64_t n) {
  using T = typename V::Element;
  constexpr int inputs = input_count(row_info(id).kind);
  const R row = load_row<R>(params);
  const T* p0 = static_cast<const T*>(in[0]);
  const T* p1 = nullptr;
  const T* p2 = nullptr;
  if constexpr (inputs > 1) p1 = static_cast<const T*>(in[1]);
  if constexpr (inputs > 2) p2 = static_cast<const T*>(in[2]);
  T* o = static_cast<T*>(out);
  for (int64_t i = 0; i < n; i += V::width) {
    if constexpr (inputs == 1) store(row.forward(V::load(p0 + i)), o + i);
    if constexpr (inputs == 2) store(row.forward(V::load(p0 + i), V::load(p1 + i)), o + i);
    if constexpr (inputs == 3)
      store(row.forward(V::load(p0 + i), V::load(p1 + i), V::load(p2 + i)), o + i);
  }
}

template <class V, class R, Row id, int k>
void backward_loop(const void* const* in, void* out, const void* params, int64_t n) {
  using T = typename V::Element;
  constexpr RowInfo info = row_info(id);
  constexpr int inputs = input_count(info.kind);
  const R row = load_row<R>(params);
  T* o = static_cast<T*>(out);
  const T* p[5];
  for (int j = 0; j < 5; ++j) {
    const bool used = j == 0 || (info.uses[k] >> (j - 1)) & 1;
    p[j] = static_cast<const T*>(used ? in[j] : in[0]);
  }
  for (int64_t i = 0; i < n; i += V::width) {
    const V g = V::load(p[0] + i);
    const V a = (info.uses[k] & 1) != 0 ? V::load(p[1] + i) : g;
    const V b = (info.uses[k] & 2) != 0 ? V::load(p[2] + i) : g;
    const V c = (info.uses[k] & 4) != 0 ? V::load(p[3] + i) : g;
    const V y = (info.uses[k] & 8) != 0 ? V::load(p[4] + i) : g;
    if constexpr (inputs == 1) store(row.backward0(g, a, y), o + i);
    if constexpr (inputs == 2 && k == 0) store(row.backward0(g, a, b, y), o + i);
    if constexpr (inputs == 2 && k == 1) store(row.backward1(g, a, b, y), o + i);
    if constexpr (inputs == 3 && k == 0) store(row.backward0(g, a, b, c, y), o + i);
    if constexpr (inputs == 3 && k == 1) store(row.backward1(g, a, b, c, y), o + i);
    if constexpr (inputs == 3 && k == 2) store(row.backward2(g, a, b, c, y), o + i);
  }
}

template <class V, Compute compute, class R, Row id> constexpr loops_detail::LoopSet loops_of() {
  constexpr RowInfo info = row_info(id);
  static_assert(info.param_count == 0 || sizeof(R) == info.param_count * sizeof(double));
  loops_detail::LoopSet set;
  if constexpr (class_has(info.cls, compute)) {
    set.forward = &forward_loop<V, R, id>;
    if constexpr (compute != Compute::I64) {
      if constexpr (info.derivative[0] != nullptr) set.backward[0] = &backward_loop<V, R, id, 0>;
      if constexpr (info.derivative[1] != nullptr) set.backward[1] = &backward_loop<V, R, id, 1>;
      if constexpr (info.derivative[2] != nullptr) set.backward[2] = &backward_loop<V, R, id, 2>;
    }
  }
  return set;
}

template <class V, Compute compute> const loops_detail::LoopSet* loop_table() {
  static constexpr loops_detail::LoopSet table[] = {
#define ROW_NAME(name) loops_of<V, compute, name##_row, Row::name>(),
#include "core/ops/elementwise.def"
#undef ROW_NAME
  };
  return table;
}
