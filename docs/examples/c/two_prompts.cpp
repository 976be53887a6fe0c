// The same program as two_prompts.c, over oga.hpp: handles release themselves and failures are exceptions.
//
//   two_prompts MODEL_FOLDER PROMPTS_FILE [MAX_TOKENS]
#include <oga/oga.hpp>

#include <cstdlib>
#include <exception>
#include <fstream>
#include <iostream>
#include <sstream>
#include <stdexcept>
#include <string>
#include <vector>

namespace {

using Tokens = std::vector<int32_t>;

struct Conversation {
  std::string name;
  oga::Request request;
  Tokens answer;  // of the current turn
};

// One line of the file: token ids separated by spaces.
Tokens ReadLine(std::istream& file, const std::string& path) {
  std::string line;
  std::getline(file, line);
  std::istringstream numbers(line);
  Tokens tokens;
  for (int32_t id = 0; numbers >> id;) tokens.push_back(id);
  if (tokens.empty()) throw std::runtime_error("expected three lines of token ids in " + path);
  return tokens;
}

void BeginTurn(Conversation& conversation, const Tokens& input, uint64_t max_tokens) {
  oga::TurnOptions options = conversation.request.CreateTurnOptions();
  options.SetMaxGeneratedTokens(max_tokens);
  conversation.answer.clear();
  conversation.request.BeginTurn(input, options);
}

void PrintTurn(const Conversation& conversation, const oga::Event& event) {
  std::cout << conversation.name << ", turn " << event.turn_id() << ":";
  for (const int32_t token : conversation.answer) std::cout << ' ' << token;
  const oga::TurnUsage usage = event.usage();
  std::cout << "\n  " << usage.prompt_tokens << " prompt tokens, " << usage.generated_tokens
            << " generated; finish reason " << event.finish_reason() << "\n";
  if (event.finish_reason() == OgaFinishReason_Failed) throw std::runtime_error("a turn failed");
}

void Handle(const oga::Event& event, std::vector<Conversation>& conversations) {
  for (Conversation& conversation : conversations) {
    if (!event.IsOf(conversation.request)) continue;
    if (event.has_token()) conversation.answer.push_back(event.token());
    if (event.turn_finished()) PrintTurn(conversation, event);
    return;
  }
  throw std::runtime_error("the engine cannot go on: its key-value cache is too small or its execution failed");
}

void RunUntilIdle(oga::Engine& engine, oga::EventBuffer& events, std::vector<Conversation>& conversations) {
  while (engine.HasPendingRequests()) {
    engine.Run(events);
    for (const oga::Event event : events) Handle(event, conversations);
  }
}

void AnswerPrompts(const std::string& model_folder, const std::string& prompts_path, uint64_t max_tokens) {
  std::ifstream file(prompts_path);
  if (!file) throw std::runtime_error("cannot open " + prompts_path);
  const Tokens first = ReadLine(file, prompts_path);
  const Tokens second = ReadLine(file, prompts_path);
  const Tokens follow_up = ReadLine(file, prompts_path);

  oga::Engine engine{oga::Model(model_folder)};
  oga::EventBuffer events = engine.CreateEventBuffer(16);
  std::vector<Conversation> conversations;
  conversations.push_back({"first", engine.CreateRequest(), {}});
  conversations.push_back({"second", engine.CreateRequest(), {}});

  BeginTurn(conversations[0], first, max_tokens);
  BeginTurn(conversations[1], second, max_tokens);
  RunUntilIdle(engine, events, conversations);

  BeginTurn(conversations[0], follow_up, max_tokens);
  RunUntilIdle(engine, events, conversations);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 3 || argc > 4) {
    std::cerr << "usage: two_prompts MODEL_FOLDER PROMPTS_FILE [MAX_TOKENS]\n";
    return EXIT_FAILURE;
  }
  try {
    AnswerPrompts(argv[1], argv[2], argc == 4 ? std::stoull(argv[3]) : 48);
  } catch (const std::exception& error) {
    std::cerr << "two_prompts: " << error.what() << "\n";
    return EXIT_FAILURE;
  }
  oga::Shutdown();
  return EXIT_SUCCESS;
}
