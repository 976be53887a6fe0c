// A small vocabulary over the real llguidance: every byte, some longer tokens, some special ones.
#pragma once

#include <initializer_list>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "grammar/grammar.h"
#include "grammar/grammar_cursor.h"

namespace oga::grammar::test {

// Ids 0 to 255 are the bytes.
inline constexpr TokenId kEos = 256;
inline constexpr TokenId kEndOfTurn = 257;  // a second EOS id, which the tokenizer calls ordinary
inline constexpr TokenId kOpen = 258;
inline constexpr TokenId kClose = 259;
inline constexpr TokenId kHole = 260;  // an id that the tokenizer does not know
inline constexpr TokenId kFirstWord = 261;
inline constexpr size_t kVocabulary = 293;  // more than tokens, and no multiple of 32

const std::vector<std::string>& Words();
TokenId WordId(std::string_view word);
std::shared_ptr<const TokenBytes> Vocabulary();

// Loads llguidance, with a stand-in for libpython.
void UseLibrary();
std::shared_ptr<const GrammarTokenizer> NewTokenizer(GrammarTokenizer::Encoder encode = {});
GrammarCompiler& Compiler();
std::unique_ptr<GrammarCursor> NewCursor(const GrammarSpec& spec);
std::unique_ptr<GrammarCursor> NewCursor(std::string_view type, std::string_view text);
bool IsAllowed(GrammarCursor& cursor, TokenId token);
std::vector<TokenId> AllowedTokens(GrammarCursor& cursor);
void Take(GrammarCursor& cursor, TokenId token);

// Takes the text byte by byte; returns how many bytes the grammar let through.
size_t TakeText(GrammarCursor& cursor, std::string_view text);

// Whether the grammar admits exactly this text.
bool Admits(std::string_view type, std::string_view grammar, std::string_view text);

// The error of compiling; kOk when there is none.
Error ErrorOf(std::string_view type, std::string_view text);

void ExpectRefused(std::string_view type, std::string_view text, std::initializer_list<std::string_view> parts);

}  // namespace oga::grammar::test
