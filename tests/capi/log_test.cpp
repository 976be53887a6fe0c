#include <oga/log.h>

#include <cstring>

#include "capi/harness.h"

namespace oga::capi_test {
namespace {

std::vector<std::string>& Lines() {
  static std::vector<std::string> lines;
  return lines;
}

void Record(const char* string, size_t length) {
  EXPECT_EQ(std::strlen(string), length);
  Lines().emplace_back(string, length);
}

// Something that makes liboga write one info line.
void CauseAnInfoLine() { MakeConfig(R"({"a_key_nobody_knows": 1})"); }

bool WasTold() {
  for (const std::string& line : Lines()) {
    if (line.find("a_key_nobody_knows") != std::string::npos) return true;
  }
  return false;
}

class Log : public testing::Test {
 protected:
  void SetUp() override {
    Lines().clear();
    Must(OgaSetLogCallback(Record));
  }
  void TearDown() override {
    Must(OgaSetLogBool("warning", true));
    Must(OgaSetLogBool("info", false));
    Must(OgaSetLogCallback(nullptr));
  }
};

TEST_F(Log, SaysNothingBelowAWarningUnlessAsked) {
  CauseAnInfoLine();
  EXPECT_FALSE(WasTold());
}

TEST_F(Log, TellsTheCallbackWhatTheChannelCarries) {
  Must(OgaSetLogBool("info", true));
  CauseAnInfoLine();
  EXPECT_TRUE(WasTold());
  for (const std::string& line : Lines()) EXPECT_EQ(line.find('\n'), std::string::npos);
}

TEST_F(Log, EnabledMeansEveryChannel) {
  Must(OgaSetLogBool("enabled", true));
  CauseAnInfoLine();
  EXPECT_TRUE(WasTold());
  Lines().clear();
  Must(OgaSetLogBool("enabled", false));
  CauseAnInfoLine();
  EXPECT_FALSE(WasTold());
}

TEST_F(Log, AnInfoLineDoesNotNeedTheWarningChannel) {
  Must(OgaSetLogBool("enabled", false));
  Must(OgaSetLogBool("info", true));
  CauseAnInfoLine();
  EXPECT_TRUE(WasTold());
}

TEST_F(Log, ARemovedCallbackIsNotCalled) {
  Must(OgaSetLogBool("info", true));
  Must(OgaSetLogCallback(nullptr));
  testing::internal::CaptureStderr();
  CauseAnInfoLine();
  EXPECT_NE(testing::internal::GetCapturedStderr().find("a_key_nobody_knows"), std::string::npos);
  EXPECT_FALSE(WasTold());
}

TEST_F(Log, RefusesAnUnknownChannelAndListsTheKnown) {
  EXPECT_TRUE(Fails(OgaSetLogBool("verbose", true), OgaStatusCode_InvalidArgument, "'warning'"));
  EXPECT_TRUE(Fails(OgaSetLogBool("", true), OgaStatusCode_InvalidArgument, "''"));
}

}  // namespace
}  // namespace oga::capi_test
