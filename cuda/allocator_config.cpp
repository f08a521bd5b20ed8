// Reads the settings of the CUDA allocator and rounds sizes by them.
#include "cuda/allocator_config.h"

#include <algorithm>
#include <bit>
#include <charconv>
#include <string>

#include "core/base/error.h"

namespace cresset::cuda {
namespace {

constexpr size_t mib = size_t{1} << 20;

// The next multiple of (power of two below) / divisions.
size_t round_to_division(size_t bytes, size_t divisions) {
  if (std::has_single_bit(bytes)) return bytes;
  size_t step = std::bit_floor(bytes) / divisions;
  return (bytes + step - 1) / step * step;
}

// One "key:value,..." text, read from left to right.
class Reader {
 public:
  Reader(const char* source, std::string_view text) : source_(source), text_(text) {}

  AllocatorConfig read() {
    while (!rest().empty()) {
      if (take(',')) continue;
      key_ = word();
      CHECK(take(':'), Value, source_, ": expected \"", key_, ":value\" in \"", text_, "\"");
      option();
      CHECK(rest().empty() || take(','), Value, source_, ": expected a comma after the value of \"",
            key_, "\", got \"", rest(), "\"");
    }
    return config_;
  }

 private:
  std::string_view rest() {
    while (at_ < text_.size() && text_[at_] == ' ') ++at_;
    return text_.substr(at_);
  }
  bool take(char c) {
    bool found = !rest().empty() && text_[at_] == c;
    at_ += found;
    return found;
  }
  std::string_view word() {
    std::string_view all = rest();
    size_t end = std::min(all.find_first_of(":,[] "), all.size());
    at_ += end;
    return all.substr(0, end);
  }
  [[noreturn]] void bad(std::string_view expected, std::string_view got) {
    fail(ErrorKind::Value, source_, ": expected ", expected, " for \"", key_, "\", got \"", got,
         "\"");
  }
  size_t whole(std::string_view expected) {
    std::string_view digits = word();
    size_t value = 0;
    auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
    if (error != std::errc() || end != digits.data() + digits.size()) bad(expected, digits);
    return value;
  }
  size_t megabytes() {
    size_t value = whole("a whole number of MiB");
    return value > unlimited / mib ? unlimited : value * mib;
  }
  double fraction() {
    std::string_view digits = word();
    double value = 0;
    auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
    bool good = error == std::errc() && end == digits.data() + digits.size();
    if (!good || !(value > 0 && value < 1)) bad("a number between 0 and 1", digits);
    return value;
  }
  bool flag() {
    std::string_view value = word();
    if (value == "True" || value == "true") return true;
    if (value == "False" || value == "false") return false;
    bad("True or False", value);
  }
  size_t division() {
    size_t value = whole("a power of two");
    if (!std::has_single_bit(value)) bad("a power of two", std::to_string(value));
    return value == 1 ? 0 : value;
  }

  // "4" for all sizes, or "[256:1,512:2,>:4]": steps for sizes of 256 MiB, 512 MiB and above.
  void divisions() {
    auto& all = config_.divisions;
    if (!take('[')) {
      all.fill(division());
      return;
    }
    size_t filled = 0;
    do {
      if (take('>')) {
        CHECK(take(':'), Value, source_, ": expected \">:value\" in \"", key_, "\"");
        std::fill(all.begin() + static_cast<ptrdiff_t>(filled), all.end(), division());
        filled = all.size();
        continue;
      }
      size_t size = whole("a size in MiB that is a power of two");
      if (!std::has_single_bit(size)) bad("sizes that are powers of two", std::to_string(size));
      CHECK(take(':'), Value, source_, ": expected \"size:value\" in \"", key_, "\"");
      size_t index = std::min<size_t>(std::bit_width(size) - 1, all.size() - 1);
      size_t first = filled == 0 ? 0 : index, value = division();
      std::fill(all.begin() + static_cast<ptrdiff_t>(first),
                all.begin() + static_cast<ptrdiff_t>(index) + 1, value);
      filled = index + 1;
    } while (take(','));
    CHECK(take(']'), Value, source_, ": expected \"]\" after the list of \"", key_, "\"");
  }

  void option() {
    if (key_ == "max_split_size_mb") {
      size_t value = megabytes();
      if (value <= large_segment) bad("more than 20", std::to_string(value / mib));
      config_.max_split_size = value;
    } else if (key_ == "max_non_split_rounding_mb") {
      size_t value = megabytes();
      if (value <= large_segment) bad("more than 20", std::to_string(value / mib));
      config_.max_non_split_rounding = value;
    } else if (key_ == "roundup_power2_divisions") {
      divisions();
    } else if (key_ == "garbage_collection_threshold") {
      config_.garbage_collection_threshold = fraction();
    } else if (key_ == "expandable_segments") {
      config_.expandable_segments = flag();
    } else if (key_ == "backend") {
      std::string_view value = word();
      if (value != "native" && value != "cudaMallocAsync") bad("native or cudaMallocAsync", value);
      config_.backend = value == "native" ? AllocatorBackend::Native : AllocatorBackend::Async;
    } else {
      fail(ErrorKind::Value, source_, ": unknown option \"", key_,
           "\"; expected backend, expandable_segments, garbage_collection_threshold, "
           "max_non_split_rounding_mb, max_split_size_mb or roundup_power2_divisions");
    }
  }

  const char* source_;
  std::string_view text_, key_;
  size_t at_ = 0;
  AllocatorConfig config_;
};

}  // namespace

size_t AllocatorConfig::round(size_t bytes) const {
  if (bytes <= min_block) return min_block;
  size_t log = std::bit_width(bytes) - 1;
  size_t steps = divisions[log < 20 ? 0 : std::min(log - 20, divisions.size() - 1)];
  if (steps > 1 && bytes > min_block * steps) return round_to_division(bytes, steps);
  return (bytes + min_block - 1) / min_block * min_block;
}

AllocatorConfig parse_allocator_config(const char* source, std::string_view text) {
  return Reader(source, text).read();
}

}  // namespace cresset::cuda
