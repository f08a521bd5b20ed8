// One struct per row, expanded into the namespace that includes this file: scalars, each SIMD
// target, tensors. There is no include guard, so that every namespace gets its own.
//
// exp_row{}.forward(x), exp_row{}.backward0(g, x, y); binary rows take (g, a, b, y), ternary rows
// (g, a, b, c, y). Members are the row's parameters, in order, doubles with PyTorch's defaults.
// Define ROW_CALL before including to give the methods an attribute.

#ifndef ROW_CALL
#define ROW_CALL
#endif

#define ROW_MEMBERS(...) __VA_ARGS__
#define ROW_IN [[maybe_unused]] const V&

#define ROW_UNARY(members, formula) \
  ROW_MEMBERS members template <class V> ROW_CALL auto forward(const V& x) const { return formula; }
#define ROW_BINARY(members, formula)                                                           \
  ROW_MEMBERS members template <class V> ROW_CALL auto forward(const V& a, const V& b) const { \
    return formula;                                                                            \
  }
#define ROW_TERNARY(members, formula)                               \
  ROW_MEMBERS members template <class V>                            \
  ROW_CALL auto forward(const V& a, const V& b, const V& c) const { \
    return formula;                                                 \
  }
#define ROW_BINARY_GRADIENT(method, formula)                                           \
  template <class V> ROW_CALL V method(ROW_IN g, ROW_IN a, ROW_IN b, ROW_IN y) const { \
    return formula;                                                                    \
  }
#define ROW_TERNARY_GRADIENT(method, formula)                                                    \
  template <class V> ROW_CALL V method(ROW_IN g, ROW_IN a, ROW_IN b, ROW_IN c, ROW_IN y) const { \
    return formula;                                                                              \
  }

#define UNARY0(name, cls, members, formula, doc) \
  struct name##_row {                            \
    ROW_UNARY(members, formula)                  \
  };
#define UNARYZ(name, cls, members, formula, doc) UNARY0(name, cls, members, formula, doc)
#define UNARY(name, cls, members, formula, dx, doc)                                            \
  struct name##_row {                                                                          \
    ROW_UNARY(members, formula)                                                                \
    template <class V> ROW_CALL V backward0(ROW_IN g, ROW_IN x, ROW_IN y) const { return dx; } \
  };
#define BINARY0(name, cls, members, formula, doc) \
  struct name##_row {                             \
    ROW_BINARY(members, formula)                  \
  };
#define BINARY(name, cls, members, formula, da, db, doc) \
  struct name##_row {                                    \
    ROW_BINARY(members, formula)                         \
    ROW_BINARY_GRADIENT(backward0, da)                   \
    ROW_BINARY_GRADIENT(backward1, db)                   \
  };
#define TERNARY0(name, cls, members, formula, doc) \
  struct name##_row {                              \
    ROW_TERNARY(members, formula)                  \
  };
#define TERNARY(name, cls, members, formula, da, db, dc, doc) \
  struct name##_row {                                         \
    ROW_TERNARY(members, formula)                             \
    ROW_TERNARY_GRADIENT(backward0, da)                       \
    ROW_TERNARY_GRADIENT(backward1, db)                       \
    ROW_TERNARY_GRADIENT(backward2, dc)                       \
  };
#define COMPARE(name, cls, formula, doc) BINARY0(name, cls, (), formula, doc)
#define PREDICATE(name, cls, formula, doc) UNARY0(name, cls, (), formula, doc)

#include "core/ops/elementwise.def"

#undef ROW_MEMBERS
#undef ROW_IN
#undef ROW_UNARY
#undef ROW_BINARY
#undef ROW_TERNARY
#undef ROW_BINARY_GRADIENT
#undef ROW_TERNARY_GRADIENT
#undef ROW_CALL
