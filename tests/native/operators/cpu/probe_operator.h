// An operator in the place of one of ours that does what a test asks: while its kernel is made, while shapes are
// inferred, and when it runs. Stands on ProductOp as our operators do.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "operators/cpu/kernel_context.h"
#include "operators/cpu/node_info.h"
#include "operators/cpu/product_op.h"
#include "ort/custom_operators.h"
#include "ort/session.h"

namespace oga::operators {

struct Probe {
  std::string domain = "oga";
  std::string name = "Gemm";
  size_t inputs = 3;  // all of them optional, of any type
  std::vector<ort::ElementType> outputs = {ort::ElementType::kFloat};

  std::function<void(const NodeInfo&)> on_load = [](const NodeInfo&) {};
  std::function<void(ort::abi::ShapeInferContext*)> on_inference;  // empty: shapes are not inferred
  std::function<void(const KernelContext&)> on_run = [](const KernelContext&) {};
  int kernels = 0;  // that live
};

// Loads a graph whose node of that name is the probe, which outlives the session.
std::unique_ptr<const ort::Session> LoadWithProbe(const std::string& path, Probe* probe, int threads = 2);

}  // namespace oga::operators
