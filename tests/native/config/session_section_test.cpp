// Session options: those that are a choice, and those that are only checked.
#include <gtest/gtest.h>

#include "config/genai_config.h"
#include "native/config/config_refusals.h"
#include "native/config/config_samples.h"

namespace oga {
namespace {

using testing::ExpectRefused;
using testing::SmallConfig;
using testing::WrongValue;

TEST(SessionSection, ReadsWhatIsAChoice) {
  const auto read = [](const std::string& options) {
    return SmallConfig()
        .WithOverlay(Message(R"({"model": {"decoder": {"session_options": )", options, "}}}"))
        .decoder()
        .session;
  };
  const SessionConfig session = read(R"({"intra_op_num_threads": 0, "inter_op_num_threads": 4096})");
  EXPECT_EQ(session.intra_op_num_threads, 0);
  EXPECT_EQ(session.inter_op_num_threads, 4096);
  EXPECT_EQ(session.cpu_matmul, operators::CpuMatMul::kAuto);
  EXPECT_EQ(read(R"({"cpu_matmul": "fp32"})").cpu_matmul, operators::CpuMatMul::kFloat);
  EXPECT_EQ(read(R"({"cpu_matmul": "bf16"})").cpu_matmul, operators::CpuMatMul::kBfloat16);
  EXPECT_EQ(read("{}").intra_op_num_threads, std::nullopt);
}

TEST(SessionSection, ReadsProvidersInOrder) {
  const GenaiConfig config = SmallConfig().WithOverlay(
      R"({"model": {"decoder": {"session_options": {"provider_options": [{"cuda": {"device_id": "0"}}, {"cpu": null}]}}}})");
  EXPECT_EQ(config.providers(), (std::vector<std::string>{"cuda", "cpu"}));
}

TEST(SessionSection, RefusesValuesThatNoSessionTakes) {
  const WrongValue rows[] = {
      {R"({"model": {"decoder": {"session_options": []}}})", "model.decoder.session_options", "is an empty list",
       "an object"},
      {R"({"model": {"decoder": {"session_options": {"intra_op_num_threads": -1}}}})",
       "model.decoder.session_options.intra_op_num_threads", "is -1", "from 0 to 4096"},
      {R"({"model": {"decoder": {"session_options": {"inter_op_num_threads": "2"}}}})",
       "model.decoder.session_options.inter_op_num_threads", "is the string '2'", "an integer"},
      {R"({"model": {"decoder": {"session_options": {"enable_mem_pattern": 0}}}})",
       "model.decoder.session_options.enable_mem_pattern", "is 0", "true or false"},
      {R"({"model": {"decoder": {"session_options": {"cpu_matmul": "int8"}}}})",
       "model.decoder.session_options.cpu_matmul", "is the string 'int8'", "\"auto\", \"fp32\" or \"bf16\""},
      {R"({"model": {"decoder": {"session_options": {"cpu_matmul": 16}}}})", "model.decoder.session_options.cpu_matmul",
       "is 16", "a string"},
      {R"({"model": {"decoder": {"session_options": {"log_id": 0}}}})", "model.decoder.session_options.log_id", "is 0",
       "a string"},
      {R"({"model": {"decoder": {"session_options": {"log_severity_level": 9}}}})",
       "model.decoder.session_options.log_severity_level", "is 9", "from 0 to 4"},
      {R"({"model": {"decoder": {"session_options": {"provider_options": {"cuda": {}}}}}})",
       "model.decoder.session_options.provider_options", "is an object", "a list of objects like {\"cpu\": {}}"},
      {R"({"model": {"decoder": {"session_options": {"provider_options": ["cuda"]}}}})",
       "model.decoder.session_options.provider_options[0]", "is the string 'cuda'", "an object like {\"cpu\": {}}"},
      {R"({"model": {"decoder": {"session_options": {"provider_options": [{"cpu": {}}, {}]}}}})",
       "model.decoder.session_options.provider_options[1]", "is an object", "named by its provider"},
      {R"({"model": {"decoder": {"session_options": {"provider_options": [{"cpu": 1}]}}}})",
       "model.decoder.session_options.provider_options[0].cpu", "is 1", "an object"},
      {R"({"model": {"decoder": {"session_options": {"provider_options": [{"": {}}]}}}})",
       "model.decoder.session_options.provider_options[0]", "is an object", "named by its provider"},
  };
  for (const WrongValue& row : rows) ExpectRefused(row);
}

}  // namespace
}  // namespace oga
