#include "engine/turn_options.h"

#include "base/error.h"
#include "engine/request.h"
#include "search/sampling_rules.h"

namespace oga {

void TurnOptions::CheckUsable() const {
  const std::shared_ptr<Request> request = request_.lock();
  if (request == nullptr) {
    Throw(StatusCode::kInvalidState, "the request of these turn options is gone; create new ones from a live request");
  }
  request->CheckUsable();
}

bool TurnOptions::BelongsTo(const Request& request) const noexcept { return request_.lock().get() == &request; }

void TurnOptions::Reset() {
  CheckUsable();
  values_ = {};
}

void TurnOptions::SetMaxGeneratedTokens(uint64_t value) {
  CheckUsable();
  values_.max_generated_tokens = value;
}

void TurnOptions::SetMinGeneratedTokens(uint64_t value) {
  CheckUsable();
  values_.min_generated_tokens = value;
}

void TurnOptions::SetDoSample(bool value) {
  CheckUsable();
  values_.do_sample = value;
}

void TurnOptions::SetTemperature(float value) {
  CheckUsable();
  search::CheckTemperature(value);
  values_.temperature = value;
}

void TurnOptions::SetTopK(int32_t value) {
  CheckUsable();
  search::CheckTopK(value);
  values_.top_k = value;
}

void TurnOptions::SetTopP(float value) {
  CheckUsable();
  search::CheckTopP(value);
  values_.top_p = value;
}

void TurnOptions::SetRepetitionPenalty(float value) {
  CheckUsable();
  search::CheckRepetitionPenalty(value);
  values_.repetition_penalty = value;
}

void TurnOptions::SetSeed(uint64_t value) {
  CheckUsable();
  values_.seed = value;
}

void TurnOptions::ClearSeed() {
  CheckUsable();
  values_.seed.reset();
}

}  // namespace oga
