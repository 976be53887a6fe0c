#include "native/operators/cpu/product_case.h"

#include <cmath>
#include <fstream>

#include "operators/cpu/cpu_operators.h"
#include "ort/io_binding.h"

namespace oga::operators {

namespace {

template <typename T>
std::vector<T> ReadRaw(const std::string& path) {
  std::ifstream file(path, std::ios::binary | std::ios::ate);
  std::vector<T> values(static_cast<size_t>(file.tellg()) / sizeof(T));
  file.seekg(0);
  file.read(reinterpret_cast<char*>(values.data()), static_cast<std::streamsize>(values.size() * sizeof(T)));
  return values;
}

}  // namespace

ProductCase::ProductCase(const std::string& name)
    : path_(test::DataPath(name + ".onnx")),
      x_(ReadRaw<float>(test::DataPath(name + ".x.f32"))),
      y_(ReadRaw<double>(test::DataPath(name + ".y.f64"))) {}

std::vector<float> ProductCase::Run(const ort::Session& session, int64_t first, int64_t count) const {
  std::vector<float> in(x_.begin() + first * k(), x_.begin() + (first + count) * k());
  std::vector<float> out(static_cast<size_t>(count * n()), -1.0f);
  std::vector<int64_t> dims(session.inputs()[0].dims.size(), 1);
  dims[dims.size() - 2] = count;
  const auto tensor = [&](std::vector<float>& values, int64_t width) {
    dims.back() = width;
    return ort::Tensor(session, AddressOf(values.data()), values.size() * sizeof(float), dims,
                       ort::ElementType::kFloat);
  };
  ort::IoBinding binding(session);
  binding.BindInput("x", tensor(in, k()));
  binding.BindOutput("y", tensor(out, n()));
  session.Run(binding);
  return out;
}

std::vector<float> ProductCase::Run(const CpuSettings& options) const {
  return Run(ort::Session(path_, CpuSessionOptions(options)), 0, kRows);
}

double ProductCase::ErrorOf(const std::vector<float>& output) const {
  double wrong = 0, right = 0;
  for (size_t i = 0; i < y_.size(); ++i) {
    wrong += (output[i] - y_[i]) * (output[i] - y_[i]);
    right += y_[i] * y_[i];
  }
  return std::sqrt(wrong / right);
}

}  // namespace oga::operators
