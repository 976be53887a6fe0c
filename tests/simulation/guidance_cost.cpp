// Microseconds per guided row: the mask of the next token, and a token staged and committed, over the vocabulary of a
// model folder. Texts are random walks through the grammar; medians over all their places.
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <functional>
#include <random>
#include <string>
#include <vector>

#include "native/grammar/grammar_world.h"
#include "text/tokenizer.h"

namespace {

using namespace oga;
using namespace oga::grammar;

constexpr int kWalks = 30;
constexpr int kTokens = 100;
constexpr const char* kForm =
    R"({"type":"object","properties":{"name":{"type":"string","maxLength":40},"age":{"type":"integer","minimum":0,)"
    R"("maximum":120},"tags":{"type":"array","items":{"enum":["red","green","blue"]},"maxItems":4}},)"
    R"("required":["name","age","tags"],"additionalProperties":false})";

struct CostCase {
  const char* name;
  const char* type;
  const char* text;
};

const CostCase kCases[] = {
    {"a JSON schema", "json_schema", kForm},
    {"any JSON object", "json_object", ""},
    {"a JSON string", "json_schema", R"({"type":"string"})"},
    {"regex, words", "regex", "([a-z]+ ){5,60}"},
    {"Lark, arithmetic", "lark_grammar",
     "start: sum\nsum: product (/[+-]/ product)*\nproduct: value (/[*\\/]/ value)*\n"
     "value: /[0-9]+/ | \"(\" sum \")\""},
};

double Microseconds(const std::function<void()>& work) {
  const auto start = std::chrono::steady_clock::now();
  work();
  return std::chrono::duration<double, std::micro>(std::chrono::steady_clock::now() - start).count();
}

double At(std::vector<double>& values, double share) {
  const auto place = values.begin() + static_cast<ptrdiff_t>(share * static_cast<double>(values.size() - 1));
  std::nth_element(values.begin(), place, values.end());
  return *place;
}

// A token that may come here and does not end the turn; -1 when there is none.
TokenId Draw(GrammarCursor& cursor, const std::vector<TokenId>& eos, std::mt19937& random) {
  const auto mask = cursor.Mask();
  std::vector<TokenId> allowed;
  for (size_t token = 0; token < mask.size() * 32; ++token) {
    const bool is_end = std::find(eos.begin(), eos.end(), static_cast<TokenId>(token)) != eos.end();
    if (!is_end && (mask[token / 32] >> (token % 32) & 1) != 0) allowed.push_back(static_cast<TokenId>(token));
  }
  return allowed.empty() ? -1 : allowed[random() % allowed.size()];
}

void Print(const CostCase& cost, GrammarCompiler& compiler, const std::vector<TokenId>& eos) {
  std::shared_ptr<const Grammar> grammar;
  const GrammarSpec spec = MakeGrammarSpec(cost.type, cost.text);
  const double compile = Microseconds([&] { grammar = compiler.Compile(spec); });
  std::mt19937 random(1);
  std::vector<double> masks;
  std::vector<double> stages;
  for (int walk = 0; walk < kWalks; ++walk) {
    GrammarCursor cursor(grammar);
    for (int place = 0; place < kTokens && !cursor.IsComplete(); ++place) {
      masks.push_back(Microseconds([&] { cursor.ComputeMask(); }));
      const TokenId token = Draw(cursor, eos, random);
      if (token < 0) break;
      stages.push_back(Microseconds([&] {
        cursor.Stage(token);
        cursor.Commit();
      }));
    }
  }
  std::printf("%-18s  %10.0f  %8.1f  %8.1f  %8.2f\n", cost.name, compile, At(masks, 0.5), At(masks, 0.95),
              At(stages, 0.5));
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) {
    std::fprintf(stderr, "usage: guidance_cost MODEL_FOLDER\n");
    return 2;
  }
  try {
    oga::grammar::test::UseLibrary();
    const auto tokenizer = Tokenizer::FromFolder(argv[1]);
    const std::vector<TokenId>& eos = tokenizer->roles().eos;
    const size_t vocabulary = tokenizer->token_bytes()->size();
    GrammarCompiler compiler(std::make_shared<const GrammarTokenizer>(
        tokenizer->token_bytes(), vocabulary, eos,
        [&](std::string_view text) { return tokenizer->Encode(text, /*add_special=*/false); }));
    std::printf("guided, %zu tokens   us to compile   us/mask       p95  us/token\n", vocabulary);
    for (const CostCase& cost : kCases) Print(cost, compiler, eos);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "guidance_cost: %s\n", error.what());
    return 1;
  }
  return 0;
}
