// A compiled grammar, and the compiler that keeps the last ones.
//
// Grammar: immutable, shared, any thread. GrammarCompiler: one per engine, any thread; only threads that want the same
// text wait for one another.
#pragma once

#include <cstdint>
#include <future>
#include <list>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "grammar/grammar_spec.h"
#include "grammar/grammar_tokenizer.h"

namespace oga::grammar {

// One of llguidance's matchers, which this owns.
class Matcher {
 public:
  Matcher(std::shared_ptr<const GrammarTokenizer> tokenizer, LlgMatcher* matcher)
      : tokenizer_(std::move(tokenizer)), matcher_(matcher) {}
  ~Matcher() { tokenizer_->functions().llg_free_matcher(matcher_); }

  Matcher(const Matcher&) = delete;
  Matcher& operator=(const Matcher&) = delete;

  const LlgFunctions& functions() const { return tokenizer_->functions(); }
  const GrammarTokenizer& tokenizer() const { return *tokenizer_; }
  LlgMatcher* get() const { return matcher_; }

  // What llguidance says is wrong, in one line; empty when nothing is.
  std::string Fault() const;

  // A matcher in the same state that shares nothing that changes. Not while another thread uses this one.
  std::unique_ptr<Matcher> Clone() const;

 private:
  std::shared_ptr<const GrammarTokenizer> tokenizer_;
  LlgMatcher* matcher_;
};

// What may come at one place of a grammar.
struct Choice {
  std::vector<uint32_t> mask;  // bit i % 32 of word i / 32 is token i; the EOS ids when the text may end
  bool may_end = false;
  bool must_end = false;  // no token but an EOS may come
};

class Grammar {
 public:
  Grammar(std::unique_ptr<const Matcher> matcher, Choice start)
      : matcher_(std::move(matcher)), start_(std::move(start)) {}

  // A matcher at the start of the grammar. Throws std::bad_alloc.
  std::unique_ptr<Matcher> NewMatcher() const;

  const Choice& start() const { return start_; }

 private:
  mutable std::mutex mutex_;  // llguidance does not promise that one matcher may be copied by two threads at once
  std::unique_ptr<const Matcher> matcher_;
  Choice start_;
};

class GrammarCompiler {
 public:
  // The last so many grammars are kept, so that many requests with one schema compile it once.
  static constexpr size_t kKeptGrammars = 32;

  explicit GrammarCompiler(std::shared_ptr<const GrammarTokenizer> tokenizer) : tokenizer_(std::move(tokenizer)) {}

  // The grammar of `spec`; of delimited guidance the one between the tokens. Takes time in proportion to the text, with
  // a limit on the work. Throws Error{kInvalidArgument}: what is wrong with the text, by keyword or position in
  // llguidance's words; a grammar that admits no text at all or is too complex; delimiters outside the vocabulary.
  std::shared_ptr<const Grammar> Compile(const GrammarSpec& spec);

  const std::shared_ptr<const GrammarTokenizer>& tokenizer() const { return tokenizer_; }

 private:
  using GrammarPointer = std::shared_ptr<const Grammar>;

  struct Kept {
    uint64_t number;  // of the compilation
    GrammarKind kind;
    std::string text;
    std::shared_future<GrammarPointer> grammar;  // not ready while its thread compiles
  };

  const Kept* Find(GrammarKind kind, const std::string& text);
  void Forget(uint64_t number);
  GrammarPointer CompileNew(GrammarKind kind, const std::string& text) const;

  std::shared_ptr<const GrammarTokenizer> tokenizer_;
  std::mutex mutex_;  // never held while a grammar compiles
  uint64_t next_number_ = 0;
  std::list<Kept> kept_;  // most recently used first
};

}  // namespace oga::grammar
