// The one exception type of the core, and the macros CHECK (user mistakes) and ASSERT (our bugs).
#pragma once

#include <cstdint>
#include <exception>
#include <ostream>
#include <span>
#include <string>
#include <type_traits>
#include <utility>

#include "core/base/api.h"

namespace cresset {

/// Each kind becomes one error class in JavaScript: Shape is ShapeError.
enum class ErrorKind : uint8_t {
  Shape,
  DType,
  Device,
  Index,
  Value,
  Type,
  Autograd,
  OutOfMemory,
  NotImplemented,
  Internal
};

/// "ShapeError" for ErrorKind::Shape.
CRESSET_API const char* name(ErrorKind kind);

class Error : public std::exception {
 public:
  Error(ErrorKind error_kind, std::string text) : kind(error_kind), message(std::move(text)) {}
  const char* what() const noexcept override { return message.c_str(); }

  ErrorKind kind;
  std::string message;
};

namespace detail {

/// One part of a message, written only when the error is raised.
struct MessagePart {
  const void* value;
  void (*write)(std::ostream&, const void*);
};

CRESSET_API void write_list(std::ostream& stream, std::span<const int64_t> values);
CRESSET_API void write_number(std::ostream& stream, double value);

template <class T> void write_part(std::ostream& stream, const void* part) {
  const T& value = *static_cast<const T*>(part);
  if constexpr (std::is_same_v<T, bool>) {
    stream << (value ? "true" : "false");
  } else if constexpr (std::is_same_v<T, float>) {
    stream << value;
  } else if constexpr (std::is_floating_point_v<T>) {
    write_number(stream, static_cast<double>(value));
  } else if constexpr (std::is_same_v<T, uint8_t> || std::is_same_v<T, int8_t>) {
    stream << static_cast<int>(value);
  } else if constexpr (std::is_convertible_v<const T&, std::span<const int64_t>>) {
    write_list(stream, value);
  } else {
    stream << value;
  }
}

[[noreturn]] CRESSET_API void throw_error(ErrorKind kind, std::span<const MessagePart> parts);
[[noreturn]] CRESSET_API void throw_assertion(const char* condition, const char* file, int line);

}  // namespace detail

/// Throws Error. Numbers, strings, lists of int64_t (`[3, 4]`) and whatever has `<<` may be parts.
template <class... Parts>
[[noreturn, gnu::cold, gnu::noinline]] void fail(ErrorKind kind, const Parts&... parts) {
  static_assert(sizeof...(Parts) > 0, "an error needs a message");
  const detail::MessagePart list[] = {
      {static_cast<const void*>(&parts), &detail::write_part<Parts>}...};
  detail::throw_error(kind, list);
}

}  // namespace cresset

/// CHECK(dim < n, Index, "softmax: expected dim < ", n, ", got ", dim): for mistakes of the user.
#define CHECK(condition, kind, ...)                             \
  do {                                                          \
    if (!(condition)) [[unlikely]] {                            \
      ::cresset::fail(::cresset::ErrorKind::kind, __VA_ARGS__); \
    }                                                           \
  } while (false)

/// For what only a bug of ours can break: throws Internal with the condition, file and line.
#define ASSERT(condition)                                                 \
  do {                                                                    \
    if (!(condition)) [[unlikely]] {                                      \
      ::cresset::detail::throw_assertion(#condition, __FILE__, __LINE__); \
    }                                                                     \
  } while (false)
