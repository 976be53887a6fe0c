// The steps of a packed batch that tests/models/scenario.py wrote beside a model, and the logits they must produce.
#pragma once

#include <cstdint>
#include <fstream>
#include <span>
#include <sstream>
#include <stdexcept>
#include <string>
#include <vector>

#include "step/execution_batch.h"

namespace oga::testing {

struct ScenarioStep {
  std::vector<TokenId> ids;
  std::vector<int32_t> cumulative;
  std::vector<int32_t> past;
  std::vector<BlockId> table;
  std::vector<int64_t> indices;
  std::vector<BlockCopy> copies;

  ExecutionBatch Batch(int32_t columns) const {
    ExecutionBatch batch;
    batch.token_ids = ids;
    batch.cumulative_lengths = cumulative;
    batch.past_lengths = past;
    batch.block_table = table;
    batch.block_table_columns = columns;
    batch.logits_indices = indices;
    batch.block_copies = copies;
    return batch;
  }
};

struct Scenario {
  uint32_t num_blocks = 0;
  uint32_t block_size = 0;
  int32_t columns = 0;
  std::vector<ScenarioStep> steps;
  std::vector<float> expected;  // the logits of all steps, in order
};

// A line is a name, a count, and that many numbers.
template <typename Number>
std::vector<Number> ReadLine(std::istream& in, const std::string& wanted) {
  std::string name;
  size_t count = 0;
  if (!(in >> name >> count) || name != wanted) throw std::runtime_error("scenario: expected " + wanted);
  std::vector<Number> numbers(count);
  for (Number& number : numbers) in >> number;
  return numbers;
}

inline Scenario ReadScenario(const std::string& folder) {
  Scenario scenario;
  std::ifstream in(folder + "/steps.txt");
  const auto pool = ReadLine<uint32_t>(in, "pool");
  scenario.num_blocks = pool.at(0);
  scenario.block_size = pool.at(1);
  scenario.columns = static_cast<int32_t>(pool.at(2));
  while ((in >> std::ws).good()) {
    ScenarioStep& step = scenario.steps.emplace_back();
    step.ids = ReadLine<TokenId>(in, "ids");
    step.cumulative = ReadLine<int32_t>(in, "cumulative");
    step.past = ReadLine<int32_t>(in, "past");
    step.table = ReadLine<BlockId>(in, "table");
    step.indices = ReadLine<int64_t>(in, "indices");
    const auto copies = ReadLine<BlockId>(in, "copies");
    for (size_t i = 0; i + 1 < copies.size(); i += 2) step.copies.push_back({copies[i], copies[i + 1]});
  }
  std::ifstream values(folder + "/expected.f32", std::ios::binary);
  std::stringstream bytes;
  bytes << values.rdbuf();
  const std::string text = bytes.str();
  scenario.expected.resize(text.size() / sizeof(float));
  text.copy(reinterpret_cast<char*>(scenario.expected.data()), scenario.expected.size() * sizeof(float));
  if (scenario.steps.empty() || scenario.expected.empty()) throw std::runtime_error("no scenario in " + folder);
  return scenario;
}

}  // namespace oga::testing
