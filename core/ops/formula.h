// Derivatives of elementwise rows as tensor expressions, for higher derivatives.
#pragma once

#include <optional>

#include "core/ops/elementwise.h"

namespace cresset {

/// Derivative `i` of a row: operands are g, a, b, c, y; `params` the row's members.
Tensor row_formula(Row row, int i, const std::optional<Operand> (&operands)[5],
                   const double* params);

/// PyTorch's defaults of a row's members.
CRESSET_API std::span<const double> row_defaults(Row row);

}  // namespace cresset
