#include "grammar/grammar.h"

#include <algorithm>
#include <array>
#include <bit>
#include <new>
#include <utility>
#include <vector>

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

// A schema of 300 kB with 3000 objects stays below a third of these. With the limits on texts, compiling takes at most
// some 2 s, and a mask some 50 ms, for grammars made to be slow, milliseconds and microseconds for others; one cursor has
// at most some 100 MB.
constexpr LlgParserLimits kLimits{.max_items_in_row = 10'000,  // four for each optional property of an object
                                  .initial_lexer_fuel = 300'000,
                                  .step_lexer_fuel = 100'000,
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
  RefuseGuidance("the kind of grammar ", static_cast<int>(kind), " is not known");
}

void CheckDelimiter(const GrammarTokenizer& tokenizer, TokenId id, const char* what) {
  if (id >= 0 && static_cast<size_t>(id) < tokenizer.vocab_size() && tokenizer.token_bytes().IsKnown(id)) return;
  RefuseGuidance("the ", what, " token ", id, " of delimited guidance is not in the vocabulary of the model (",
                 tokenizer.vocab_size(), " ids)");
}

TokenId FirstOf(const std::vector<uint32_t>& mask) {
  const auto word = std::find_if(mask.begin(), mask.end(), [](uint32_t bits) { return bits != 0; });
  if (word == mask.end()) return -1;
  return static_cast<TokenId>((word - mask.begin()) * 32) + std::countr_zero(*word);
}

bool ComputeMask(const Matcher& matcher, std::vector<uint32_t>& mask) {
  return matcher.functions().llg_matcher_compute_mask_into(matcher.get(), mask.data(), mask.size() * sizeof(mask[0])) ==
         0;
}

std::string FaultOr(const Matcher& matcher, const char* otherwise) {
  const std::string fault = matcher.Fault();
  return fault.empty() ? otherwise : fault;
}

// Nothing when the vocabulary has no token that could follow: another first token may lead on.
std::string TooMuchWork(const Matcher& matcher) {
  const std::string fault = FaultOr(matcher, "no reason given");
  return fault == kNoToken ? "" : fault + "; to follow it takes too much work: make its repetitions smaller";
}

// What is wrong when the grammar is followed by one token from its start; empty when nothing is. Texts that unroll without
// measure show it here, where they take no time of a step. Not every first token is tried: llguidance's limit on the work
// of a step bounds what the others cost.
std::string TryFirstToken(const Matcher& start, const std::vector<uint32_t>& start_mask) {
  const std::unique_ptr<const Matcher> matcher = start.Clone();
  const LlgFunctions& functions = start.functions();
  std::array<uint32_t, 1> forced{};
  if (functions.llg_matcher_compute_ff_tokens(matcher->get(), forced.data(), forced.size()) < 0) {
    return TooMuchWork(*matcher);
  }
  const TokenId first = FirstOf(start_mask);
  if (first < 0) return {};
  const auto id = static_cast<uint32_t>(first);
  std::vector<uint32_t> mask(start_mask.size());
  if (functions.llg_matcher_consume_tokens(matcher->get(), &id, 1) == 0 && ComputeMask(*matcher, mask)) return {};
  return TooMuchWork(*matcher);
}

// Finds also what is wrong only with this vocabulary: that no token can begin the grammar.
Choice StartOf(const Matcher& matcher, const char* name) {
  Choice start;
  start.mask.resize(matcher.tokenizer().mask_words());
  std::string fault = matcher.Fault();
  if (fault.empty() && !ComputeMask(matcher, start.mask)) fault = FaultOr(matcher, "its first tokens cannot be found");
  if (fault == kNoToken || (fault.empty() && FirstOf(start.mask) < 0)) {
    RefuseGuidance("the ", name, " admits no text at all; nothing could ever be generated");
  }
  start.may_end = matcher.functions().llg_matcher_is_accepting(matcher.get());
  std::vector<uint32_t> left = start.mask;
  for (const TokenId id : matcher.tokenizer().eos_token_ids()) left[static_cast<size_t>(id) / 32] &= ~(1u << (id % 32));
  start.must_end = start.may_end && FirstOf(left) < 0;
  if (fault.empty()) fault = TryFirstToken(matcher, left);
  if (!fault.empty()) RefuseGuidance("the ", name, " is refused by llguidance: ", fault);
  return start;
}

}  // namespace

std::string Matcher::Fault() const {
  const char* const error = functions().llg_matcher_get_error(matcher_);
  return error == nullptr ? "" : OneLine(error);
}

std::unique_ptr<Matcher> Matcher::Clone() const {
  LlgMatcher* const copy = functions().llg_clone_matcher(matcher_);
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
  std::promise<GrammarPointer> promise;
  std::shared_future<GrammarPointer> found;
  uint64_t number = 0;
  {
    const std::lock_guard lock(mutex_);
    if (const Kept* kept = Find(kind, spec.text)) {
      found = kept->grammar;
    } else {
      number = next_number_++;
      kept_.push_front({number, kind, spec.text, promise.get_future().share()});
      if (kept_.size() > kKeptGrammars) kept_.pop_back();
    }
  }
  if (found.valid()) return found.get();
  try {
    GrammarPointer grammar = CompileNew(kind, spec.text);
    promise.set_value(grammar);
    return grammar;
  } catch (...) {
    Forget(number);
    promise.set_exception(std::current_exception());
    throw;
  }
}

const GrammarCompiler::Kept* GrammarCompiler::Find(GrammarKind kind, const std::string& text) {
  const auto found = std::find_if(kept_.begin(), kept_.end(),
                                  [&](const Kept& kept) { return kept.kind == kind && kept.text == text; });
  if (found == kept_.end()) return nullptr;
  kept_.splice(kept_.begin(), kept_, found);
  return &kept_.front();
}

void GrammarCompiler::Forget(uint64_t number) {
  const std::lock_guard lock(mutex_);
  kept_.remove_if([&](const Kept& kept) { return kept.number == number; });
}

GrammarCompiler::GrammarPointer GrammarCompiler::CompileNew(GrammarKind kind, const std::string& text) const {
  const Source source = Prepare(kind, text);
  GrammarPointer grammar;
  RunDeep(kCompilerStackBytes, [&] {
    const LlgFunctions& functions = tokenizer_->functions();
    LlgConstraintInit init;
    functions.llg_constraint_init_set_defaults(&init, tokenizer_->handle());
    init.log_buffer_level = 0;
    init.log_stderr_level = 0;
    init.limits = kLimits;
    LlgMatcher* const handle = functions.llg_new_matcher(&init, source.type, source.text.c_str());
    if (handle == nullptr) throw std::bad_alloc();
    auto matcher = std::make_unique<Matcher>(tokenizer_, handle);
    Choice start = StartOf(*matcher, NameOf(kind));
    grammar = std::make_shared<const Grammar>(std::move(matcher), std::move(start));
  });
  return grammar;
}

}  // namespace oga::grammar
