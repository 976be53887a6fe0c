// A one-product graph of the test data with its activations and the product in double precision.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "operators/cpu/cpu_operators.h"
#include "ort/session.h"
#include "support/test_data.h"

namespace oga::operators {

class ProductCase {
 public:
  static constexpr int64_t kRows = 6;

  // `name` as DataPath takes it, without ".onnx".
  explicit ProductCase(const std::string& name);

  const std::string& path() const { return path_; }
  int64_t k() const { return static_cast<int64_t>(x_.size()) / kRows; }
  int64_t n() const { return static_cast<int64_t>(y_.size()) / kRows; }

  // Rows [first, first + count), all other dimensions but the last being 1.
  std::vector<float> Run(const ort::Session& session, int64_t first, int64_t count) const;
  std::vector<float> Run(const CpuSettings& options) const;
  // |output - product| / |product| over everything.
  double ErrorOf(const std::vector<float>& output) const;

 private:
  std::string path_;
  std::vector<float> x_;
  std::vector<double> y_;
};

}  // namespace oga::operators
