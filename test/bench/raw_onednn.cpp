// The matrix product of oneDNN alone, as a bound for Cresset's; speaks the protocol of serve.ts.
#include <chrono>
#include <iostream>
#include <map>
#include <oneapi/dnnl/dnnl.hpp>
#include <string>
#include <vector>

namespace {

/// A square float32 product with everything prepared but the execution. Matrices are row-major.
class Product {
 public:
  explicit Product(dnnl::memory::dim n)
      : a_(n * n, 0.5F),
        b_(n * n, 0.25F),
        c_(n * n),
        engine_(dnnl::engine::kind::cpu, 0),
        stream_(engine_) {
    const dnnl::memory::desc desc({n, n}, dnnl::memory::data_type::f32,
                                  dnnl::memory::format_tag::ab);
    primitive_ = dnnl::matmul({dnnl::matmul::desc(desc, desc, desc), engine_});
    arguments_ = {{DNNL_ARG_SRC, {desc, engine_, a_.data()}},
                  {DNNL_ARG_WEIGHTS, {desc, engine_, b_.data()}},
                  {DNNL_ARG_DST, {desc, engine_, c_.data()}}};
  }

  void run() {
    primitive_.execute(stream_, arguments_);
    stream_.wait();
  }

 private:
  std::vector<float> a_, b_, c_;
  dnnl::engine engine_;
  dnnl::stream stream_;
  dnnl::matmul primitive_;
  std::unordered_map<int, dnnl::memory> arguments_;
};

/// Nanoseconds of one product, averaged over at least 100 ms.
double measure(Product& product) {
  using Clock = std::chrono::steady_clock;
  const auto begin = Clock::now();
  for (int calls = 1;; ++calls) {
    product.run();
    const std::chrono::duration<double, std::nano> spent = Clock::now() - begin;
    if (spent.count() >= 100e6) return spent.count() / calls;
  }
}

}  // namespace

int main() {
  const std::map<std::string, dnnl::memory::dim> sizes = {{"matmul.256", 256},
                                                          {"matmul.1024", 1024}};
  const dnnl_version_t* version = dnnl_version();
  std::cout << R"({"version":"oneDNN )" << version->major << '.' << version->minor
            << R"(","rows":["matmul.256","matmul.1024"]})" << std::endl;
  std::map<std::string, Product> products;
  for (std::string name; std::getline(std::cin, name);) {
    const auto size = sizes.find(name);
    if (size == sizes.end()) {
      std::cout << R"({"error":"unknown row"})" << std::endl;
      continue;
    }
    const auto [product, is_new] = products.try_emplace(name, size->second);
    if (is_new) measure(product->second);
    std::cout << R"({"ns":)" << measure(product->second) << '}' << std::endl;
  }
}
