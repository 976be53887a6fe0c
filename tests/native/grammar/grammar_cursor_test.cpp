// The cursor inside a transaction: what is staged is committed or leaves no trace.
#include "grammar/grammar_cursor.h"

#include <gtest/gtest.h>

#include <random>
#include <string>
#include <vector>

#include "base/check.h"
#include "native/grammar/grammar_world.h"

namespace oga::grammar {
namespace {

using test::AllowedTokens;
using test::IsAllowed;
using test::NewCursor;
using test::Take;
using test::TakeText;

constexpr std::string_view kPerson =
    R"({"type":"object","properties":{"name":{"type":"string","maxLength":8},"age":{"type":"integer"},
        "tags":{"type":"array","items":{"enum":["hello","the","日"]}}},"required":["name","age"]})";

struct Position {
  std::vector<TokenId> allowed;
  bool may_end;
  bool is_complete;
  bool operator==(const Position&) const = default;
};

Position PositionOf(GrammarCursor& cursor) { return {AllowedTokens(cursor), cursor.MayEnd(), cursor.IsComplete()}; }

// A token that may come and does not end the turn; -1 when there is none.
TokenId Draw(const std::vector<TokenId>& allowed, std::mt19937& random) {
  std::vector<TokenId> kept;
  for (const TokenId token : allowed) {
    if (token != test::kEos && token != test::kEndOfTurn) kept.push_back(token);
  }
  return kept.empty() ? -1 : kept[random() % kept.size()];
}

// Walks at random; at every place stages some tokens and takes them back, on one cursor, and compares with a second
// cursor that never stages in vain.
void WalkWithRollbacks(const GrammarSpec& spec, uint32_t seed) {
  SCOPED_TRACE(seed);
  std::mt19937 random(seed);
  const auto cursor = NewCursor(spec);
  const auto witness = NewCursor(spec);
  for (int step = 0; step < 60; ++step) {
    const Position here = PositionOf(*witness);
    ASSERT_EQ(PositionOf(*cursor), here) << "step " << step;
    TokenId chosen = Draw(here.allowed, random);
    if (chosen < 0) return;
    for (uint32_t tries = random() % 3; tries > 0; --tries) {
      cursor->Stage(Draw(here.allowed, random));
      for (uint32_t more = random() % 8; more > 0; --more) {
        try {
          cursor->Stage(static_cast<TokenId>(random() % test::kVocabulary));
        } catch (const Error& error) {
          ASSERT_EQ(error.code(), StatusCode::kInvalidArgument) << error.message();
        }
      }
      ASSERT_EQ(std::vector<uint32_t>(cursor->Mask().begin(), cursor->Mask().end()),
                std::vector<uint32_t>(witness->Mask().begin(), witness->Mask().end()))
          << "a mask is of the committed place";
      cursor->Rollback();
      cursor->Validate();
      ASSERT_EQ(PositionOf(*cursor), here) << "step " << step;
    }
    Take(*cursor, chosen);
    Take(*witness, chosen);
  }
}

TEST(GrammarCursor, ARolledBackStepLeavesNoTrace) {
  for (uint32_t seed = 1; seed <= 12; ++seed) {
    WalkWithRollbacks(MakeGrammarSpec("json_schema", kPerson), seed);
    WalkWithRollbacks(MakeGrammarSpec("regex", "(the|hello|日本)( world)?[a-f]{1,20}x"), seed);
    WalkWithRollbacks(MakeGrammarSpec("lark_grammar", "start: s\ns: \"(\" s \")\" | \"a\" s? | /[0-9]+/"), seed);
    WalkWithRollbacks(MakeDelimitedSpec(test::kOpen, test::kClose, "start: %json {\"type\":\"boolean\"} \"!\"?"), seed);
  }
}

TEST(GrammarCursor, CursorsOfOneGrammarAreIndependent) {
  const auto first = NewCursor("json_schema", kPerson);
  const auto second = NewCursor("json_schema", kPerson);
  const Position start = PositionOf(*second);
  ASSERT_EQ(TakeText(*first, R"({"name": "Jo", "age")"), 20u);
  EXPECT_EQ(PositionOf(*second), start);
  EXPECT_EQ(PositionOf(*NewCursor("json_schema", kPerson)), start);
}

TEST(GrammarCursor, ATokenThatCannotComeChangesNothing) {
  const auto cursor = NewCursor("regex", "ab");
  for (const TokenId bad : {TokenId{'b'}, test::kEos, test::kOpen, test::kHole, TokenId{-1},
                            static_cast<TokenId>(test::kVocabulary), TokenId{1 << 30}}) {
    EXPECT_THROW(cursor->Stage(bad), Error) << bad;
    EXPECT_EQ(cursor->staged_tokens(), 0u);
    EXPECT_FALSE(cursor->is_poisoned());
  }
  cursor->Stage('a');
  EXPECT_THROW(cursor->Stage('a'), Error);
  cursor->Stage('b');
  EXPECT_TRUE(cursor->IsComplete()) << "staged tokens count";
  cursor->Rollback();
  EXPECT_FALSE(cursor->IsComplete());
  EXPECT_EQ(AllowedTokens(*cursor), std::vector<TokenId>{'a'});
}

