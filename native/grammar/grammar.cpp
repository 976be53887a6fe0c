#include "grammar/grammar.h"

#include <algorithm>
#include <new>
#include <utility>
#include <vector>

#include "base/error.h"
#include "base/printable_text.h"
#include "grammar/deep_thread.h"
#include "grammar/grammar_errors.h"
#include "grammar/lark.h"
#include "grammar/schema.h"

namespace oga::grammar {

namespace {

// kMaxLarkLines rules take about 4 kB each when one leads to the next, kMaxSubschemas references up to 16 kB. Only what
// is used becomes memory.
constexpr size_t kCompilerStackBytes = size_t{256} << 20;

// A schema of 300 kB with 3000 objects stays below a tenth of these. With the limits on texts, compiling takes at most
// some 5 s, and a mask some 100 ms, for grammars made to be slow, milliseconds and microseconds for others; one cursor has
// at most some 100 MB.
constexpr LlgParserLimits kLimits{.max_items_in_row = 5'000,  // four for each optional property of an object
                                  .initial_lexer_fuel = 1'000'000,
                                  .step_lexer_fuel = 200'000,
                                  .step_max_items = 50'000,
                                  .max_lexer_states = 50'000,
                                  .max_grammar_size = 500'000,
                                  .precompute_large_lexemes = true,
                                  .verbose_errors = false};

struct Source {
  const char* type;
  std::string text;
};

Source Prepare(GrammarKind kind, const std::string& text) {
  switch (kind) {
    case GrammarKind::kJsonSchema: return {"json_schema", PrepareSchema(text)};
    case GrammarKind::kJsonObject: return {"json_schema", AnyObjectSchema()};
    case GrammarKind::kRegex: return {"regex", text};
    case GrammarKind::kLark:
    case GrammarKind::kDelimited: return {"lark", PrepareLark(text)};
  }
  Throw(StatusCode::kInvalidArgument, "the kind of grammar ", static_cast<int>(kind), " is not known");
}

void CheckDelimiter(const GrammarTokenizer& tokenizer, TokenId id, const char* what) {
  if (id >= 0 && static_cast<size_t>(id) < tokenizer.vocab_size() && tokenizer.token_bytes().IsKnown(id)) return;
  Throw(StatusCode::kInvalidArgument, "the ", what, " token ", id,
        " of delimited guidance is not in the vocabulary of the model (", tokenizer.vocab_size(), " ids)");
}

// Finds also what is wrong only with this vocabulary: that no token can begin the grammar.
Choice StartOf(const Matcher& matcher, const char* name) {
  Choice start;
  start.mask.resize(matcher.tokenizer().mask_words());
  std::string fault = matcher.Fault();
  const size_t bytes = start.mask.size() * sizeof(uint32_t);
  if (fault.empty() && matcher.library().llg_matcher_compute_mask_into(matcher.get(), start.mask.data(), bytes) != 0) {
    fault = matcher.Fault();
    if (fault.empty()) fault = "its first tokens cannot be found";
  }
  const auto is_zero = [](uint32_t word) { return word == 0; };
  const bool is_empty = std::all_of(start.mask.begin(), start.mask.end(), is_zero);
  if (fault == kNoToken || (fault.empty() && is_empty)) {
    Throw(StatusCode::kInvalidArgument, "the ", name, " admits no text at all; nothing could ever be generated");
  }
  if (!fault.empty()) Throw(StatusCode::kInvalidArgument, "the ", name, " is refused by llguidance: ", fault);
  start.may_end = matcher.library().llg_matcher_is_accepting(matcher.get());
  std::vector<uint32_t> left = start.mask;
  for (const TokenId id : matcher.tokenizer().eos_token_ids()) left[static_cast<size_t>(id) / 32] &= ~(1u << (id % 32));
  start.must_end = start.may_end && std::all_of(left.begin(), left.end(), is_zero);
  return start;
}

}  // namespace

std::string Matcher::Fault() const {
  const char* const error = library().llg_matcher_get_error(matcher_);
  return error == nullptr ? "" : OneLine(error);
}

std::unique_ptr<Matcher> Matcher::Clone() const {
  LlgMatcher* const copy = library().llg_clone_matcher(matcher_);
  if (copy == nullptr) throw std::bad_alloc();
  return std::make_unique<Matcher>(tokenizer_, copy);
}

std::unique_ptr<Matcher> Grammar::NewMatcher() const {
  const std::lock_guard lock(mutex_);
  return matcher_->Clone();
}

std::shared_ptr<const Grammar> GrammarCompiler::Compile(const GrammarSpec& spec) {
  GrammarKind kind = spec.kind;
  if (kind == GrammarKind::kDelimited) {
    CheckDelimiter(*tokenizer_, spec.opening_token, "opening");
    CheckDelimiter(*tokenizer_, spec.closing_token, "closing");
    kind = GrammarKind::kLark;
  }
  const std::lock_guard lock(mutex_);
  const auto found = std::find_if(kept_.begin(), kept_.end(),
                                  [&](const Kept& kept) { return kept.kind == kind && kept.text == spec.text; });
  if (found != kept_.end()) {
    kept_.splice(kept_.begin(), kept_, found);
  } else {
    std::shared_ptr<const Grammar> grammar = CompileNew(kind, spec.text);
    kept_.push_front({kind, spec.text, std::move(grammar)});
    if (kept_.size() > kKeptGrammars) kept_.pop_back();
  }
  return kept_.front().grammar;
}

std::shared_ptr<const Grammar> GrammarCompiler::CompileNew(GrammarKind kind, const std::string& text) const {
  const Source source = Prepare(kind, text);
  std::shared_ptr<const Grammar> grammar;
  RunDeep(kCompilerStackBytes, [&] {
    const LlgFunctions& library = tokenizer_->library();
    LlgConstraintInit init;
    library.llg_constraint_init_set_defaults(&init, tokenizer_->handle());
    init.log_buffer_level = 0;
    init.log_stderr_level = 0;
    init.limits = kLimits;
    LlgMatcher* const handle = library.llg_new_matcher(&init, source.type, source.text.c_str());
    if (handle == nullptr) throw std::bad_alloc();
    auto matcher = std::make_unique<Matcher>(tokenizer_, handle);
    Choice start = StartOf(*matcher, NameOf(kind));
    grammar = std::make_shared<const Grammar>(std::move(matcher), std::move(start));
  });
  return grammar;
}

}  // namespace oga::grammar
