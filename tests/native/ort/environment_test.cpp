#include "ort/environment.h"

#include <gtest/gtest.h>

#include "operators/cpu/cpu_operators.h"
#include "ort/io_binding.h"
#include "ort/session.h"
#include "support/test_data.h"

namespace oga::ort {
namespace {

using Environments = test::WithRuntime;

TEST_F(Environments, AreShared) { EXPECT_EQ(Environment::Get(), Environment::Get()); }

TEST_F(Environments, AreReleasedByShutdownWhenNothingUsesThem) {
  const std::weak_ptr<const Environment> first = Environment::Get();
  Shutdown();
  EXPECT_TRUE(first.expired());
  Shutdown();
  EXPECT_NE(Environment::Get()->handle(), nullptr);
}

TEST_F(Environments, OutliveShutdownForTheSessionsThatUseThem) {
  Shutdown();
  auto session = std::make_unique<const Session>(test::DataPath("models/operators/add_one.onnx"),
                                                 operators::CpuSessionOptions({}));
  const std::weak_ptr<const Environment> used = Environment::Get();
  Shutdown();
  ASSERT_FALSE(used.expired());

  float x = 41;
  float y = 0;
  {
    const int64_t dims[] = {1};
    IoBinding binding(*session);
    binding.BindInput("x", Tensor(*session, AddressOf(&x), sizeof(x), dims, ElementType::kFloat));
    binding.BindOutput("y", Tensor(*session, AddressOf(&y), sizeof(y), dims, ElementType::kFloat));
    session->Run(binding);
  }
  EXPECT_EQ(y, 42.0f);

  session.reset();
  EXPECT_TRUE(used.expired());
}

}  // namespace
}  // namespace oga::ort