TEST(GrammarCursor, TheEndComesWhenTheGrammarMayEnd) {
  const auto cursor = NewCursor("regex", "a+");
  EXPECT_FALSE(cursor->MayEnd());
  EXPECT_FALSE(IsAllowed(*cursor, test::kEos));
  Take(*cursor, 'a');
  EXPECT_TRUE(cursor->MayEnd());
  EXPECT_TRUE(IsAllowed(*cursor, test::kEos));
  EXPECT_TRUE(IsAllowed(*cursor, test::kEndOfTurn));
  EXPECT_TRUE(IsAllowed(*cursor, 'a'));
  EXPECT_FALSE(cursor->IsComplete());
}

TEST(GrammarCursor, ATokenThatTheGrammarForcesIsTold) {
  std::vector<TokenId> forced(8);
  const auto cursor = NewCursor("regex", "ab[cd]e");
  ASSERT_EQ(cursor->ForcedTokens(forced), 1u);
  EXPECT_EQ(forced[0], 'a');
  Take(*cursor, 'a');
  Take(*cursor, 'b');
  EXPECT_EQ(cursor->ForcedTokens(forced), 0u) << "there is a choice";
  Take(*cursor, 'c');
  ASSERT_EQ(cursor->ForcedTokens(forced), 1u);
  EXPECT_EQ(forced[0], 'e');
  Take(*cursor, 'e');
  EXPECT_EQ(cursor->ForcedTokens(forced), 0u) << "the end is not a token of the text";
  EXPECT_EQ(cursor->ForcedTokens({}), 0u);
}

// With the model's own tokenizer, text without a choice is forced at once, cut as the model is used to.
GrammarTokenizer::Encoder WordEncoder() {
  return [](std::string_view text) {
    std::vector<TokenId> ids;
    while (!text.empty()) {
      if (text.starts_with("hello")) {
        ids.push_back(test::WordId("hello"));
        text.remove_prefix(5);
      } else if (text.starts_with(" world")) {
        ids.push_back(test::WordId(" world"));
        text.remove_prefix(6);
      } else {
        ids.push_back(static_cast<TokenId>(static_cast<unsigned char>(text[0])));
        text.remove_prefix(1);
      }
    }
    return ids;
  };
}

TEST(GrammarCursor, ForcedTextIsCutByTheTokenizerOfTheModel) {
  GrammarCompiler compiler(test::NewTokenizer(WordEncoder()));
  GrammarCursor cursor(compiler.Compile(MakeGrammarSpec("regex", "hello world, (a|b)")));
  std::vector<TokenId> forced(8);
  const size_t count = cursor.ForcedTokens(forced);
  ASSERT_GE(count, 2u);
  EXPECT_EQ(forced[0], test::WordId("hello"));
  EXPECT_EQ(forced[1], test::WordId(" world"));
  const auto before = AllowedTokens(cursor);
  EXPECT_EQ(before, std::vector<TokenId>{test::WordId("hello")}) << "the mask forces the same";
  for (size_t i = 0; i < count; ++i) cursor.Stage(forced[i]);
  cursor.Rollback();
  EXPECT_EQ(AllowedTokens(cursor), before);
  for (size_t i = 0; i < count; ++i) cursor.Stage(forced[i]);
  cursor.Commit();
  while (cursor.ForcedTokens(forced) > 0) Take(cursor, forced[0]);
  EXPECT_EQ(AllowedTokens(cursor), (std::vector<TokenId>{'a', 'b'}));
  cursor.Stage('a');
  EXPECT_TRUE(cursor.IsComplete());
}

TEST(GrammarCursor, AnEncoderThatIsWrongIsNotBelieved) {
  const std::vector<GrammarTokenizer::Encoder> encoders{
      [](std::string_view) { return std::vector<TokenId>{test::kOpen}; },
      [](std::string_view) {
        return std::vector<TokenId>{'x', -1, 1 << 30};
      },
      [](std::string_view) -> std::vector<TokenId> { throw std::runtime_error("no"); },
      [](std::string_view) { return std::vector<TokenId>{}; }};
  for (const auto& encode : encoders) {
    GrammarCompiler compiler(test::NewTokenizer(encode));
    GrammarCursor cursor(compiler.Compile(MakeGrammarSpec("regex", "hello日x(a|b)")));
    std::vector<TokenId> forced(16);
    const size_t count = cursor.ForcedTokens(forced);
    ASSERT_GE(count, 2u);
    EXPECT_EQ(forced[0], test::WordId("hello")) << "the longest token is";
    EXPECT_EQ(forced[1], test::WordId("日"));
  }
}

