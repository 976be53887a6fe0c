// World: one seed, one engine, one thread; hosts that do everything hosts may do, and faults at every named point.
//
// After every run the engine's invariants hold; every event agrees with the naive one-request reference; a run that did
// not commit changed nothing; nobody waits longer than the contract says; at the end every block is back.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "engine/engine.h"
#include "native/engine/scripted_executor.h"
#include "simulation/actor.h"
#include "simulation/faults.h"

namespace oga::testing {

struct SimulationReport {
  uint64_t runs = 0;
  uint64_t steps = 0;  // committed
  uint64_t preemptions = 0;
  uint64_t tokens = 0;
  uint64_t prefix_hits = 0;
  uint64_t prefix_evictions = 0;
  uint64_t longest_wait_steps = 0;
  FaultCounts faults{};

  void Add(const SimulationReport& other);
};

class World {
 public:
  World(uint64_t seed, bool verbose);

  // Lives through the world. Throws std::runtime_error saying what broke.
  SimulationReport Live();

 private:
  void MakeEngine();
  uint64_t Draw(uint64_t bound) { return random_() % bound; }
  bool Chance(uint64_t one_in) { return Draw(one_in) == 0; }

  // host.cpp: one action of a host
  void Act();
  void Create();
  void Begin(Actor& actor);
  void Cancel(Actor& actor);
  void Rewind(Actor& actor);
  void Fork(Actor& actor);
  void Close(size_t index, bool abandon);
  SamplingOptions DrawOptions();
  TellOptions DrawTells();
  TokenId DrawToken(int32_t lowest);
  void DrawProcessors(SamplingOptions& options);
  void DrawWarpers(SamplingOptions& options);
  static void SetOptions(TurnOptions& target, const SamplingOptions& options);
  static void SetTells(TurnOptions& target, const TellOptions& tells);
  std::vector<TokenId> DrawInput(uint64_t room);

  // world.cpp
  void RunOnce(bool with_faults);
  void Arm(Fault fault);
  void Disarm();
  void Drain(const EventBuffer& buffer);
  void CheckUnchanged(const std::vector<uint64_t>& before) const;
  void CheckWaits();
  uint64_t Bound(const CandidateView& view, uint64_t rows) const;
  void CheckFatalEnd();
  void Finish();
  std::vector<uint64_t> Fingerprint() const;
  Actor* Find(const Request* request);
  void Describe() const;  // prints every request, for a replay

  std::mt19937_64 random_;
  const uint64_t seed_;
  const bool verbose_;
  EngineLimits limits_;
  ScriptedExecutor* executor_ = nullptr;
  std::shared_ptr<Engine> engine_;
  std::vector<std::unique_ptr<EventBuffer>> buffers_;
  std::vector<std::unique_ptr<Actor>> actors_;
  struct Wait {
    uint64_t progress = 0;  // the step of its last one
    uint64_t steps = 0;     // since then, those that count
    uint64_t left = 0;      // of its bound
  };
  std::map<RequestId, Wait> waits_;
  uint64_t seen_steps_ = 0;

  Fault armed_ = Fault::kNone;
  uint64_t armed_countdown_ = 0;
  bool hit_ = false;
  bool engine_failed_ = false;
  uint64_t idle_runs_ = 0;
  SimulationReport report_;
};

}  // namespace oga::testing
