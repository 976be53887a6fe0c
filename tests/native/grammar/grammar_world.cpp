#include "native/grammar/grammar_world.h"

#include <dlfcn.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <stdexcept>
#include <utility>

#include "grammar/grammar_library.h"
#include "support/test_data.h"

namespace oga::grammar::test {

const std::vector<std::string>& Words() {
  static const std::vector<std::string> words{"true", "false", "null",   "\":",      "\", \"",  "name",
                                              "age",  "hello", " world", "{\"",      "\"}",     "12",
                                              "the",  "é",     "日",     "\xe6\x97", "\xff\x01"};
  return words;
}

TokenId WordId(std::string_view word) {
  for (size_t i = 0; i < Words().size(); ++i) {
    if (Words()[i] == word) return kFirstWord + static_cast<TokenId>(i);
  }
  throw std::runtime_error("no token " + std::string(word));
}

namespace {

void Add(TokenBytes& table, std::string_view bytes, uint8_t flags) {
  table.bytes += bytes;
  table.offsets.push_back(static_cast<uint32_t>(table.bytes.size()));
  table.flags.push_back(flags);
}

}  // namespace

std::shared_ptr<const TokenBytes> Vocabulary() {
  auto table = std::make_shared<TokenBytes>();
  for (int byte = 0; byte < 256; ++byte) Add(*table, std::string(1, static_cast<char>(byte)), TokenBytes::kKnown);
  constexpr uint8_t kSpecial = TokenBytes::kKnown | TokenBytes::kSpecial;
  Add(*table, "<eos>", kSpecial);
  Add(*table, "<end_of_turn>", TokenBytes::kKnown);
  Add(*table, "<call>", kSpecial);
  Add(*table, "</call>", kSpecial);
  Add(*table, "", 0);
  for (const std::string& word : Words()) Add(*table, word, TokenBytes::kKnown);
  return table;
}

void UseLibrary() {
  static const std::string path =
      ::oga::test::RequireEnvironment("OGA_TEST_LLGUIDANCE_LIBRARY", nullptr, "llguidance's extension module");
  static void* const symbols = dlopen(::oga::test::DataPath("libpython_symbols.so").c_str(), RTLD_NOW | RTLD_GLOBAL);
  if (symbols == nullptr) throw std::runtime_error("libpython_symbols.so was not built");
  unsetenv("OGA_LLGUIDANCE_LIBRARY");  // it would win over the path
  SetLibraryPath(path);
}

std::shared_ptr<const GrammarTokenizer> NewTokenizer(GrammarTokenizer::Encoder encode) {
  UseLibrary();
  const std::vector<TokenId> eos{kEos, kEndOfTurn};
  return std::make_shared<const GrammarTokenizer>(Vocabulary(), kVocabulary, eos, std::move(encode));
}

GrammarCompiler& Compiler() {
  static GrammarCompiler* const compiler = new GrammarCompiler(NewTokenizer());
  return *compiler;
}

std::unique_ptr<GrammarCursor> NewCursor(const GrammarSpec& spec) {
  return std::make_unique<GrammarCursor>(Compiler().Compile(spec), DelimitersOf(spec));
}

std::unique_ptr<GrammarCursor> NewCursor(std::string_view type, std::string_view text) {
  return NewCursor(MakeGrammarSpec(type, text));
}

bool IsAllowed(GrammarCursor& cursor, TokenId token) {
  return (cursor.Mask()[static_cast<size_t>(token) / 32] >> (token % 32) & 1u) != 0;
}

std::vector<TokenId> AllowedTokens(GrammarCursor& cursor) {
  std::vector<TokenId> allowed;
  for (TokenId token = 0; token < static_cast<TokenId>(kVocabulary); ++token) {
    if (IsAllowed(cursor, token)) allowed.push_back(token);
  }
  return allowed;
}

void Take(GrammarCursor& cursor, TokenId token) {
  cursor.Stage(token);
  cursor.Commit();
  cursor.Validate();
}

size_t TakeText(GrammarCursor& cursor, std::string_view text) {
  for (size_t i = 0; i < text.size(); ++i) {
    const auto token = static_cast<TokenId>(static_cast<unsigned char>(text[i]));
    if (!IsAllowed(cursor, token)) return i;
    Take(cursor, token);
  }
  return text.size();
}

bool Admits(std::string_view type, std::string_view grammar, std::string_view text) {
  const auto cursor = NewCursor(type, grammar);
  return TakeText(*cursor, text) == text.size() && cursor->MayEnd();
}

Error ErrorOf(std::string_view type, std::string_view text) {
  try {
    Compiler().Compile(MakeGrammarSpec(type, text));
  } catch (const Error& error) {
    return error;
  }
  return Error(StatusCode::kOk, "");
}

void ExpectRefused(std::string_view type, std::string_view text, std::initializer_list<std::string_view> parts) {
  const Error error = ErrorOf(type, text);
  EXPECT_EQ(error.code(), StatusCode::kInvalidArgument) << text.substr(0, 200);
  EXPECT_EQ(error.field(), "guidance");
  for (const std::string_view part : parts) {
    EXPECT_NE(error.message().find(part), std::string::npos) << part << " is not in: " << error.message();
  }
  EXPECT_EQ(error.message().find('\n'), std::string::npos) << error.message();
  EXPECT_LT(error.message().size(), 1000u);
}

}  // namespace oga::grammar::test
