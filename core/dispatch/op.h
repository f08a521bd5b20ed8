// The table entry of an operator, and how a family lists its operators.
#pragma once

#include "core/dispatch/decode.h"

namespace cresset {

/// One operator. `where` lists the places of the API it appears in: torch, method, nn, linalg,
/// special, fft, or "private" for what only Cresset's own TypeScript calls.
struct OpEntry {
  const char* schema;
  const char* where;
  const char* doc;
  void (*invoke)(Frame&);
  std::string (*signature)();
};

/// `op<softmax>("softmax(Tensor self, int dim) -> Tensor", "torch method", "one line")`.
template <auto fn> constexpr OpEntry op(const char* schema, const char* where, const char* doc) {
  return {schema, where, doc, &Glue<fn>::invoke, &Glue<fn>::signature};
}

using OpTable = std::span<const OpEntry>;

/// Opens the list of a family's operators, at the end of its file; the family's name stands in
/// core/dispatch/families.def.
#define OP_TABLE(family)                 \
  extern const OpEntry family##_ops[];   \
  extern const size_t family##_op_count; \
  const OpEntry family##_ops[]
#define OP_TABLE_END(family) const size_t family##_op_count = sizeof(family##_ops) / sizeof(OpEntry)

/// Ids: the elementwise rows (out of place, then in place), then every family's table in order.
uint32_t op_count();
/// Runs operator `id`; throws Error.
void call(uint32_t id, double* slots, HandleTable& handles);
const char* op_name(uint32_t id);
/// The schemas as JSON, for the generator of the TypeScript side.
std::string schemas_json();

/// Sees every call before and after it runs: profiler, tracer, JS dispatch mode.
struct Interceptor {
  virtual ~Interceptor() = default;
  virtual void before(const char* op, Frame& frame) = 0;
  virtual void after(const char* op) = 0;
};
/// Installs an interceptor for this thread; null removes it. Returns the previous one.
Interceptor* set_interceptor(Interceptor* interceptor);

}  // namespace cresset
