// TurnText: the text of one turn's output as it becomes certain, and the end that a stop string gives it.
//
// Owned by one Request while its turn lives; owner thread. Whole characters only, nothing taken back: text that may
// still become part of a stop string, or of a character, waits. Everything is staged in a copy that Commit takes over,
// so a step that is rolled back leaves no trace.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "step/ids.h"
#include "step/token_bytes.h"
#include "text/stop_matcher.h"
#include "text/stop_strings.h"
#include "text/text_stream.h"

namespace oga {

// What a turn's host wants to know of its text.
struct TextOptions {
  std::shared_ptr<const StopStrings> stop_strings;  // null: none
  bool emit = false;                                // events carry text
  bool special_tokens = false;                      // they are part of the text

  bool needs_text() const { return emit || stop_strings != nullptr; }
};

class TurnText {
 public:
  TurnText(const TextOptions& options, std::shared_ptr<const TokenBytes> tokens);

  // Starts staging anew from what is committed.
  void Restart();

  // Stages `token` as the next one of the output and appends the text that is certain then to `out`. Returns the index of
  // the stop string that it completes, else StopStrings::kNoMatch.
  int32_t Take(TokenId token, std::string& out);

  // Stages the end of the text: what waited is certain now, but for a stop string.
  void Finish(std::string& out);

  void Commit() noexcept;

 private:
  struct State {
    std::optional<StopMatcher> matcher;  // none without stop strings
    std::optional<TextStream> stream;    // none when no text is emitted
  };

  State committed_;
  State staged_;
};

}  // namespace oga
