// Which calls may hold tensors of more than one device.
#include "core/dispatch/frame.h"

#include <algorithm>
#include <iterator>
#include <string_view>

namespace cresset {
namespace {

// These move values themselves, or treat each tensor for itself.
bool takes_several_devices(std::string_view op) {
  constexpr std::string_view names[] = {"copy_",      "_backward",  "_grad",       "_same_tensor",
                                        "_set_grad",  "_index",     "index_put",   "_index_put_",
                                        "_set_data_", "_fused_sgd", "_fused_adam", "_zero_grads",
                                        "_ctc_loss"};
  return std::find(std::begin(names), std::end(names), op) != std::end(names);
}

bool is_host_number(const Device& d, bool number) { return d.is_cpu() && number; }

}  // namespace

void Frame::mix_devices(const Tensor& t) {
  const bool meta = t.is_meta() || device_.is_meta();
  if (!meta && is_host_number(t.device(), t.dim() == 0)) return;
  if (!meta && is_host_number(device_, number_)) {
    device_ = t.device();
    number_ = t.dim() == 0;
    return;
  }
  if (!meta && takes_several_devices(op_)) return;
  fail(ErrorKind::Device, op_, ": expected all tensors on one device, got ", device_, " and ",
       t.device());
}

}  // namespace cresset
