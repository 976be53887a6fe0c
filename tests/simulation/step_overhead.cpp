// Microseconds per decode step spent outside the model: plan, reserve, pack, sample a tiny vocabulary, commit, drain.
//
// Prints one line per number of rows: the median over many steps, and per row. A second block holds the rows at 16 and
// varies what must not matter: dormant residents, waiting requests, pool size. A third one is the sampler's cost on a wide
// vocabulary.
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <vector>

#include "engine/engine.h"
#include "simulation/constant_executor.h"
#include "simulation/sampler_cost.h"

namespace {

using namespace oga;
using namespace oga::testing;

double MedianStepMicroseconds(uint32_t rows, uint32_t waiting, uint32_t dormant, uint32_t pool_factor) {
  EngineParts parts;
  parts.limits = RoomyLimits(rows);
  parts.limits.num_blocks *= pool_factor;
  parts.limits.max_resident_requests = rows + dormant;
  parts.traits.vocab_size = 32;
  parts.executor = std::make_unique<ConstantExecutor>(rows, 32);
  const auto engine = Engine::Create(std::move(parts));
  const auto buffer = engine->CreateEventBuffer(rows);
  std::vector<std::shared_ptr<Request>> requests;
  const auto begin = [&](uint64_t tokens) {
    requests.push_back(engine->CreateRequest({}));
    const auto options = requests.back()->CreateTurnOptions();
    options->SetMaxGeneratedTokens(tokens);
    requests.back()->BeginTurn(std::vector<TokenId>(16, 3), options.get());
  };
  for (uint32_t i = 0; i < dormant; ++i) begin(1);
  while (engine->HasPendingRequests()) engine->Run(*buffer);
  for (uint32_t i = 0; i < rows + waiting; ++i) begin(0);

  std::vector<double> microseconds;
  for (int step = 0; step < 3000; ++step) {
    const auto start = std::chrono::steady_clock::now();
    engine->Run(*buffer);
    const auto end = std::chrono::steady_clock::now();
    if (step >= 500) microseconds.push_back(std::chrono::duration<double, std::micro>(end - start).count());
  }
  std::nth_element(microseconds.begin(), microseconds.begin() + microseconds.size() / 2, microseconds.end());
  return microseconds[microseconds.size() / 2];
}

}  // namespace

int main() {
  std::printf("rows   us/step   us/row\n");
  for (const uint32_t rows : {1u, 16u, 64u, 256u}) {
    const double median = MedianStepMicroseconds(rows, 0, 0, 1);
    std::printf("%4u  %8.2f  %7.3f\n", rows, median, median / rows);
  }
  std::printf("16 rows beside                      us/step\n");
  std::printf("nobody                             %8.2f\n", MedianStepMicroseconds(16, 0, 0, 1));
  std::printf("1000 waiting requests              %8.2f\n", MedianStepMicroseconds(16, 1000, 0, 1));
  std::printf("1000 dormant residents             %8.2f\n", MedianStepMicroseconds(16, 0, 1000, 1));
  std::printf("a pool 32 times as large           %8.2f\n", MedianStepMicroseconds(16, 0, 0, 32));
  PrintSamplerCost();
  return 0;
}
