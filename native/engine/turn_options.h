// TurnOptions: the option set of one request's turns, bound to it weakly.
//
// Owned by the host. Owner thread of the request's engine, checked in every setter. A refused set keeps the old value.
#pragma once

#include <cstdint>
#include <memory>

#include "step/sampling.h"

namespace oga {

class Request;

class TurnOptions {
 public:
  explicit TurnOptions(std::weak_ptr<Request> request) : request_(std::move(request)) {}

  void Reset();
  void SetMaxGeneratedTokens(uint64_t value);
  void SetMinGeneratedTokens(uint64_t value);
  void SetDoSample(bool value);
  void SetTemperature(float value);
  void SetTopK(int32_t value);
  void SetTopP(float value);
  void SetRepetitionPenalty(float value);
  void SetSeed(uint64_t value);
  void ClearSeed();

  const SamplingOptions& values() const { return values_; }
  bool BelongsTo(const Request& request) const noexcept;

 private:
  // Throws InvalidState unless the request is open and the caller is on the owner thread.
  void CheckUsable() const;

  std::weak_ptr<Request> request_;
  SamplingOptions values_;
};

}  // namespace oga
