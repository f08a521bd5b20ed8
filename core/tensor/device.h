// Where a tensor's bytes live.
#pragma once

#include <cstdint>
#include <ostream>

namespace cresset {

enum class DeviceType : uint8_t { CPU, CUDA, Meta };
constexpr int device_type_count = 3;

/// A device type and an index; `cpu` and `meta` always have index 0, `cuda` alone has -1 until
/// `resolve_device` names the current one.
struct Device {
  DeviceType type = DeviceType::CPU;
  int8_t index = 0;
  bool operator==(const Device&) const = default;
  bool is_cpu() const { return type == DeviceType::CPU; }
  bool is_cuda() const { return type == DeviceType::CUDA; }
  bool is_meta() const { return type == DeviceType::Meta; }
};

inline const char* name(DeviceType t) {
  return t == DeviceType::CPU ? "cpu" : t == DeviceType::CUDA ? "cuda" : "meta";
}

inline std::ostream& operator<<(std::ostream& os, Device d) {
  os << name(d.type);
  if (d.is_cuda() && d.index >= 0) os << ':' << int{d.index};
  return os;
}

}  // namespace cresset
