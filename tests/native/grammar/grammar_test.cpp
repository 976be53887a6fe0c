// Compiling: each kind, the words of its errors, and texts that are meant to hurt.
#include "grammar/grammar.h"

#include <gtest/gtest.h>

#include <atomic>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "grammar/lark.h"
#include "native/grammar/grammar_world.h"

namespace oga::grammar {
namespace {

using test::Admits;
using test::ErrorOf;
using test::ExpectRefused;

TEST(Grammar, EachKindAdmitsWhatItSays) {
  EXPECT_TRUE(Admits("regex", "[a-c]{2,3}/x", "abc/x"));
  EXPECT_FALSE(Admits("regex", "[a-c]{2,3}", "a"));
  EXPECT_FALSE(Admits("regex", "[a-c]{2,3}", "abca"));
  EXPECT_TRUE(Admits("regex", "日+本?", "日日本"));
  EXPECT_TRUE(Admits("lark_grammar", "start: \"a\" b* \"c\"\nb: \"x\" | \"y\"", "axyc"));
  EXPECT_FALSE(Admits("lark_grammar", "start: \"a\" b* \"c\"\nb: \"x\" | \"y\"", "axz"));
  EXPECT_TRUE(Admits("json_schema", R"({"type":"boolean"})", "true"));
  EXPECT_TRUE(Admits("json_object", "", R"({"a": [1, {"b": null}]})"));
  EXPECT_FALSE(Admits("json_object", "", "[1]"));
  EXPECT_FALSE(Admits("json_object", "", R"({"a": 1)"));
}

TEST(Grammar, TheMaskKnowsLongTokensAndBothEndTokens) {
  const auto cursor = test::NewCursor("json_schema", R"({"type":"boolean"})");
  const std::vector<TokenId> expected{'f', 't', test::WordId("true"), test::WordId("false")};
  EXPECT_EQ(test::AllowedTokens(*cursor), expected);
  test::Take(*cursor, test::WordId("true"));
  EXPECT_EQ(test::AllowedTokens(*cursor), (std::vector<TokenId>{test::kEos, test::kEndOfTurn}));
  EXPECT_TRUE(cursor->MayEnd());
  EXPECT_TRUE(cursor->IsComplete());
}

TEST(Grammar, NeverAdmitsTokensThatNoTextHas) {
  const auto cursor = test::NewCursor("regex", "(.|\\n)+");
  const std::vector<TokenId> allowed = test::AllowedTokens(*cursor);
  const std::set<TokenId> set(allowed.begin(), allowed.end());
  for (const TokenId id : {test::kHole, test::kOpen, test::kClose, TokenId{0xff}, test::WordId("\xff\x01"),
                           static_cast<TokenId>(test::kVocabulary - 1)}) {
    EXPECT_FALSE(set.contains(id)) << id;
  }
  EXPECT_TRUE(set.contains(test::WordId("\xe6\x97"))) << "half a character may begin one";
  test::Take(*cursor, test::WordId("\xe6\x97"));
  EXPECT_FALSE(test::IsAllowed(*cursor, 'a'));
  EXPECT_FALSE(cursor->MayEnd());
}

TEST(Grammar, ASpecialTokenIsNamedInLarkAndItsNameIsText) {
  constexpr std::string_view kGrammar = "start: <call> \"<call>\"";
  const auto cursor = test::NewCursor("lark_grammar", kGrammar);
  EXPECT_EQ(test::AllowedTokens(*cursor), std::vector<TokenId>{test::kOpen});
  test::Take(*cursor, test::kOpen);
  EXPECT_EQ(test::TakeText(*cursor, "<call>"), 6u);
  EXPECT_TRUE(cursor->IsComplete());
  EXPECT_NE(ErrorOf("lark_grammar", "start: <unknown>").message().find("<unknown>"), std::string::npos);
}

TEST(Grammar, ErrorsOfRegularExpressionsTellThePosition) {
  ExpectRefused("regex", "[", {"the regular expression is refused", "at character 1: unclosed character class"});
  ExpectRefused("regex", "ab(c", {"at character 3: unclosed group"});
  ExpectRefused("regex", "a)b", {"at character 2: unopened group"});
  ExpectRefused("regex", "*a", {"at character 1: repetition operator missing expression"});
  ExpectRefused("regex", "(a)\\1", {"backreferences are not supported"});
  ExpectRefused("regex", "\\bfoo", {"lookarounds not supported"});
  ExpectRefused("regex", "[a&&b]", {"admits no text at all"});
}

TEST(Grammar, ErrorsOfLarkTellTheLine) {
  ExpectRefused("lark_grammar", "start: \"a\"\nb: (\"c\"", {"the Lark grammar is refused", "2("});
  ExpectRefused("lark_grammar", "start: missing", {"missing"});
  ExpectRefused("lark_grammar", "begin: \"a\"", {"start"});
  ExpectRefused("lark_grammar", "start: start", {"admits no text at all"});
  ExpectRefused("lark_grammar", "start: /[/", {"at character 1: unclosed character class"});
  ExpectRefused("lark_grammar", R"({"grammars":[{"json_schema":{"x-guidance":{"lenient":true},"not":{}}}]})",
                {"Lark grammar"});
}

TEST(Grammar, SchemasInsideLarkAreHeldToTheSameRules) {
  EXPECT_TRUE(Admits("lark_grammar", "start: \"<\" %json {\"type\":\"integer\",\"title\":\"n\"} \">\"", "<12>"));
  for (const std::string_view before : {"", "# %json\nx: <a/b> ", "x: /a\\/%json/ \"\\\"\" ", "x: </call> "}) {
    const std::string grammar =
        "start: x\n" + std::string(before.empty() ? "x: " : before) + "%json {\"type\":\"array\",\"uniqueItems\":true}";
    ExpectRefused("lark_grammar", grammar, {"'uniqueItems' at #"});
  }
  EXPECT_EQ(PrepareLark("start: \"%json {}\" /%json {}/ // %json {}\n# %json {\"not\":1}"),
            "start: \"%json {}\" /%json {}/ // %json {}\n# %json {\"not\":1}");
}

TEST(Grammar, OnlyTheEmptyTextIsCompleteAtOnce) {
  const auto cursor = test::NewCursor("regex", "a{0}");
  EXPECT_TRUE(cursor->IsComplete());
  EXPECT_TRUE(cursor->MayEnd());
  EXPECT_FALSE(test::NewCursor("regex", "a?")->IsComplete());
}

TEST(Grammar, HostileTextsAreRefusedOrBounded) {
  const std::string many(4000, '(');
  ExpectRefused("regex", many + "a" + std::string(4000, ')'), {"regular expression"});
  ExpectRefused("regex", std::string(4000, '[') + "a" + std::string(4000, ']'), {"regular expression"});
  ExpectRefused("lark_grammar", "start: " + many + "\"a\"" + std::string(4000, ')'), {"nested"});
  std::string chain = "start: a0";
  for (size_t i = 0; chain.size() < kMaxLarkBytes - 100; ++i) {
    chain += "\na" + std::to_string(i) + ":a" + std::to_string(i + 1);
    if (chain.size() >= kMaxLarkBytes - 100) chain += "\na" + std::to_string(i + 1) + ":\"a\"";
  }
  EXPECT_EQ(ErrorOf("lark_grammar", chain).message(), "") << "as deep as the limit allows";
  ExpectRefused("lark_grammar", chain + std::string(100, ' '), {"bytes beside its JSON schemas; at most 16384"});
  ExpectRefused("lark_grammar", "start: \"a\"" + std::string(kMaxLarkLines, '\n'), {"lines; at most 4096"});
  EXPECT_EQ(ErrorOf("regex", "(a|b)*a(a|b){60}").code(), StatusCode::kOk) << "its automaton is never built whole";
}

TEST(Grammar, ExplosionsPoisonTheCursorAndEnd) {
  int poisoned = 0;
  for (const std::string_view regex : {"((a{1000}){1000}){1000}", "(a{1,1000}){1,1000}", "(a?){500}a{500}",
                                       "((((a{0,30}){0,30}){0,30}){0,30}){0,30}"}) {
    const Error error = ErrorOf("regex", regex);
    if (error.code() != StatusCode::kOk) continue;  // found while compiling
    const auto cursor = test::NewCursor("regex", regex);
    for (int i = 0; i < 200 && !cursor->is_poisoned(); ++i) {
      cursor->ComputeMask();
      if (cursor->is_poisoned()) break;
      try {
        test::Take(*cursor, 'a');
      } catch (const Error&) {
        EXPECT_TRUE(cursor->is_poisoned());
      }
    }
    if (!cursor->is_poisoned()) continue;  // so far it was cheap
    ++poisoned;
    EXPECT_NE(cursor->Fault().find("llguidance cannot follow the grammar any further: "), std::string::npos)
        << cursor->Fault();
    EXPECT_THROW(cursor->Mask(), Error);
    EXPECT_THROW(cursor->Stage('a'), Error);
    cursor->Rollback();
    EXPECT_THROW(cursor->Mask(), Error) << "a fault is for good";
  }
  EXPECT_GE(poisoned, 2);
}

TEST(Grammar, TheLastGrammarsAreKept) {
  GrammarCompiler compiler(test::NewTokenizer());
  const GrammarSpec spec = MakeGrammarSpec("regex", "kept[0-9]");
  const auto first = compiler.Compile(spec);
  EXPECT_EQ(compiler.Compile(spec), first);
  EXPECT_NE(compiler.Compile(MakeGrammarSpec("lark_grammar", "start: \"kept\"")), first);
  for (size_t i = 0; i + 1 < GrammarCompiler::kKeptGrammars; ++i) {
    compiler.Compile(MakeGrammarSpec("regex", "other" + std::to_string(i)));
    ASSERT_EQ(compiler.Compile(spec), first) << "what is used stays";
  }
  for (size_t i = 0; i < GrammarCompiler::kKeptGrammars; ++i) {
    compiler.Compile(MakeGrammarSpec("regex", "more" + std::to_string(i)));
  }
  EXPECT_NE(compiler.Compile(spec), first) << "what is not used goes";
  EXPECT_EQ(first->NewMatcher()->Fault(), "") << "and lives on where it is used";
}

TEST(Grammar, ThreadsThatWantTheSameTextGetTheSameGrammar) {
  GrammarCompiler compiler(test::NewTokenizer());
  const GrammarSpec spec = MakeGrammarSpec("regex", "(ab|c){100,200}");
  const GrammarSpec wrong = MakeGrammarSpec("regex", "(ab|c){200,100}");
  std::vector<std::shared_ptr<const Grammar>> found(8);
  std::atomic<int> refused = 0;
  std::vector<std::thread> threads;
  for (std::shared_ptr<const Grammar>& grammar : found) {
    threads.emplace_back([&] {
      try {
        compiler.Compile(wrong);
      } catch (const Error&) {
        ++refused;
      }
      grammar = compiler.Compile(spec);
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(refused, 8) << "what fails is forgotten, and fails again";
  for (const std::shared_ptr<const Grammar>& grammar : found) EXPECT_EQ(grammar, found.front());
  EXPECT_EQ(compiler.Compile(spec), found.front());
}

TEST(Grammar, DelimitersMustBeInTheVocabulary) {
  constexpr std::string_view kLark = "start: \"a\"";
  EXPECT_NO_THROW(test::Compiler().Compile(MakeDelimitedSpec(test::kOpen, test::kClose, kLark)));
  EXPECT_EQ(test::Compiler().Compile(MakeDelimitedSpec(test::kOpen, test::kClose, kLark)),
            test::Compiler().Compile(MakeGrammarSpec("lark_grammar", kLark)))
      << "one grammar, wherever it acts";
  for (const TokenId bad : {test::kHole, static_cast<TokenId>(test::kVocabulary), TokenId{1 << 30}}) {
    EXPECT_THROW(test::Compiler().Compile(MakeDelimitedSpec(test::kOpen, bad, kLark)), Error) << bad;
    EXPECT_THROW(test::Compiler().Compile(MakeDelimitedSpec(bad, test::kClose, kLark)), Error) << bad;
  }
}

TEST(Grammar, ManyThreadsMayBeginTheSameOne) {
  const auto grammar = test::Compiler().Compile(MakeGrammarSpec("json_object", ""));
  std::vector<std::thread> threads;
  std::atomic<int> right = 0;
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([&] {
      for (int j = 0; j < 20; ++j) {
        GrammarCursor cursor(grammar);
        right += test::TakeText(cursor, R"({"a":1})") == 7 && cursor.IsComplete();
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(right, 80);
}

}  // namespace
}  // namespace oga::grammar
