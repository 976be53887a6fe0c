#include "text/bpe_model.h"

#include <algorithm>
#include <queue>
#include <string>

#include "base/error.h"
#include "base/printable_text.h"
#include "base/utf8.h"
#include "text/tokenizer_component.h"

namespace oga {

namespace {

uint64_t PairKey(TokenId left, TokenId right) {
  return static_cast<uint64_t>(static_cast<uint32_t>(left)) << 32 | static_cast<uint32_t>(right);
}

std::string ByteTokenText(size_t byte) {
  constexpr std::string_view kDigits = "0123456789ABCDEF";
  return {'<', '0', 'x', kDigits[byte >> 4], kDigits[byte & 15], '>'};
}

}  // namespace

BpeModel::BpeModel(const TokenizerFiles& files, const std::vector<Merge>& merges) : vocabulary_(files.vocabulary) {
  ReadOptions(JsonObject(files.root, "").RequiredObject("model"));
  ReadMerges(merges, *files.root.source);
}

void BpeModel::ReadOptions(const JsonObject& model) {
  if (model.Real("dropout", {0, 1}).value_or(0) > 0) RefuseComponent(model, "a dropout", kEncodeElsewhere);
  for (const char* key : {"continuing_subword_prefix", "end_of_word_suffix"}) {
    const std::optional<std::string> affix = model.String(key);
    if (affix && !affix->empty())
      RefuseComponent(model, Message("the ", key, " ", Quoted(*affix, 60)), kEncodeElsewhere);
  }
  takes_whole_pieces_ = model.Boolean("ignore_merges").value_or(false);
  fuses_unknown_ = model.Boolean("fuse_unk").value_or(false);
  if (const JsonValue* unknown = model.Find("unk_token")) {
    unknown_ = vocabulary_.Find(unknown->text);
    if (!unknown_) RefuseValue(*unknown, model.PathOf("unk_token"), "a token of the vocabulary");
  }
  if (!model.Boolean("byte_fallback").value_or(false)) return;
  for (size_t byte = 0; byte < 256; ++byte) byte_tokens_.push_back(vocabulary_.Find(ByteTokenText(byte)));
}

void BpeModel::ReadMerges(const std::vector<Merge>& merges, const std::string& source) {
  rules_.reserve(merges.size());
  for (size_t rank = 0; rank < merges.size(); ++rank) {
    const auto& [left, right] = merges[rank];
    const std::optional<TokenId> ids[] = {vocabulary_.Find(left), vocabulary_.Find(right),
                                          vocabulary_.Find(left + right)};
    if (!ids[0] || !ids[1] || !ids[2]) {
      const std::string missing = !ids[0] ? left : !ids[1] ? right : left + right;
      Throw(StatusCode::kInvalidArgument, Field{"model.merges"}, source, ": model.merges[", rank, "] needs the token ",
            Quoted(missing, 60), ", which model.vocab lacks");
    }
    rules_.insert_or_assign(PairKey(*ids[0], *ids[1]), Rule{static_cast<uint32_t>(rank), *ids[2]});
  }
}

void BpeModel::Encode(std::string_view piece, std::vector<TokenId>& ids) const {
  if (takes_whole_pieces_) {
    if (const std::optional<TokenId> whole = vocabulary_.Find(piece)) {
      ids.push_back(*whole);
      return;
    }
  }
  std::vector<Symbol> symbols = FirstSymbols(piece);
  MergeAll(symbols);
  for (const Symbol& symbol : symbols) {
    if (!symbol.is_gone) ids.push_back(symbol.id);
  }
}

// One symbol for each character; bytes or the unknown token for a character that the vocabulary lacks.
std::vector<BpeModel::Symbol> BpeModel::FirstSymbols(std::string_view piece) const {
  std::vector<TokenId> ids;
  bool unknown_waits = false;
  while (!piece.empty()) {
    const std::string_view character = piece.substr(0, NextUtf8(piece).length);
    piece.remove_prefix(character.size());
    if (const std::optional<TokenId> id = vocabulary_.Find(character)) {
      if (unknown_waits) ids.push_back(*unknown_);
      unknown_waits = false;
      ids.push_back(*id);
    } else if (!AppendByteTokens(character, ids) && unknown_) {
      if (unknown_waits && !fuses_unknown_) ids.push_back(*unknown_);
      unknown_waits = true;
    }
  }
  if (unknown_waits) ids.push_back(*unknown_);
  std::vector<Symbol> symbols;
  symbols.reserve(ids.size());
  for (const TokenId id : ids) {
    const auto at = static_cast<int32_t>(symbols.size());
    const int32_t next = static_cast<size_t>(at) + 1 < ids.size() ? at + 1 : -1;
    symbols.push_back({id, at - 1, next, false});
  }
  return symbols;
}

bool BpeModel::AppendByteTokens(std::string_view character, std::vector<TokenId>& ids) const {
  if (byte_tokens_.empty()) return false;
  const auto token = [&](char byte) { return byte_tokens_[static_cast<uint8_t>(byte)]; };
  if (!std::all_of(character.begin(), character.end(), [&](char byte) { return token(byte).has_value(); }))
    return false;
  for (const char byte : character) ids.push_back(*token(byte));
  return true;
}

void BpeModel::MergeAll(std::vector<Symbol>& symbols) const {
  std::priority_queue<Candidate> queue;
  const auto consider = [&](int32_t at) {
    if (at < 0 || symbols[static_cast<size_t>(at)].next < 0) return;
    const Symbol& left = symbols[static_cast<size_t>(at)];
    const Rule* rule = FindRule(left.id, symbols[static_cast<size_t>(left.next)].id);
    if (rule != nullptr) queue.push({rule->rank, at, rule->merged});
  };
  for (size_t at = 0; at < symbols.size(); ++at) consider(static_cast<int32_t>(at));
  while (!queue.empty()) {
    const Candidate best = queue.top();
    queue.pop();
    Symbol& left = symbols[static_cast<size_t>(best.at)];
    if (left.is_gone || left.next < 0) continue;
    Symbol& right = symbols[static_cast<size_t>(left.next)];
    // The pair may have become another one since it was queued.
    const Rule* rule = FindRule(left.id, right.id);
    if (rule == nullptr || rule->merged != best.merged) continue;
    left.id = best.merged;
    left.next = right.next;
    right.is_gone = true;
    if (left.next >= 0) symbols[static_cast<size_t>(left.next)].previous = best.at;
    consider(left.previous);
    consider(best.at);
  }
}

const BpeModel::Rule* BpeModel::FindRule(TokenId left, TokenId right) const {
  const auto found = rules_.find(PairKey(left, right));
  return found == rules_.end() ? nullptr : &found->second;
}

}  // namespace oga
