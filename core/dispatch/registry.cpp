// The roll of operators: ids, calls and schemas.
#include <array>
#include <sstream>

#include "core/dispatch/op.h"
#include "core/ops/elementwise.h"
#include "core/ops/formula.h"

namespace cresset {

#define FAMILY(name)                   \
  namespace ops {                      \
  extern const OpEntry name##_ops[];   \
  extern const size_t name##_op_count; \
  }
#include "core/dispatch/families.def"
#undef FAMILY

namespace {

constexpr uint32_t rows = static_cast<uint32_t>(row_count);

struct Roll {
  std::vector<const OpEntry*> entries;
  std::vector<std::string> names;  // rows first, then their in-place forms, then the families
};

std::string schema_name(const char* schema) {
  std::string s(schema);
  return s.substr(0, s.find('('));
}

const Roll& roll() {
  static const Roll* r = [] {
    Roll* roll = new Roll;
    for (const RowInfo& info : row_infos) roll->names.push_back(info.name);
    for (const RowInfo& info : row_infos) roll->names.push_back(std::string(info.name) + "_");
#define FAMILY(name) \
  for (size_t i = 0; i < ops::name##_op_count; ++i) roll->entries.push_back(&ops::name##_ops[i]);
#include "core/dispatch/families.def"
#undef FAMILY
    for (const OpEntry* e : roll->entries) roll->names.push_back(schema_name(e->schema));
    return roll;
  }();
  return *r;
}

// ---- inputs of rows

// Inputs of rows that differ from (Tensor|Scalar self, Tensor|Scalar other).
struct RowSignature {
  const char* row;
  const char* inputs;
};
constexpr const char* tensors_only = "Tensor self, Tensor other";
constexpr const char* number_second = "Tensor self, Tensor|Scalar other";
constexpr RowSignature row_signatures[] = {
    {"pow", "Tensor|Scalar self, Tensor|Scalar exponent"},
    {"heaviside", "Tensor self, Tensor values"},
    {"maximum", tensors_only},
    {"minimum", tensors_only},
    {"fmax", tensors_only},
    {"fmin", tensors_only},
    {"atan2", tensors_only},
    {"hypot", tensors_only},
    {"nextafter", tensors_only},
    {"logaddexp", tensors_only},
    {"logaddexp2", tensors_only},
    {"igamma", tensors_only},
    {"igammac", tensors_only},
    {"gcd", tensors_only},
    {"lcm", tensors_only},
    {"logical_and", tensors_only},
    {"logical_or", tensors_only},
    {"logical_xor", tensors_only},
    {"eq", number_second},
    {"ne", number_second},
    {"lt", number_second},
    {"le", number_second},
    {"gt", number_second},
    {"ge", number_second},
    {"copysign", number_second},
    {"fmod", number_second},
};

std::string row_inputs(const RowInfo& info) {
  for (const RowSignature& s : row_signatures)
    if (std::string_view(s.row) == info.name) return s.inputs;
  switch (input_count(info.kind)) {
    case 1: return "Tensor self";
    case 2: return "Tensor|Scalar self, Tensor|Scalar other";
    default: return "Tensor|Scalar self, Tensor|Scalar a, Tensor|Scalar b";
  }
}

// Bit i: input i may be a plain number.
std::array<uint8_t, row_count> number_masks() {
  std::array<uint8_t, row_count> masks{};
  for (size_t r = 0; r < row_count; ++r) {
    std::string text = row_inputs(row_infos[r]);
    int input = 0;
    for (size_t at = 0; at != std::string::npos; ++input) {
      if (text.compare(at, 13, "Tensor|Scalar") == 0) masks[r] |= static_cast<uint8_t>(1 << input);
      at = text.find(", ", at);
      if (at != std::string::npos) at += 2;
    }
  }
  return masks;
}

thread_local Interceptor* interceptor = nullptr;

void call_row(Row row, bool in_place, Frame& f) {
  const RowInfo& info = row_info(row);
  int n = input_count(info.kind);
  std::array<Operand, 3> in{Operand(Scalar()), Operand(Scalar()), Operand(Scalar())};
  static const std::array<uint8_t, row_count> masks = number_masks();
  // The target of a write is always a tensor.
  uint8_t numbers = masks[static_cast<size_t>(row)] & (in_place ? ~1 : ~0);
  for (int i = 0; i < n; ++i)
    in[i] = numbers & (1 << i) ? Arg<Operand>::read(f) : Operand(f.tensor());
  double params[8];
  for (int i = 0; i < info.param_count; ++i) params[i] = f.next();
  std::span<const double> p(params, info.param_count);
  if (in_place) {
    ops::elementwise_(row, in[0].tensor(), {in.data() + 1, static_cast<size_t>(n - 1)}, p);
    f.begin_results(0);
    return;
  }
  Tensor y = ops::elementwise(row, std::span<const Operand>(in.data(), static_cast<size_t>(n)), p);
  f.begin_results(1);
  f.put_tensor(std::move(y));
}

}  // namespace

void Frame::put_scalar(const Scalar& s) {
  switch (s.kind()) {
    case Scalar::Kind::Bool: put(2), put(s.to_bool()), put(0); return;
    case Scalar::Kind::Float: put(4), put(s.to_double()), put(0); return;
    case Scalar::Kind::Complex: put(5), put(s.to_double()), put(s.to_complex().imag()); return;
    case Scalar::Kind::Int: break;
  }
  int64_t v = s.to_int();
  constexpr int64_t exact = int64_t{1} << 53;
  if (v >= -exact && v <= exact) {
    put(3), put(static_cast<double>(v)), put(0);
  } else {
    put(6), put(static_cast<double>(v >> 32)), put(static_cast<double>(v & 0xffffffff));
  }
}

uint32_t op_count() { return static_cast<uint32_t>(roll().names.size()); }

const char* op_name(uint32_t id) { return roll().names[id].c_str(); }

Interceptor* set_interceptor(Interceptor* i) { return std::exchange(interceptor, i); }

void call(uint32_t id, double* slots, HandleTable& handles) {
  const Roll& r = roll();
  CHECK(id < r.names.size(), Internal, "call: no operator ", id);
  Frame frame(slots, handles, r.names[id].c_str());
  if (interceptor) [[unlikely]]
    interceptor->before(frame.op(), frame);
  if (id < 2 * rows)
    call_row(static_cast<Row>(id % rows), id >= rows, frame);
  else
    r.entries[id - 2 * rows]->invoke(frame);
  if (interceptor) [[unlikely]]
    interceptor->after(r.names[id].c_str());
}

// ---- schemas

namespace {

std::string quoted(const std::string& s) {
  std::string out = "\"";
  for (char c : s) {
    if (c == '"' || c == '\\') out += '\\';
    out += c;
  }
  return out + "\"";
}

// "(double beta = 1; double threshold = 20;)" as arguments; binary rows take them by name only.
std::string row_params(const RowInfo& info, Row row) {
  std::string text(info.members), out;
  std::span<const double> defaults = row_defaults(row);
  size_t index = 0;
  if (info.param_count && input_count(info.kind) > 1) out += ", *";
  for (size_t at = text.find("double "); at != std::string::npos;
       at = text.find("double ", at + 1)) {
    size_t begin = at + 7, end = text.find_first_of(" =;", begin);
    std::ostringstream value;
    value.precision(17);
    value << defaults[index++];
    out += ", float " + text.substr(begin, end - begin) + "=" + value.str();
  }
  return out;
}

// The doc of a row may open with the places it appears in: "[nn] smooth relu".
std::pair<std::string, std::string> row_places(const RowInfo& info) {
  std::string doc(info.doc);
  if (doc.rfind('[', 0) == 0) {
    size_t end = doc.find(']');
    return {doc.substr(1, end - 1), doc.substr(end + 2)};
  }
  if (std::string_view(info.name).starts_with("special_")) return {"special", doc};
  return {"torch method", doc};
}

}  // namespace

std::string schemas_json() {
  std::string out = "[";
  auto add = [&](uint32_t id, const std::string& schema, const std::string& where,
                 const std::string& doc, const std::string& types, bool row) {
    if (out.size() > 1) out += ",\n";
    out += "{\"id\":" + std::to_string(id) + ",\"schema\":" + quoted(schema) +
           ",\"where\":" + quoted(where) + ",\"doc\":" + quoted(doc) +
           ",\"types\":" + quoted(types) + ",\"row\":" + (row ? "true" : "false") + "}";
  };
  for (uint32_t id = 0; id < 2 * rows; ++id) {
    const RowInfo& info = row_infos[id % rows];
    bool in_place = id >= rows;
    auto [where, doc] = row_places(info);
    std::string inputs = row_inputs(info);
    if (in_place) inputs = "Tensor(a!) self" + inputs.substr(inputs.find(" self") + 5);
    std::string schema = std::string(info.name) + (in_place ? "_" : "") + "(" + inputs +
                         row_params(info, static_cast<Row>(id % rows)) + ") -> " +
                         (in_place ? "Tensor(a!)" : "Tensor");
    add(id, schema, where, doc, "", true);
  }
  uint32_t id = 2 * rows;
  for (const OpEntry* e : roll().entries)
    add(id++, e->schema, e->where, e->doc, e->signature(), false);
  return out + "]";
}

}  // namespace cresset
