// Puts error messages together, off the hot path.
#include "core/base/error.h"

#include <cstdio>
#include <cstdlib>
#include <sstream>

namespace cresset {

const char* name(ErrorKind kind) {
  static constexpr const char* names[] = {
      "ShapeError", "DTypeError",    "DeviceError",      "IndexError",          "ValueError",
      "TypeError",  "AutogradError", "OutOfMemoryError", "NotImplementedError", "InternalError"};
  return names[static_cast<int>(kind)];
}

namespace detail {

void write_list(std::ostream& stream, std::span<const int64_t> values) {
  stream << '[';
  for (size_t i = 0; i < values.size(); ++i) stream << (i == 0 ? "" : ", ") << values[i];
  stream << ']';
}

void write_number(std::ostream& stream, double value) {
  // The shortest text that reads back as the same double: 0.1, not 0.10000000000000001.
  char text[32];
  for (int digits = 1; digits <= 17; ++digits) {
    std::snprintf(text, sizeof(text), "%.*g", digits, value);
    if (std::strtod(text, nullptr) == value) break;
  }
  stream << text;
}

void throw_error(ErrorKind kind, std::span<const MessagePart> parts) {
  std::ostringstream stream;
  for (const MessagePart& part : parts) part.write(stream, part.value);
  throw Error(kind, std::move(stream).str());
}

void throw_assertion(const char* condition, const char* file, int line) {
  fail(ErrorKind::Internal, "internal: expected ", condition, " at ", file, ":", line);
}

}  // namespace detail
}  // namespace cresset
