// A description of every tensor that a host language holds.
#include "core/dispatch/snapshot.h"

#include <sstream>
#include <unordered_map>

namespace cresset {

std::string snapshot_json(const HandleTable& handles) {
  std::ostringstream out;
  std::unordered_map<const Storage*, size_t> storages;
  const char* separator = "[";
  handles.each([&](int64_t id, const Tensor& t, uint32_t depth) {
    const Storage& storage = t.storage();
    size_t number = storages.try_emplace(&storage, storages.size()).first->second;
    out << separator << "{\"id\":" << id << ",\"dtype\":\"" << t.dtype() << "\",\"shape\":[";
    for (int64_t d = 0; d < t.dim(); ++d) out << (d ? "," : "") << t.size(d);
    out << "],\"device\":\"" << t.device()
        << "\",\"bytes\":" << static_cast<size_t>(t.numel()) * itemsize(t.dtype())
        << ",\"storage\":" << number << ",\"storageBytes\":" << storage.bytes()
        << ",\"requiresGrad\":" << (t.requires_grad() ? "true" : "false") << ",\"depth\":" << depth
        << "}";
    separator = ",\n";
  });
  if (*separator == '[') out << '[';
  out << ']';
  return out.str();
}

}  // namespace cresset
