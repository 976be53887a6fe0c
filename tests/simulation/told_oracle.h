// What a turn must tell besides its tokens, worked out from the tokens alone: its text with a stop string's end, and the
// log-probabilities of its input.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "engine/event.h"
#include "step/token_bytes.h"

namespace oga::testing {

// The writing of the simulated tokens: a tiny alphabet, so that stop strings match, nearly match and overlap often.
std::shared_ptr<const TokenBytes> SimTokenBytes();

struct TellOptions {
  std::vector<std::string> stop_strings;
  bool emits_text = false;
  std::optional<int32_t> prompt_top;
};

class ToldOracle {
 public:
  ToldOracle() = default;
  // `sequence` includes the input.
  ToldOracle(TellOptions options, const std::vector<TokenId>& sequence, size_t input_tokens);

  // The token joins the output. Returns whether it completes a stop string.
  bool Append(TokenId token, bool is_stop_token);
  // Takes what an event tells. Returns what is wrong, or nothing.
  std::string Follow(const Event& event);
  // What is wrong with all that was told, or nothing.
  std::string CheckEnding(const Event& event) const;

  int32_t matched_index() const { return matched_index_; }
  // Whether a row of logits that the input's scores need is none.
  bool prompt_fails() const;

 private:
  std::string CheckPrompt(const PromptLogprobs& told, bool may_be_short) const;

  TellOptions options_;
  std::vector<TokenId> sequence_;  // with the input, without the output
  size_t input_tokens_ = 0;
  std::string text_;    // of the output
  size_t visible_ = 0;  // bytes of it once the turn has ended
  int32_t matched_index_ = -1;
  std::string told_text_;
  bool told_prompt_ = false;
};

}  // namespace oga::testing
