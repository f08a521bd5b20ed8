// Puts every table of tables.def in its place.
#pragma once

namespace cresset::cuda {

void register_tables();

}  // namespace cresset::cuda
