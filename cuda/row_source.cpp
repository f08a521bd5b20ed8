// The CUDA source of one elementwise kernel, written from its row's formula text.
#include "cuda/row_source.h"

#include <cstring>
#include <string_view>
#include <vector>

#include "cuda/nvrtc.h"

namespace cresset::cuda {
namespace {

constexpr const char* special_names[] = {
#define SPECIAL1(name) #name,
#define SPECIAL2(name) #name,
#include "core/base/special.def"
};

std::string replaced(std::string_view text, std::string_view mark, std::string_view by) {
  std::string out(text);
  const size_t at = out.find(mark);
  if (at != std::string::npos) out.replace(at, mark.size(), by);
  return out;
}

// "(double beta = 1; double threshold = 20;)" to {"beta", "threshold"}.
std::vector<std::string> member_names(std::string_view members) {
  std::vector<std::string> names;
  for (size_t at = members.find("double "); at != std::string_view::npos;
       at = members.find("double ", at)) {
    at += 7;
    size_t end = at;
    while (is_identifier_char(members[end])) ++end;
    names.emplace_back(members.substr(at, end - at));
  }
  return names;
}

std::string number(int k) { return std::to_string(k); }

struct Writer {
  const RowSpec& spec;
  std::string text;

  bool used(int k) const { return spec.used >> k & 1; }
  bool scalar(int k) const { return spec.scalar >> k & 1; }

  void types() {
    text +=
        "namespace cresset::cuda {\nusing V = " + std::string(compute_type(spec.compute)) + ";\n";
    text += "using TOut = " + std::string(memory_type(spec.out)) + ";\n";
    for (int k = 0; k < most_inputs; ++k)
      if (used(k)) text += "using T" + number(k) + " = " + memory_type(spec.in[k]) + ";\n";
    const bool narrow = spec.layout == Layout::Strided32 || spec.layout == Layout::Tiled;
    text += "using Index = " + std::string(narrow ? "int" : "int64_t");
    text += ";\n#define PACK " + number(spec.pack) + "\n";
    if (spec.layout == Layout::Flat) text += "#define FLAT\n";
    if (spec.layout == Layout::Tiled) tiles();
    text += "#define ADD_OFFSETS ";
    for (int k = 0; k <= most_inputs; ++k) {
      if (k < most_inputs && (!used(k) || scalar(k))) continue;
      text += "offsets[" + number(k) + "] += at * space.strides[" + number(k) + "][d]; ";
    }
    text += "\n";
  }

  // The shared memory of the turned operands: filled with the threads along dim 1, read along dim
  // 0.
  void tiles() {
    std::string arrays, fill, put;
    for (int k = 0; k < most_inputs; ++k) {
      if (!(spec.turned >> k & 1)) continue;
      const std::string n = number(k), tile = "tile" + n;
      arrays += "__shared__ T" + n + " " + tile + "[32][33]; ";
      fill += tile + "[x][y] = static_cast<const T" + n + "*>(args.in[" + n + "])[offsets[" + n +
              "] + a * space.strides[" + n + "][0] + b * space.strides[" + n + "][1]]; ";
      put += "in.p" + n + ".v[0] = " + tile + "[y][x]; ";
    }
    text += "#define TILED\n#define TILES " + arrays + "\n#define FILL_TILES " + fill +
            "\n#define PUT_TILES " + put + "\n";
  }

  // The row's struct, as core/ops/row_structs.h has it, with the one method that is called.
  void row() {
    const bool copies = spec.row == copy_row;
    const RowInfo* info = copies ? nullptr : &row_infos[spec.row];
    text += "struct Row {\n";
    const std::vector<std::string> members =
        copies ? std::vector<std::string>{} : member_names(info->members);
    for (const std::string& m : members) text += "double " + m + ";\n";
    text += "static Row load(const double* p) { Row r;";
    for (size_t i = 0; i < members.size(); ++i)
      text += " r." + members[i] + " = p[" + std::to_string(i) + "];";
    text += " return r; }\n";
    const char* formula = copies                ? "x"
                          : spec.derivative < 0 ? info->forward
                                                : info->derivative[spec.derivative];
    text += spec.derivative < 0 ? "auto" : "V";
    text += " compute(";
    const int inputs = copies ? 1 : input_count(info->kind);
    std::vector<std::string> names;
    if (spec.derivative >= 0) names.push_back("g");
    if (inputs == 1) names.push_back("x");
    if (inputs > 1) names.insert(names.end(), {"a", "b"});
    if (inputs > 2) names.push_back("c");
    if (spec.derivative >= 0) names.push_back("y");
    for (size_t i = 0; i < names.size(); ++i) text += (i ? ", const V& " : "const V& ") + names[i];
    text += ") const { return " + std::string(formula) + "; }\n};\n";
  }

  // Which operand stands at each parameter of compute(); unread ones are given a used one.
  std::vector<int> parameters() const {
    if (spec.row == copy_row) return {0};
    const int inputs = input_count(row_infos[spec.row].kind);
    if (spec.derivative < 0) {
      std::vector<int> list;
      for (int k = 0; k < inputs; ++k) list.push_back(k);
      return list;
    }
    std::vector<int> list{0, 1};
    if (inputs > 1) list.push_back(2);
    if (inputs > 2) list.push_back(3);
    list.push_back(4);
    for (int& k : list)
      if (!used(k)) k = 0;
    return list;
  }

