#include "simulation/told_oracle.h"

#include "search/logprobs.h"
#include "simulation/script.h"

namespace oga::testing {

std::shared_ptr<const TokenBytes> SimTokenBytes() {
  static const char* const kWritings[] = {"a", "b", "ab", "ba", "aa", "\xC3\xA9", "", "abb", "b\xC3\xA9"};
  auto table = std::make_shared<TokenBytes>();
  for (int32_t token = 0; token < kSimSampleable; ++token) {
    table->bytes += kWritings[static_cast<size_t>(token) % std::size(kWritings)];
    table->offsets.push_back(static_cast<uint32_t>(table->bytes.size()));
    table->flags.push_back(TokenBytes::kKnown);
  }
  return table;
}

ToldOracle::ToldOracle(TellOptions options, const std::vector<TokenId>& sequence, size_t input_tokens)
    : options_(std::move(options)), sequence_(sequence), input_tokens_(input_tokens) {}

bool ToldOracle::Append(TokenId token, bool is_stop_token) {
  static const std::shared_ptr<const TokenBytes> kBytes = SimTokenBytes();
  const std::string before = text_;
  text_ += kBytes->Of(token);
  // The earliest end, then the longest, then the lowest index.
  for (size_t end = before.size() + 1; end <= text_.size() && matched_index_ < 0; ++end) {
    size_t longest = 0;
    for (size_t i = 0; i < options_.stop_strings.size(); ++i) {
      const std::string& stop = options_.stop_strings[i];
      if (stop.size() > end || stop.size() <= longest || text_.compare(end - stop.size(), stop.size(), stop) != 0)
        continue;
      longest = stop.size();
      matched_index_ = static_cast<int32_t>(i);
      visible_ = end - stop.size();
    }
  }
  if (matched_index_ >= 0) return true;
  visible_ = is_stop_token ? before.size() : text_.size();
  return false;
}

std::string ToldOracle::Follow(const Event& event) {
  told_text_ += event.text;
  if (!options_.emits_text && !event.text.empty()) return "text was told that nobody asked for";
  if (!text_.starts_with(told_text_)) return "text was told that the tokens do not write";
  if (event.prompt_logprobs == nullptr) {
    return options_.prompt_top && !told_prompt_ ? "an event came without the prompt's log-probabilities" : "";
  }
  if (!options_.prompt_top || told_prompt_) return "log-probabilities of the prompt were told unasked, or twice";
  told_prompt_ = true;
  return CheckPrompt(*event.prompt_logprobs, (event.flags & event_flags::kToken) == 0);
}

std::string ToldOracle::CheckEnding(const Event& event) const {
  if (event.finish_reason != FinishReason::kFailed && options_.emits_text && told_text_ != text_.substr(0, visible_)) {
    return "the turn told \"" + told_text_ + "\" instead of \"" + text_.substr(0, visible_) + "\"";
  }
  const bool matched = event.finish_reason == FinishReason::kStopString;
  if (event.matched_stop_string_index != (matched ? matched_index_ : -1)) return "another stop string was named";
  return matched == (matched_index_ >= 0) ? "" : "a stop string and the ending disagree";
}

bool ToldOracle::prompt_fails() const {
  if (!options_.prompt_top) return false;
  for (size_t i = std::max<size_t>(1, sequence_.size() - input_tokens_); i < sequence_.size(); ++i) {
    if (IsPoisoned(HistoryHash(std::span(sequence_).first(i)))) return true;
  }
  return false;
}

std::string ToldOracle::CheckPrompt(const PromptLogprobs& told, bool may_be_short) const {
  if (told.size() > input_tokens_ || (told.size() < input_tokens_ && !may_be_short))
    return "a prompt was not scored whole";
  const size_t begin = sequence_.size() - input_tokens_;
  std::vector<float> logits(kSimVocab);
  for (size_t i = 0; i < told.size(); ++i) {
    if (begin + i == 0) {
      if (!told[0].tokens.empty()) return "something predicts the first token";
      continue;
    }
    FillScriptLogits(logits, std::span(sequence_).first(begin + i));
    const search::TokenLogprobs wanted =
        search::ComputeLogprobs(std::span(logits).first(static_cast<size_t>(kSimSampleable)), sequence_[begin + i],
                                static_cast<size_t>(*options_.prompt_top), {});
    if (told[i].tokens != wanted.tokens || told[i].logprobs != wanted.logprobs) return "a prompt was scored otherwise";
  }
  return "";
}

}  // namespace oga::testing
