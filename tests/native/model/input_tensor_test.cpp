#include "model/input_tensor.h"

#include <gtest/gtest.h>

#include <cstring>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "device/cpu/cpu_device.h"
#include "operators/cpu/cpu_operators.h"
#include "ort/session.h"
#include "support/remote_device.h"
#include "support/test_data.h"

namespace oga {
namespace {

struct Copy {
  DeviceAddress target;
  const void* source;
  std::vector<int64_t> values;
};

// Notes what would be sent.
class NotingStream final : public DeviceStream {
 public:
  void CopyToDevice(DeviceAddress target, const void* source, uint64_t bytes) override {
    Copy copy{target, source, std::vector<int64_t>(bytes / sizeof(int64_t))};
    std::memcpy(copy.values.data(), source, bytes);
    copies.push_back(std::move(copy));
  }
  void CopyToHost(void*, DeviceAddress, uint64_t) override { ADD_FAILURE() << "an input was read back"; }
  void CopyWithin(DeviceAddress, DeviceAddress, uint64_t) override { ADD_FAILURE() << "an input was moved"; }
  void Synchronize() override { ADD_FAILURE() << "an input waited"; }

  std::vector<Copy> copies;
};

class InputTensors : public test::WithRuntime {
 protected:
  void Use(std::shared_ptr<const Device> device) {
    ort::SessionOptions options = operators::CpuSessionOptions({});
    options.device = std::move(device);
    session_.emplace(test::DataPath("models/separate/model.onnx"), std::move(options));
    binding_.emplace(*session_);
    tensor_.emplace(*binding_, stream_, session_->inputs()[0].name, ort::ElementType::kInt64, Ledger::Cpu());
  }

  // Writes `first` and what follows it; returns where.
  const void* Write(int64_t count, int64_t first) {
    const void* place = nullptr;
    tensor_->Write<int64_t>({count}, [&](int64_t* to) {
      place = to;
      for (int64_t i = 0; i < count; ++i) to[i] = first + i;
    });
    return place;
  }

  NotingStream stream_;
  std::optional<ort::Session> session_;
  std::optional<ort::IoBinding> binding_;
  std::optional<InputTensor> tensor_;
};

TEST_F(InputTensors, AreWrittenInPlaceWhereTheHostReachesTheDevice) {
  Use(MakeCpuDevice());
  const void* const place = Write(3, 10);
  EXPECT_EQ(Write(2, 20), place);
  EXPECT_TRUE(stream_.copies.empty());
}

TEST_F(InputTensors, AreSentWholeWhereItDoesNot) {
  Use(testing::MakeRemoteDevice());
  const void* const place = Write(3, 10);
  EXPECT_EQ(Write(2, 20), place) << "what is staged once serves again";
  ASSERT_EQ(stream_.copies.size(), 2u);
  EXPECT_EQ(stream_.copies[0].values, (std::vector<int64_t>{10, 11, 12}));
  EXPECT_EQ(stream_.copies[1].values, (std::vector<int64_t>{20, 21}));
  EXPECT_EQ(stream_.copies[1].target, stream_.copies[0].target);
  EXPECT_EQ(stream_.copies[1].source, place);
}

TEST_F(InputTensors, StageMoreWhenTheyGrow) {
  Use(testing::MakeRemoteDevice());
  Write(3, 10);
  Write(100000, 0);
  ASSERT_EQ(stream_.copies.size(), 2u);
  EXPECT_EQ(stream_.copies[1].values.size(), 100000u);
  EXPECT_EQ(stream_.copies[1].values.back(), 99999);
}

}  // namespace
}  // namespace oga
