#include "onnx/onnx_file.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "native/config/config_samples.h"
#include "support/test_data.h"

namespace oga {
namespace {

namespace fs = std::filesystem;
using testing::ErrorOf;

// A copy of the model with external weights, for tests to damage.
class OnnxFiles : public ::testing::Test {
 protected:
  void SetUp() override {
    fs::remove_all(folder_);
    fs::create_directories(folder_);
    for (const char* file : {"model.onnx", "model.onnx.data"}) {
      fs::copy_file(test::DataPath("models/external/") + file, folder_ / file);
    }
  }
  void TearDown() override { fs::remove_all(folder_); }

  void ExpectRefused(StatusCode code, std::initializer_list<std::string> parts) const {
    const Error error = ErrorOf([&] { CheckOnnxFiles(graph_); });
    EXPECT_EQ(error.code(), code) << error.message();
    for (const std::string& part : parts) EXPECT_CONTAINS(error.message(), part);
  }

  fs::path folder_ = fs::path(::testing::TempDir()) / "oga_onnx_files \xE6\xA8\xA1";
  fs::path graph_ = folder_ / "model.onnx";
  fs::path weights_ = folder_ / "model.onnx.data";
};

TEST_F(OnnxFiles, AreAcceptedWhole) {
  EXPECT_NO_THROW(CheckOnnxFiles(graph_));
  EXPECT_NO_THROW(CheckOnnxFiles(test::DataPath("models/separate/model.onnx")));
  fs::create_symlink(graph_, folder_ / "link.onnx");
  EXPECT_NO_THROW(CheckOnnxFiles(folder_ / "link.onnx"));
}

TEST_F(OnnxFiles, TellHowLargeTheyAre) {
  const OnnxFileBytes external = CheckOnnxFiles(graph_);
  EXPECT_EQ(external.graph, fs::file_size(graph_));
  EXPECT_GT(external.external, 0u);
  EXPECT_LE(external.external, fs::file_size(weights_));
  EXPECT_GT(external.external, fs::file_size(weights_) / 2) << "there may be gaps between weights, but few";
  EXPECT_EQ(CheckOnnxFiles(test::DataPath("models/separate/model.onnx")).external, 0u);
}

TEST_F(OnnxFiles, NameAGraphThatCannotBeOpened) {
  fs::remove(graph_);
  ExpectRefused(StatusCode::kNotFound, {graph_, "No such file"});
  fs::create_symlink(folder_ / "nowhere", graph_);
  ExpectRefused(StatusCode::kNotFound, {graph_});
  fs::remove(graph_);
  fs::create_directory(graph_);
  ExpectRefused(StatusCode::kIoError, {graph_, "is a folder; it must be a file"});
}

TEST_F(OnnxFiles, NameAGraphThatIsNotWhole) {
  // Many lengths: the check must neither accept a part nor read behind its end.
  const auto whole = fs::file_size(graph_);
  for (uintmax_t length = whole - 1; length > 0; length = length * 9 / 10) {
    fs::resize_file(graph_, length);
    ExpectRefused(StatusCode::kModelError, {graph_, std::to_string(length)});
  }
  fs::resize_file(graph_, 0);
  ExpectRefused(StatusCode::kModelError, {graph_, "0 bytes", "holds no graph"});
  std::ofstream(graph_) << "version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 1\n";
  ExpectRefused(StatusCode::kModelError, {graph_, "not a whole ONNX file"});
}

TEST_F(OnnxFiles, NameWeightsThatCannotBeOpened) {
  fs::remove(weights_);
  ExpectRefused(StatusCode::kNotFound, {weights_, graph_, "No such file"});
  fs::create_directory(weights_);
  ExpectRefused(StatusCode::kIoError, {weights_, "is a folder; it must be a file"});
}

TEST_F(OnnxFiles, NameWeightsThatAreIncomplete) {
  const std::string whole = std::to_string(fs::file_size(weights_));
  for (const uintmax_t length : {fs::file_size(weights_) - 1, fs::file_size(weights_) / 2, uintmax_t{0}}) {
    fs::resize_file(weights_, length);
    ExpectRefused(StatusCode::kModelError, {weights_, "incomplete", Message("it has ", length, " bytes"), "tensor '"});
  }
  ExpectRefused(StatusCode::kModelError, {whole});
}

}  // namespace
}  // namespace oga
