// Names of element types: parsing with PyTorch's aliases, and printing.
#include "core/tensor/dtype.h"

#include <ostream>

#include "core/base/api.h"

namespace cresset {

std::optional<DType> dtype_from_name(std::string_view text) {
  for (int i = 0; i < dtype_count; ++i) {
    if (text == name(static_cast<DType>(i))) return static_cast<DType>(i);
  }
  static constexpr std::pair<std::string_view, DType> aliases[] = {
      {"float", DType::Float32},    {"double", DType::Float64},    {"half", DType::Float16},
      {"short", DType::Int16},      {"int", DType::Int32},         {"long", DType::Int64},
      {"cfloat", DType::Complex64}, {"cdouble", DType::Complex128}};
  for (const auto& [alias, dtype] : aliases) {
    if (text == alias) return dtype;
  }
  return std::nullopt;
}

CRESSET_API std::ostream& operator<<(std::ostream& stream, DType dtype) {
  return stream << name(dtype);
}

}  // namespace cresset
