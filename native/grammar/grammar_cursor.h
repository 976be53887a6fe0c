// Where one turn stands in its grammar. One per guided turn, owned by the engine's thread; between MaskBatch::Start and
// Wait only the batch may touch it.
//
// How the engine uses it:
//   BeginTurn   GrammarCompiler::Compile refuses what is wrong; a new cursor stands at the start, whatever the prompt is.
//   a step      before Execute: MaskBatch::Start with the cursors of the rows that will be sampled
//               Execute         the model runs meanwhile
//               before Sample:  MaskBatch::Wait
//               Sample          a poisoned cursor fails its row (Fault() says why) and no other;
//                               SampleInputs{.may_end = MayEnd(), .allowed_bitmask = Mask()}. The mask has the EOS ids
//                               when the turn may end; a host's own stop ids are added by whoever knows them
//               then            Stage(token) for a token that the turn keeps, not for one that ends it;
//                               IsComplete() after that: the turn ends Eos with this token
//               commit          Commit()
//               rollback        Rollback(): the cursor is where it was, and Mask() still holds
//   forced      ForcedTokens(): what the grammar leaves no choice about. They may all go through the model in one step;
//               each is staged like a sampled one.
//
// C1 Between two transactions no token is staged. Commit and Rollback do not throw.
// C2 A mask belongs to the committed position: staging leaves it alone, Commit makes it stale.
// C3 Mask() is never empty while the cursor is healthy: a grammar that leads nowhere poisons it.
// C4 A fault of llguidance (a grammar too complex at this place) is for good and of this cursor only.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "grammar/grammar.h"

namespace oga::grammar {

struct Delimiters {
  TokenId opening = -1;
  TokenId closing = -1;
};

// Of a delimited spec; nothing for guidance of the whole turn.
std::optional<Delimiters> DelimitersOf(const GrammarSpec& spec);

class GrammarCursor {
 public:
  // At the start of the grammar. With delimiters text is free until the opening token, follows the grammar until the
  // closing one, which is allowed where the grammar may end and nowhere else, and is free again; any number of times.
  // A turn may end only outside.
  explicit GrammarCursor(std::shared_ptr<const Grammar> grammar, std::optional<Delimiters> delimiters = std::nullopt);

  GrammarCursor(const GrammarCursor&) = delete;
  GrammarCursor& operator=(const GrammarCursor&) = delete;

  // Makes Mask() and MayEnd() current; does nothing when they are. Allocates nothing of its own. Never throws: what goes
  // wrong poisons the cursor.
  void ComputeMask() noexcept;

  // The tokens that may come at the committed position, bit i % 32 of word i / 32 for token i. Computed by the first call
  // when no batch did. Throws Error{kInvalidState} with Fault() when the cursor is poisoned.
  std::span<const uint32_t> Mask();

  // Whether the turn may end at the committed position. As Mask().
  bool MayEnd();

  // Whether nothing but the end can follow, staged tokens included. False while poisoned.
  bool IsComplete() const;

  // Advances by a token, to be committed or rolled back. May be called several times before either. Throws
  // Error{kInvalidArgument} for a token that cannot come here, and nothing changes; Error{kInvalidState} when poisoned.
  void Stage(TokenId token);
  void Commit() noexcept;
  void Rollback() noexcept;

  // Writes the tokens that must come next, at most `out.size()`, and returns how many; 0 when there is a choice. Only
  // between transactions. Throws as Mask().
  size_t ForcedTokens(std::span<TokenId> out);

  bool is_poisoned() const { return is_poisoned_; }
  const std::string& Fault() const { return fault_; }
  size_t staged_tokens() const { return staged_tokens_; }

  // Throws ContractError naming the invariant that does not hold.
  void Validate() const;

 private:
  const LlgFunctions& functions() const { return matcher_->functions(); }
  void Poison(std::string fault) noexcept;
  void PoisonByMatcher() noexcept;
  void RequireHealthy() const;
  void ComputeInnerMask();
  void StageInner(TokenId token);
  void Enter();
  bool IsAllowedInside(TokenId token);
  bool Replay(std::span<const uint32_t> tokens);

  std::shared_ptr<const Grammar> grammar_;
  std::unique_ptr<Matcher> matcher_;
  std::optional<Delimiters> delimiters_;
  std::vector<uint32_t> mask_;
  bool has_mask_ = false;
  bool may_end_ = false;
  bool is_inside_ = true;  // of the grammar; always, without delimiters

  // What the matcher has consumed since it was at its start. Its tokens are kept only with delimiters: going back over
  // a closing and a new opening token replays them.
  size_t inner_tokens_ = 0;
  std::vector<uint32_t> inner_history_;

  struct Checkpoint {
    bool is_inside = true;
    size_t inner_tokens = 0;
  };
  Checkpoint committed_;
  size_t staged_tokens_ = 0;
  bool was_reset_ = false;                   // since the last commit
  std::vector<uint32_t> history_to_replay_;  // then: what the matcher had consumed before

  bool is_poisoned_ = false;
  std::string fault_;
};

}  // namespace oga::grammar
