// How exact, repeatable and watched CUDA work is: the switches of torch.backends and torch.cuda.
#include "core/tensor/math_mode.h"

#include "core/base/error.h"

namespace cresset {
namespace {

struct Switch {
  std::string_view name;
  bool MathMode::*member;
};

constexpr Switch switches[] = {
    {"matmul.allowTf32", &MathMode::matmul_tf32},
    {"matmul.allowFp16ReducedPrecisionReduction", &MathMode::fp16_reduced_reduction},
    {"matmul.allowBf16ReducedPrecisionReduction", &MathMode::bf16_reduced_reduction},
    {"cudnn.allowTf32", &MathMode::conv_tf32},
    {"cudnn.benchmark", &MathMode::conv_benchmark},
    {"cudnn.deterministic", &MathMode::conv_deterministic},
    {"deterministic", &MathMode::deterministic},
    {"launchBlocking", &MathMode::launch_blocking},
};

bool& find(std::string_view name) {
  for (const Switch& s : switches)
    if (name == s.name) return math_mode().*s.member;
  fail(ErrorKind::Value, "cuda: there is no switch \"", name, "\"");
}

}  // namespace

MathMode& math_mode() {
  static MathMode mode;
  return mode;
}

int get_switch(std::string_view name) {
  return name == "syncDebugMode" ? math_mode().sync_debug_mode : find(name);
}

void set_switch(std::string_view name, int value) {
  if (name == "syncDebugMode")
    math_mode().sync_debug_mode = value;
  else
    find(name) = value != 0;
}

}  // namespace cresset
