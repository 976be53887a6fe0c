// teacher_forced_logits MODEL_FOLDER OUTPUT TOKEN...
//
// Feeds a given sequence in steps of 1, 2, 3 ... tokens and writes the logits after each step, float32 rows. What the
// tokens are does not depend on the logits, so two instruction sets can be compared position by position.
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <memory>
#include <vector>

#include "base/error.h"
#include "model/model.h"

namespace {

int Run(const std::string& folder, const std::string& output, const std::vector<oga::TokenId>& tokens) {
  const auto model = oga::LoadOnnxModel(oga::GenaiConfig::FromFolder(folder));
  oga::EngineLimits limits = model->ResolveLimits().limits;
  const uint32_t blocks = static_cast<uint32_t>(tokens.size()) / limits.block_size_slots + 1;
  limits.num_blocks = blocks;
  const auto executor = model->CreateExecutor({limits, {}});
  std::vector<oga::BlockId> table;
  for (uint32_t i = 0; i < blocks; ++i) table.push_back(static_cast<oga::BlockId>(blocks - 1 - i));

  std::ofstream file(output, std::ios::binary);
  size_t past = 0;
  for (size_t count = 1; past < tokens.size(); past += count, ++count) {
    count = std::min(count, tokens.size() - past);
    const std::vector<int32_t> cumulative = {0, static_cast<int32_t>(count)};
    const std::vector<int32_t> lengths = {static_cast<int32_t>(past)};
    const std::vector<int64_t> indices = {static_cast<int64_t>(count) - 1};
    oga::ExecutionBatch batch;
    batch.token_ids = std::span(tokens).subspan(past, count);
    batch.cumulative_lengths = cumulative;
    batch.past_lengths = lengths;
    batch.block_table = table;
    batch.block_table_columns = static_cast<int32_t>(blocks);
    batch.logits_indices = indices;
    const oga::ExecutionResult result = executor->Execute(batch);
    if (result.status != oga::ExecutionStatus::kOk) {
      std::fprintf(stderr, "%s\n", result.message.c_str());
      return 1;
    }
    file.write(reinterpret_cast<const char*>(result.logits.data()),
               static_cast<std::streamsize>(result.logits.size_bytes()));
  }
  return file.good() ? 0 : 1;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 4) {
    std::fprintf(stderr, "usage: teacher_forced_logits MODEL_FOLDER OUTPUT TOKEN...\n");
    return 2;
  }
  std::vector<oga::TokenId> tokens;
  for (int i = 3; i < argc; ++i) tokens.push_back(std::atoi(argv[i]));
  try {
    return Run(argv[1], argv[2], tokens);
  } catch (const oga::Error& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 1;
  }
}
