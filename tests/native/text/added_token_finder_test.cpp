// Where added tokens stand in a text.
#include "text/added_token_finder.h"

#include <gtest/gtest.h>

namespace oga {
namespace {

using Strings = std::vector<std::string>;

// The stretches, those of tokens in brackets.
Strings Split(const std::vector<AddedToken>& tokens, std::string_view text) {
  std::vector<const AddedToken*> pointers;
  Strings written;
  for (const AddedToken& token : tokens) {
    pointers.push_back(&token);
    written.push_back(token.content);
  }
  Strings stretches;
  for (const TextStretch& stretch : AddedTokenFinder(pointers, written).Split(text)) {
    const std::string plain(stretch.text);
    stretches.push_back(stretch.token == nullptr ? plain : "[" + plain + "]");
  }
  return stretches;
}

TEST(AddedTokenFinder, PrefersTheLeftmostAndThenTheLongest) {
  EXPECT_EQ(Split({{.content = "<a>"}, {.content = "<a><b>"}, {.content = "a><b>"}}, "x<a><b><a>"),
            (Strings{"x", "[<a><b>]", "[<a>]"}));
}

TEST(AddedTokenFinder, GivesNoEmptyStretches) {
  EXPECT_EQ(Split({{.content = "<a>"}}, "<a><a>"), (Strings{"[<a>]", "[<a>]"}));
  EXPECT_EQ(Split({{.content = "<a>"}}, ""), Strings{});
  EXPECT_EQ(Split({}, "plain"), Strings{"plain"});
  EXPECT_EQ(Split({{.content = ""}}, "plain"), Strings{"plain"}) << "nothing is found everywhere";
}

TEST(AddedTokenFinder, TakesTheWhitespaceThatATokenAsksFor) {
  EXPECT_EQ(Split({{.content = "<a>", .lstrip = true}}, "x \t\u3000<a> y"), (Strings{"x", "[ \t\u3000<a>]", " y"}));
  EXPECT_EQ(Split({{.content = "<a>", .rstrip = true}}, "x <a>\n\u3000y"), (Strings{"x ", "[<a>\n\u3000]", "y"}));
  EXPECT_EQ(Split({{.content = "<a>", .lstrip = true, .rstrip = true}}, " <a> "), Strings{"[ <a> ]"});
}

TEST(AddedTokenFinder, GivesWhitespaceBetweenTwoTokensToTheFirst) {
  EXPECT_EQ(Split({{.content = "<a>", .rstrip = true}, {.content = "<b>", .lstrip = true}}, "<a>  <b>"),
            (Strings{"[<a>  ]", "[<b>]"}));
}

TEST(AddedTokenFinder, SearchesForWhatIsWritten) {
  const AddedToken token{.content = "a b", .id = 7};
  const AddedTokenFinder finder({&token}, {"a_b"});
  const auto stretches = finder.Split("a b a_b");
  ASSERT_EQ(stretches.size(), 2u);
  EXPECT_EQ(stretches[0].text, "a b ");
  EXPECT_EQ(stretches[1].token, &token);
}

}  // namespace
}  // namespace oga
