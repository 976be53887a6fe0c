// Session options: those that are a choice, and those that are only checked.
#include <gtest/gtest.h>

#include "config/genai_config.h"
#include "native/config/config_refusals.h"
#include "native/config/config_samples.h"

namespace oga {
namespace {

using testing::ErrorOf;
using testing::ExpectRefused;
using testing::InfoLog;
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
      R"({"model": {"decoder": {"session_options": {
          "provider_options": [{"cuda": {"device_id": "0"}}, {"cpu": null}]}}}})");
  EXPECT_EQ(config.providers(), (std::vector<std::string>{"cuda", "cpu"}));
}

TEST(SessionSection, TellsOnlyOfProvidersWithOptions) {
  InfoLog log;
  SmallConfig().WithOverlay(
      R"({"model": {"decoder": {"session_options": {
          "provider_options": [{"cuda": {"device_id": "0"}}, {"cpu": {}}]}}}})");
  ASSERT_EQ(InfoLog::lines().size(), 1u);
  EXPECT_CONTAINS(InfoLog::lines()[0], "provider_options[0].cuda");
  EXPECT_EQ(InfoLog::lines()[0].find("provider_options[1]"), std::string::npos) << InfoLog::lines()[0];
}

TEST(SessionSection, RefusesAProviderWhoseNameHoldsANul) {
  const Error error = ErrorOf([] {
    SmallConfig().WithOverlay(
        R"({"model": {"decoder": {"session_options": {"provider_options": [{"cpu\u0000x": {}}]}}}})");
  });
  EXPECT_EQ(error.code(), StatusCode::kInvalidArgument);
  EXPECT_EQ(error.field(), "model.decoder.session_options.provider_options[0]");
}

// A value that is not used is checked all the same: a mistake in it would come to light only with another build.
TEST(SessionSection, ChecksOptionsThatItDoesNotUse) {
  const struct {
    const char* key;
    const char* value;
    const char* wanted;
  } rows[] = {{"log_severity_level", "5", "from 0 to 4"},
              {"log_severity_level", "-1", "from 0 to 4"},
              {"log_verbosity_level", "-1", "from 0 to 2147483647"},
              {"log_id", "0", "a string"},
              {"enable_cpu_mem_arena", "0", "true or false"},
              {"enable_mem_pattern", "0", "true or false"},
              {"enable_profiling", "0", "a string"},
              {"graph_optimization_level", "0", "a string"},
              {"custom_ops_library", "0", "a string"},
              {"config_entries", "0", "an object"}};
  for (const auto& row : rows) {
    const std::string path = Message("model.decoder.session_options.", row.key);
    const std::string found = Message("is ", row.value, ";");
    const std::string overlay =
        Message(R"({"model": {"decoder": {"session_options": {")", row.key, "\": ", row.value, "}}}}");
    ExpectRefused({overlay.c_str(), path.c_str(), found.c_str(), row.wanted});
  }
}

TEST(SessionSection, RefusesValuesThatNoSessionTakes) {
  const WrongValue rows[] = {
      {R"({"model": {"decoder": {"session_options": []}}})", "model.decoder.session_options", "is an empty list",
       "an object"},
      {R"({"model": {"decoder": {"session_options": {"intra_op_num_threads": -1}}}})",
       "model.decoder.session_options.intra_op_num_threads", "is -1", "from 0 to 4096"},
      {R"({"model": {"decoder": {"session_options": {"inter_op_num_threads": "2"}}}})",
       "model.decoder.session_options.inter_op_num_threads", "is the string '2'", "an integer"},
      {R"({"model": {"decoder": {"session_options": {"cpu_matmul": "int8"}}}})",
       "model.decoder.session_options.cpu_matmul", "is the string 'int8'", "\"auto\", \"fp32\" or \"bf16\""},
      {R"({"model": {"decoder": {"session_options": {"cpu_matmul": 16}}}})", "model.decoder.session_options.cpu_matmul",
       "is 16", "a string"},
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
