// The documented example programs do what their page says, on a test model.
#include <array>
#include <cstdio>
#include <fstream>
#include <sstream>

#include <sys/wait.h>

#include "capi/harness.h"

namespace oga::capi_test {
namespace {

struct Printed {
  int exit_status = -1;
  std::string text;  // standard output and standard error
};

Printed RunProgram(const std::string& command) {
  Printed printed;
  FILE* pipe = popen((command + " 2>&1").c_str(), "r");
  if (pipe == nullptr) throw std::runtime_error("cannot start " + command);
  std::array<char, 4096> chunk;
  while (const size_t size = std::fread(chunk.data(), 1, chunk.size(), pipe)) printed.text.append(chunk.data(), size);
  const int status = pclose(pipe);
  if (WIFEXITED(status)) printed.exit_status = WEXITSTATUS(status);
  return printed;
}

std::string Quote(const std::string& word) { return "'" + word + "'"; }

class Examples : public WithEngine, public testing::WithParamInterface<const char*> {
 protected:
  void SetUp() override {
    WithEngine::SetUp();
    path_ = testing::TempDir() + "oga_example_prompts.txt";
  }
  void TearDown() override { std::remove(path_.c_str()); }

  void WritePrompts(const std::string& text) const { std::ofstream(path_) << text; }

  Printed RunExample(const std::string& rest = "") const {
    return RunProgram(Quote(GetParam()) + " " + Quote(ModelFolder()) + " " + Quote(path_) + " " + rest);
  }

  // "NAME, turn ID: TOKENS" of the turn, with the tokens that the library gives us for the same request.
  std::string Line(const char* name, uint64_t turn_id, const Transcript& transcript) const {
    std::ostringstream line;
    line << name << ", turn " << turn_id << ":";
    for (const int32_t token : transcript.tokens) line << ' ' << token;
    line << "\n  " << transcript.endings[0].prompt_tokens << " prompt tokens, "
         << transcript.endings[0].generated_tokens << " generated";
    return line.str();
  }

  Transcript Turn(OgaRequest* request, const std::vector<int32_t>& tokens) {
    const TurnOptionsHandle options = MakeTurnOptions(request);
    Must(OgaTurnOptionsSetMaxGeneratedTokens(options.get(), 6));
    return Finish(request, tokens, options.get());
  }

  std::string path_;
};

TEST_P(Examples, AnswerTwoPromptsAndAFollowUp) {
  WritePrompts("3 10 17 24\n5 6\n9 8\n");
  const Printed printed = RunExample("6");
  EXPECT_EQ(printed.exit_status, 0) << printed.text;
  const RequestHandle first = MakeRequest(engine_.get());
  const RequestHandle second = MakeRequest(engine_.get());
  for (const std::string& line :
       {Line("first", 1, Turn(first.get(), {3, 10, 17, 24})), Line("second", 1, Turn(second.get(), {5, 6})),
        Line("first", 2, Turn(first.get(), {9, 8}))}) {
    EXPECT_NE(printed.text.find(line), std::string::npos) << "wanted\n" << line << "\nin\n" << printed.text;
  }
}

TEST_P(Examples, SayWhatIsWrong) {
  WritePrompts("3 10\n5\n");
  Printed printed = RunExample();
  EXPECT_EQ(printed.exit_status, 1);
  EXPECT_NE(printed.text.find("three lines"), std::string::npos) << printed.text;

  WritePrompts("3 10\n5\n600\n");
  printed = RunExample("2");
  EXPECT_EQ(printed.exit_status, 1);
  EXPECT_NE(printed.text.find("input token 0 is 600"), std::string::npos) << printed.text;

  printed = RunProgram(Quote(GetParam()) + " no/such/folder " + Quote(path_));
  EXPECT_EQ(printed.exit_status, 1);
  EXPECT_NE(printed.text.find("no/such/folder"), std::string::npos) << printed.text;

  printed = RunProgram(Quote(GetParam()));
  EXPECT_EQ(printed.exit_status, 1);
  EXPECT_NE(printed.text.find("usage: two_prompts"), std::string::npos) << printed.text;
}

INSTANTIATE_TEST_SUITE_P(, Examples, testing::Values(OGA_EXAMPLE_C, OGA_EXAMPLE_CPP),
                         [](const auto& info) { return info.index == 0 ? "C" : "Cpp"; });

}  // namespace
}  // namespace oga::capi_test