// A tokenizer may know tokens for which the model has no logits.
TEST(GrammarCursor, ForcedTextHasOnlyTokensThatTheModelHas) {
  test::UseLibrary();
  const auto model_tokens = static_cast<size_t>(test::WordId(" world"));
  const std::vector<TokenId> eos{test::kEos};
  GrammarCompiler compiler(
      std::make_shared<const GrammarTokenizer>(test::Vocabulary(), model_tokens, eos, WordEncoder()));
  GrammarCursor cursor(compiler.Compile(MakeGrammarSpec("regex", "hello world(a|b)")));
  std::vector<TokenId> forced(16);
  const size_t count = cursor.ForcedTokens(forced);
  ASSERT_GE(count, 3u);
  EXPECT_EQ(forced[0], test::WordId("hello"));
  EXPECT_EQ(forced[1], ' ');
  for (size_t i = 0; i < count; ++i) EXPECT_LT(static_cast<size_t>(forced[i]), model_tokens);
  for (size_t i = 0; i < count; ++i) Take(cursor, forced[i]);
}

TEST(GrammarCursor, GuidanceBetweenTwoTokensMayRepeat) {
  const GrammarSpec spec = MakeDelimitedSpec(test::kOpen, test::kClose, "start: /[0-9]+/ \";\"?");
  const auto cursor = NewCursor(spec);
  const Position outside = PositionOf(*cursor);
  EXPECT_EQ(outside.allowed.size(), test::kVocabulary) << "free: every id, and none beyond the vocabulary";
  EXPECT_TRUE(outside.may_end);
  EXPECT_FALSE(outside.is_complete);
  for (int round = 0; round < 3; ++round) {
    Take(*cursor, 'x');
    Take(*cursor, test::kClose);
    EXPECT_EQ(PositionOf(*cursor), outside) << "a closing token outside is text";
    Take(*cursor, test::kOpen);
    EXPECT_FALSE(cursor->MayEnd());
    EXPECT_FALSE(IsAllowed(*cursor, test::kClose)) << "not before the grammar may end";
    EXPECT_THROW(cursor->Stage(test::kClose), Error);
    EXPECT_THROW(cursor->Stage('x'), Error);
    Take(*cursor, test::WordId("12"));
    EXPECT_TRUE(IsAllowed(*cursor, test::kClose));
    EXPECT_TRUE(IsAllowed(*cursor, '5'));
    EXPECT_FALSE(IsAllowed(*cursor, test::kEos)) << "a turn ends outside only";
    EXPECT_FALSE(cursor->MayEnd());
    Take(*cursor, ';');
    EXPECT_EQ(AllowedTokens(*cursor), std::vector<TokenId>{test::kClose});
    EXPECT_FALSE(cursor->IsComplete()) << "free text may follow";
    std::vector<TokenId> forced(4);
    ASSERT_EQ(cursor->ForcedTokens(forced), 1u);
    EXPECT_EQ(forced[0], test::kClose);
    Take(*cursor, test::kClose);
    EXPECT_EQ(PositionOf(*cursor), outside);
  }
}

TEST(GrammarCursor, ATransactionMayCrossBothBorders) {
  const auto cursor = NewCursor(MakeDelimitedSpec(test::kOpen, test::kClose, "start: /[0-9]{3}/"));
  Take(*cursor, test::kOpen);
  Take(*cursor, test::WordId("12"));
  const Position here = PositionOf(*cursor);
  for (const TokenId token : std::vector<TokenId>{'3', test::kClose, 'x', test::kOpen, '7', '8', '9', test::kClose}) {
    cursor->Stage(token);
  }
  cursor->Stage(test::kOpen);
  cursor->Rollback();
  cursor->Validate();
  EXPECT_EQ(PositionOf(*cursor), here);
  for (const TokenId token : std::vector<TokenId>{'3', test::kClose, test::kOpen, '7'}) cursor->Stage(token);
  cursor->Commit();
  cursor->Validate();
  EXPECT_EQ(TakeText(*cursor, "89"), 2u);
  EXPECT_EQ(AllowedTokens(*cursor), std::vector<TokenId>{test::kClose});
}

TEST(GrammarCursor, AGrammarThatLeadsNowhereFailsWhereItDoes) {
  test::UseLibrary();
  auto table = std::make_shared<TokenBytes>(*test::Vocabulary());
  table->flags['z'] = 0;  // and no token has a z
  const std::vector<TokenId> eos{test::kEos};
  GrammarCompiler compiler(std::make_shared<const GrammarTokenizer>(table, test::kVocabulary, eos));
  GrammarCursor cursor(compiler.Compile(MakeGrammarSpec("regex", "az|b")));
  cursor.Stage('a');
  cursor.Rollback();
  Take(cursor, 'a');
  try {
    cursor.Mask();
    FAIL() << "an empty mask was handed out";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), StatusCode::kInvalidState);
    EXPECT_NE(error.message().find("leads nowhere from here"), std::string::npos) << error.message();
  }
  EXPECT_TRUE(cursor.is_poisoned());
  EXPECT_FALSE(cursor.IsComplete());
  EXPECT_THROW(compiler.Compile(MakeGrammarSpec("regex", "z")), Error) << "nothing can begin it";
}

TEST(GrammarCursor, CommitAndRollbackWithoutATokenDoNothing) {
  const auto cursor = NewCursor("regex", "ab");
  const Position start = PositionOf(*cursor);
  cursor->Rollback();
  cursor->Commit();
  EXPECT_EQ(PositionOf(*cursor), start);
}

}  // namespace
}  // namespace oga::grammar