  void inputs() {
    text +=
        "template <class T> inline V scalar_operand(const RowArgs& args, int k) {\n"
        "  if (args.in[k]) return from_memory<V>(*static_cast<const T*>(args.in[k]));\n"
        "  return *reinterpret_cast<const V*>(args.numbers[k]);\n}\n"
        "template <int N> struct Inputs {\n";
    for (int k = 0; k < most_inputs; ++k)
      if (used(k))
        text += scalar(k) ? "V p" + number(k) + ";\n"
                          : "Pack<T" + number(k) + ", N> p" + number(k) + ";\n";
    text += "inline void load(const RowArgs& args, int64_t at) {\n";
    for (int k = 0; k < most_inputs; ++k) {
      if (!used(k)) continue;
      const std::string n = number(k);
      text += scalar(k) ? "p" + n + " = scalar_operand<T" + n + ">(args, " + n + ");\n"
                        : "p" + n + " = load_pack<N>(static_cast<const T" + n + "*>(args.in[" + n +
                              "]) + at);\n";
    }
    text +=
        "}\ninline void load(const RowArgs& args, const Space<Index>& space, const Index* "
        "offsets) {\n";
    for (int k = 0; k < most_inputs; ++k) {
      if (!used(k)) continue;
      const std::string n = number(k);
      if (scalar(k)) {
        text += "p" + n + " = scalar_operand<T" + n + ">(args, " + n + ");\n";
        continue;
      }
      if (spec.turned >> k & 1) continue;
      text += "{ const T" + n + "* from = static_cast<const T" + n + "*>(args.in[" + n +
              "]) + offsets[" + n + "];\nif (N > 1 && space.splat[" + n + "]) { const T" + n +
              " e = *from; for (int j = 0; j < N; ++j) p" + n + ".v[j] = e; } else p" + n +
              " = load_pack<N>(from); }\n";
    }
    text +=
        "}\n};\ntemplate <int N> inline auto apply(const Row& row, const Inputs<N>& in, int j) "
        "{\nreturn row.compute(";
    bool first = true;
    for (const int k : parameters()) {
      if (!first) text += ", ";
      first = false;
      const std::string p = "in.p" + number(k);
      text += scalar(k) ? p : "from_memory<V>(" + p + ".v[j])";
    }
    text += ");\n}\n}\n";
  }
};

}  // namespace

bool calls_special(const char* formula) {
  for (const char* name : special_names) {
    const size_t length = std::strlen(name);
    for (const char* p = std::strstr(formula, name); p; p = std::strstr(p + 1, name))
      if ((p == formula || !is_identifier_char(p[-1])) && !is_identifier_char(p[length]))
        return true;
  }
  return false;
}

std::string prelude(bool complex, bool special) {
  std::string text(embedded_text("std_shim.cuh"));
  if (complex) text += embedded_text("complex_shim.cuh");
  if (special)
    text += embedded_text("special.h");
  else
    text += "namespace cresset::scalar { inline constexpr double pi = 3.14159265358979323846; }\n";
  text += embedded_text("scalar_math.h");
  if (special) {
    text += embedded_text("bessel.h");
    text += embedded_text("polynomials.h");
  }
  text += replaced(embedded_text("num.h"), "CRESSET_SPECIALS",
                   special ? embedded_text("special.def") : "");
  if (complex)
    text += embedded_text("cplx.h");
  else
    text += "namespace cresset { template <class R> struct Cplx; }\n";
  text += embedded_text("memory.cuh");
  return text;
}

const char* memory_type(DType dtype) {
  switch (dtype) {
    case DType::Bool: return "bool";
    case DType::UInt8: return "uint8_t";
    case DType::Int8: return "int8_t";
    case DType::Int16: return "int16_t";
    case DType::Int32: return "int32_t";
    case DType::Int64: return "int64_t";
    case DType::Float16: return "Half";
    case DType::BFloat16: return "BFloat16";
    case DType::Float32: return "float";
    case DType::Float64: return "double";
    case DType::Complex64: return "Cplx<float>";
    default: return "Cplx<double>";
  }
}

const char* compute_type(Compute compute) {
  constexpr const char* names[] = {"Num<float>", "Num<double>", "Num<int64_t>", "Cplx<float>",
                                   "Cplx<double>"};
  return names[static_cast<int>(compute)];
}

bool needs_complex(const RowSpec& spec) {
  bool complex =
      spec.compute == Compute::C64 || spec.compute == Compute::C128 || is_complex(spec.out);
  for (int k = 0; k < most_inputs; ++k) complex |= (spec.used >> k & 1) && is_complex(spec.in[k]);
  return complex;
}

bool needs_special(const RowSpec& spec) {
  if (spec.row == copy_row) return false;
  const RowInfo& info = row_infos[spec.row];
  return calls_special(spec.derivative < 0 ? info.forward : info.derivative[spec.derivative]);
}

std::string row_body(const RowSpec& spec) {
  Writer w{spec, std::string(embedded_text("elementwise_args.h"))};
  w.types();
  w.row();
  w.inputs();
  w.text += embedded_text("elementwise.cuh");
  return w.text;
}

std::string row_source(const RowSpec& spec) {
  return prelude(needs_complex(spec), needs_special(spec)) + row_body(spec);
}

}  // namespace cresset::cuda
