// The elementwise operators as data: names, dtype classes, formula texts and what they read.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>

namespace cresset {

/// One elementwise operator; the order is that of elementwise.def.
enum class Row : uint16_t {
#define ROW_NAME(name) name,
#include "core/ops/elementwise.def"
#undef ROW_NAME
  count
};

inline constexpr size_t row_count = static_cast<size_t>(Row::count);

enum class RowKind : uint8_t { unary, binary, ternary, compare, predicate };

/// Which dtypes a row takes, and what it computes in; the driver promotes by it.
enum class DTypeClass : uint8_t {
  number,            // every dtype, kept
  number_nobool,     // as number, bool refused
  real,              // no complex; kept
  real_nobool,       // no complex, no bool; kept
  floating,          // integers and bool become the default float; no complex
  floating_complex,  // integers and bool become the default float; complex allowed
  integral,          // integers and bool
  integer,           // integers only
  logical,           // any dtype in
  floating_only,     // real floating dtypes, no promotion
};

/// One row of elementwise.def; derivative[i] is null where PyTorch defines none.
struct RowInfo {
  const char* name;
  RowKind kind;
  DTypeClass cls;
  const char* members;
  const char* forward;
  const char* derivative[3];
  const char* doc;
  bool differentiable;
  bool zero_gradient;
  uint8_t param_count;
  uint8_t uses[3];  // of derivative[i]: bit 0 = x or a, 1 = b, 2 = c, 3 = y
};

/// The default of a member that PyTorch leaves to None.
inline constexpr double not_given = std::numeric_limits<double>::quiet_NaN();

/// Marks, in a derivative column, an input that PyTorch does not differentiate by.
template <class V> constexpr V unsupported(const V& g) { return g; }

constexpr bool is_identifier_char(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
}

/// Whether the one-letter identifier `name` occurs in a formula text.
constexpr bool uses_name(const char* text, char name) {
  if (text == nullptr) return false;
  for (const char* p = text; *p != '\0'; ++p) {
    const bool starts = p == text || !is_identifier_char(p[-1]);
    if (*p == name && starts && !is_identifier_char(p[1])) return true;
  }
  return false;
}

namespace rows_detail {

constexpr bool is_unsupported(const char* text) {
  const char* mark = "unsupported";
  while (*mark != '\0' && *text == *mark) ++text, ++mark;
  return *mark == '\0';
}

constexpr uint8_t used_inputs(const char* text) {
  uint8_t bits = 0;
  if (uses_name(text, 'x') || uses_name(text, 'a')) bits |= 1;
  if (uses_name(text, 'b')) bits |= 2;
  if (uses_name(text, 'c')) bits |= 4;
  if (uses_name(text, 'y')) bits |= 8;
  return bits;
}

constexpr uint8_t count_members(const char* text) {
  uint8_t count = 0;
  for (; *text != '\0'; ++text) count += *text == ';';
  return count;
}

struct Derivatives {
  const char* text[3] = {};
  bool zero = false;
};

constexpr RowInfo make_row(const char* name, RowKind kind, DTypeClass cls, const char* members,
                           const char* forward, const char* doc, Derivatives derivatives = {}) {
  RowInfo info{name,
               kind,
               cls,
               members,
               forward,
               {},
               doc,
               derivatives.zero,
               derivatives.zero,
               count_members(members),
               {}};
  for (int i = 0; i < 3; ++i) {
    const char* text = derivatives.text[i];
    if (text == nullptr || is_unsupported(text)) continue;
    info.derivative[i] = text;
    info.uses[i] = used_inputs(text);
    info.differentiable = true;
  }
  return info;
}

}  // namespace rows_detail

#define ROW_TEXT(...) #__VA_ARGS__
#define ROW_INFO(name, kind, cls, members, forward, doc, ...)                                  \
  rows_detail::make_row(#name, RowKind::kind, DTypeClass::cls, ROW_TEXT members, forward, doc, \
                        rows_detail::Derivatives{__VA_ARGS__}),
#define UNARY0(name, cls, members, forward, doc) ROW_INFO(name, unary, cls, members, #forward, doc)
#define UNARYZ(name, cls, members, forward, doc) \
  ROW_INFO(name, unary, cls, members, #forward, doc, {}, true)
#define UNARY(name, cls, members, forward, dx, doc) \
  ROW_INFO(name, unary, cls, members, #forward, doc, {#dx})
#define BINARY0(name, cls, members, forward, doc) \
  ROW_INFO(name, binary, cls, members, #forward, doc)
#define BINARY(name, cls, members, forward, da, db, doc) \
  ROW_INFO(name, binary, cls, members, #forward, doc, {#da, #db})
#define TERNARY0(name, cls, members, forward, doc) \
  ROW_INFO(name, ternary, cls, members, #forward, doc)
#define TERNARY(name, cls, members, forward, da, db, dc, doc) \
  ROW_INFO(name, ternary, cls, members, #forward, doc, {#da, #db, #dc})
#define COMPARE(name, cls, forward, doc) ROW_INFO(name, compare, cls, (), #forward, doc)
#define PREDICATE(name, cls, forward, doc) ROW_INFO(name, predicate, cls, (), #forward, doc)

/// The rows, indexed by Row.
inline constexpr RowInfo row_infos[] = {
#include "core/ops/elementwise.def"
};

#undef ROW_INFO
#undef ROW_TEXT

constexpr const RowInfo& row_info(Row row) { return row_infos[static_cast<size_t>(row)]; }

/// The number of tensor inputs of a row.
constexpr int input_count(RowKind kind) {
  if (kind == RowKind::ternary) return 3;
  return kind == RowKind::binary || kind == RowKind::compare ? 2 : 1;
}

/// Whether a row gives bool.
constexpr bool gives_bool(RowKind kind) {
  return kind == RowKind::compare || kind == RowKind::predicate;
}

}  // namespace cresset
