// Byte-pair encoding of one piece of text: neighbouring tokens are merged, those with the lowest rank first.
//
// Immutable, any thread. The files' vocabulary must outlive it. The time for a piece of n characters is n log n.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "config/json_object.h"
#include "text/token_texts.h"
#include "text/tokenizer_json.h"

namespace oga {

class BpeModel {
 public:
  // Throws Error: kUnsupported for options of the model that change the outcome and are not known (dropout, prefixes
  // and suffixes of words), kInvalidArgument for a merge whose tokens the vocabulary lacks.
  BpeModel(const TokenizerFiles& files, const std::vector<Merge>& merges);

  // Appends the ids of `piece`.
  void Encode(std::string_view piece, std::vector<TokenId>& ids) const;

 private:
  struct Rule {
    uint32_t rank;
    TokenId merged;
  };
  struct Symbol {
    TokenId id;
    int32_t previous;  // -1: none
    int32_t next;
    bool is_gone;
  };
  struct Candidate {
    uint32_t rank;
    int32_t at;
    TokenId merged;

    // The order of a heap whose top is the lowest rank, then the leftmost.
    bool operator<(const Candidate& other) const { return rank != other.rank ? rank > other.rank : at > other.at; }
  };

  void ReadOptions(const JsonObject& model);
  void ReadMerges(const std::vector<Merge>& merges, const std::string& source);
  std::vector<Symbol> FirstSymbols(std::string_view piece) const;
  bool AppendByteTokens(std::string_view character, std::vector<TokenId>& ids) const;
  void MergeAll(std::vector<Symbol>& symbols) const;
  const Rule* FindRule(TokenId left, TokenId right) const;

  const TokenTexts& vocabulary_;
  std::unordered_map<uint64_t, Rule> rules_;         // by a pair of ids
  std::vector<std::optional<TokenId>> byte_tokens_;  // [256], <0xNN>; empty without byte fallback
  std::optional<TokenId> unknown_;
  bool fuses_unknown_ = false;
  bool takes_whole_pieces_ = false;  // a piece that is a token needs no merges
};

}  // namespace oga
