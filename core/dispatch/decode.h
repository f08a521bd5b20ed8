// Decodes a frame by a C++ function's parameter types, calls it, encodes the result.
#pragma once

#include "core/dispatch/frame.h"
#include "core/tensor/device_runtime.h"

namespace cresset {

/// Names of an enumeration's values, in order; specialised beside the enumeration:
/// `static constexpr const char* schema = "Reduction(none|mean|sum)"`.
template <class E> struct EnumNames;

template <class T> struct Arg;

/// A device by its number in a frame: type * 256 + index, 255 for the current one.
inline Device device_of_code(int code) {
  return resolve_device({static_cast<DeviceType>(code >> 8), static_cast<int8_t>(code & 255)});
}

#define CRESSET_ARG(type, schema_name, ...)            \
  template <> struct Arg<type> {                       \
    static constexpr const char* schema = schema_name; \
    static type read(Frame& f) { __VA_ARGS__ }         \
  };

CRESSET_ARG(Tensor, "Tensor", return f.tensor();)
CRESSET_ARG(int64_t, "int", return static_cast<int64_t>(f.next());)
CRESSET_ARG(double, "float", return f.next();)
CRESSET_ARG(bool, "bool", return f.next() != 0;)
CRESSET_ARG(DType, "ScalarType", return static_cast<DType>(f.next());)
CRESSET_ARG(Scalar, "Scalar", double kind = f.next(); double a = f.next(); double b = f.next();
            return f.scalar_of(kind, a, b);)
CRESSET_ARG(Operand, "Tensor|Scalar", double kind = f.next(); double a = f.next();
            double b = f.next(); if (kind == 1) return Operand(f.tensor_of(a));
            return Operand(f.scalar_of(kind, a, b));)
CRESSET_ARG(Device, "Device", return device_of_code(static_cast<int>(f.next()));)
CRESSET_ARG(Dims, "int[]", Dims d(static_cast<size_t>(f.next()));
            for (auto& x
                 : d) x = static_cast<int64_t>(f.next());
            return d;)
CRESSET_ARG(TensorList, "Tensor[]", TensorList l(static_cast<size_t>(f.next()));
            for (auto& t
                 : l) t = f.tensor();
            return l;)
CRESSET_ARG(
    std::vector<std::optional<Tensor>>, "Tensor?[]",
    std::vector<std::optional<Tensor>> l(static_cast<size_t>(f.next()));
    for (auto& t
         : l) {
      double id = f.next();
      if (id >= 0) t = f.tensor_of(id);
    } return l;)
CRESSET_ARG(std::vector<Scalar>, "Scalar[]", std::vector<Scalar> l(static_cast<size_t>(f.next()));
            for (auto& s
                 : l) s = Arg<Scalar>::read(f);
            return l;)
CRESSET_ARG(std::vector<double>, "float[]", std::vector<double> l(static_cast<size_t>(f.next()));
            for (auto& x
                 : l) x = f.next();
            return l;)
CRESSET_ARG(std::string, "str", std::string s(static_cast<size_t>(f.next()), ' ');
            for (auto& c
                 : s) c = static_cast<char>(f.next());
            return s;)
CRESSET_ARG(std::optional<Tensor>, "Tensor?", double id = f.next(); if (id < 0) return std::nullopt;
            return f.tensor_of(id);)
CRESSET_ARG(std::optional<int64_t>, "int?", double has = f.next(); double v = f.next();
            if (has == 0) return std::nullopt; return static_cast<int64_t>(v);)
CRESSET_ARG(std::optional<double>, "float?", double has = f.next(); double v = f.next();
            if (has == 0) return std::nullopt; return v;)
CRESSET_ARG(std::optional<bool>, "bool?", double v = f.next(); if (v < 0) return std::nullopt;
            return v != 0;)
CRESSET_ARG(std::optional<DType>, "ScalarType?", double v = f.next();
            if (v < 0) return std::nullopt; return static_cast<DType>(v);)
CRESSET_ARG(std::optional<Scalar>, "Scalar?", double kind = f.next(); double a = f.next();
            double b = f.next(); if (kind == 0) return std::nullopt;
            return f.scalar_of(kind, a, b);)
CRESSET_ARG(std::optional<Operand>, "Tensor|Scalar?", double kind = f.next(); double a = f.next();
            double b = f.next(); if (kind == 0) return std::nullopt;
            if (kind == 1) return Operand(f.tensor_of(a)); return Operand(f.scalar_of(kind, a, b));)
CRESSET_ARG(std::optional<Device>, "Device?", int v = static_cast<int>(f.next());
            if (v < 0) return std::nullopt; return device_of_code(v);)
CRESSET_ARG(std::optional<Dims>, "int[]?", double n = f.next(); if (n < 0) return std::nullopt;
            Dims d(static_cast<size_t>(n)); for (auto& x
                                                 : d) x = static_cast<int64_t>(f.next());
            return d;)
CRESSET_ARG(std::optional<std::vector<double>>, "float[]?", double n = f.next();
            if (n < 0) return std::nullopt; std::vector<double> l(static_cast<size_t>(n));
            for (auto& x
                 : l) x = f.next();
            return l;)
#undef CRESSET_ARG

template <class E>
requires std::is_enum_v<E>
struct Arg<E> {
  static constexpr const char* schema = EnumNames<E>::schema;
  static E read(Frame& f) { return static_cast<E>(static_cast<int>(f.next())); }
};

template <class T> void write_result(Frame& f, T&& result) {
  using R = std::decay_t<T>;
  if constexpr (std::is_same_v<R, Tensor>) {
    f.begin_results(1);
    f.put_tensor(std::forward<T>(result));
  } else if constexpr (std::is_same_v<R, TensorList>) {
    CHECK(result.size() < frame_capacity, NotImplemented, f.op(), ": more than ",
          frame_capacity - 1, " results");
    f.begin_results(result.size());
    for (Tensor& t : result) f.put_tensor(std::move(t));
  } else if constexpr (std::is_same_v<R, Dims>) {
    f.begin_results(result.size());
    for (int64_t v : result) f.put_scalar(Scalar(v));
  } else if constexpr (requires { std::tuple_size<R>::value; }) {
    f.begin_results(std::tuple_size_v<R>);
    std::apply([&](auto&... t) { (f.put_tensor(std::move(t)), ...); }, result);
  } else {
    f.begin_results(1);
    f.put_scalar(Scalar(result));
  }
}

template <class T> constexpr const char* result_schema() {
  if constexpr (std::is_void_v<T>)
    return "()";
  else if constexpr (std::is_same_v<T, Tensor&>)
    return "Tensor(a!)";
  else if constexpr (std::is_same_v<T, Tensor>)
    return "Tensor";
  else if constexpr (std::is_same_v<T, TensorList>)
    return "Tensor[]";
  else if constexpr (std::is_same_v<T, Dims>)
    return "int[]";
  else if constexpr (std::is_same_v<T, Scalar>)
    return "Scalar";
  else if constexpr (std::is_same_v<T, double>)
    return "float";
  else if constexpr (std::is_same_v<T, bool>)
    return "bool";
  else if constexpr (std::is_same_v<T, int64_t>)
    return "int";
  else
    return "(Tensor, ...)";
}

/// The calling glue of one C++ function. In-place functions take `Tensor&` and return `Tensor&`.
template <auto fn> struct Glue;

template <class R, class... P, R (*fn)(P...)> struct Glue<fn> {
  static void invoke(Frame& f) { read<0>(f); }
  /// The types as the C++ side knows them, to be compared with the schema's text.
  static std::string signature() {
    std::string s;
    ((s += s.empty() ? "" : ", ", s += Arg<std::decay_t<P>>::schema), ...);
    return "(" + s + ") -> " + result_schema<R>();
  }

 private:
  // Reads the arguments one after the other, each into a variable of its own, and then calls.
  template <size_t at, class... Done> static void read(Frame& f, Done&... done) {
    if constexpr (at < sizeof...(P)) {
      using Next = std::decay_t<std::tuple_element_t<at, std::tuple<P...>>>;
      Next next = Arg<Next>::read(f);
      read<at + 1>(f, done..., next);
    } else if constexpr (std::is_void_v<R> || std::is_same_v<R, Tensor&>) {
      fn(done...);
      f.begin_results(0);
    } else {
      write_result(f, fn(std::move(done)...));
    }
  }
};

}  // namespace cresset
