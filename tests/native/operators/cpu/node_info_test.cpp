#include "operators/cpu/node_info.h"

#include <gtest/gtest.h>

#include <functional>
#include <optional>
#include <utility>
#include <vector>

#include "native/operators/cpu/probe_operator.h"
#include "support/test_data.h"

namespace oga::operators {
namespace {

constexpr ort::ElementType kFloat = ort::ElementType::kFloat, kInt8 = ort::ElementType::kInt8,
                           kUint8 = ort::ElementType::kUint8;

// Of one of the test's graphs with a node of that operator.
class NodesOfAGraph : public test::WithRuntime {
 protected:
  void Read(const std::string& path, Probe probe, const std::function<void(const NodeInfo&)>& read) {
    int calls = 0;
    probe.on_load = [&](const NodeInfo& info) {
      ++calls;
      read(info);
    };
    LoadWithProbe(test::DataPath(path), &probe);
    EXPECT_GE(calls, 1);
  }

  static Probe Microsofts(const char* name, size_t inputs, std::vector<ort::ElementType> outputs) {
    Probe probe;
    probe.domain = "com.microsoft";
    probe.name = name;
    probe.inputs = inputs;
    probe.outputs = std::move(outputs);
    return probe;
  }
  static Probe Attention() { return Microsofts("PagedAttention", 17, {kFloat, kInt8, kInt8}); }
  static Probe NBits() { return Microsofts("MatMulNBits", 6, {kFloat}); }
};

TEST_F(NodesOfAGraph, TellTheirNameAndAttributes) {
  Read("models/operators/accepted_everything.onnx", Attention(), [](const NodeInfo& info) {
    EXPECT_EQ(info.name(), "/attn");
    EXPECT_EQ(info.Int("num_heads"), 4);
    EXPECT_EQ(info.Float("scale"), 0.3f);
    EXPECT_EQ(info.String("k_quant_type"), "PER_CHANNEL");
  });
}

TEST_F(NodesOfAGraph, HaveNoAttributeThatIsNotSetOrOfAnotherKind) {
  Read("models/operators/accepted_everything.onnx", Attention(), [](const NodeInfo& info) {
    EXPECT_EQ(info.Int("no_such"), std::nullopt);
    EXPECT_EQ(info.Float("no_such"), std::nullopt);
    EXPECT_EQ(info.String("no_such"), std::nullopt);
    EXPECT_EQ(info.Int("k_quant_type"), std::nullopt);
    EXPECT_EQ(info.String("num_heads"), std::nullopt);
  });
}

TEST_F(NodesOfAGraph, TellTypesAndShapesOfTheirInputs) {
  Read("models/operators/accepted_everything.onnx", Attention(), [](const NodeInfo& info) {
    EXPECT_EQ(info.Input(0).type, kFloat);
    EXPECT_EQ(ort::ShapeText(info.Input(0).dims), "[tokens, 64]");
    EXPECT_EQ(info.Input(3).type, kInt8);
    EXPECT_EQ(ort::ShapeText(info.Input(3).dims), "[blocks, 4, 2, 16]");
  });
}

// x, codes, scales, zero points, none, bias.
TEST_F(NodesOfAGraph, MayLackAnInputInTheMiddle) {
  Read("models/matmul_nbits/everything.onnx", NBits(), [](const NodeInfo& info) {
    for (const size_t given : {0, 1, 2, 3, 5}) EXPECT_TRUE(info.HasInput(given)) << given;
    for (const size_t absent : {4, 6, 100}) EXPECT_FALSE(info.HasInput(absent)) << absent;
  });
}

TEST_F(NodesOfAGraph, GiveTheTensorsThatNeverChange) {
  Read("models/matmul_nbits/everything.onnx", NBits(), [](const NodeInfo& info) {
    EXPECT_FALSE(info.Constant(0));
    const auto codes = info.Constant(1);
    ASSERT_TRUE(codes);
    EXPECT_EQ(codes->type, kUint8);
    EXPECT_TRUE(codes->HasShape({37, 4, 32})) << codes->ShapeText();
    EXPECT_NE(codes->data, nullptr);
  });
  Read("models/matmul_nbits/computed.onnx", NBits(), [](const NodeInfo& info) { EXPECT_FALSE(info.Constant(1)); });
}

}  // namespace
}  // namespace oga::operators
