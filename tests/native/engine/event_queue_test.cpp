#include "engine/event_queue.h"

#include <gtest/gtest.h>

#include "native/engine/request_access.h"

namespace oga::testing {
namespace {

Event Make(std::shared_ptr<Request> request, TurnId turn, TokenId token = 0) {
  Event event;
  event.request = std::move(request);
  event.turn_id = turn;
  event.token = token;
  return event;
}

std::vector<TokenId> Drain(EventQueue& queue) {
  std::vector<TokenId> tokens;
  while (!queue.empty()) tokens.push_back(queue.Pop().token);
  return tokens;
}

TEST(EventQueue, HandsOutInOrder) {
  EventQueue queue;
  queue.Reserve(3);
  EXPECT_TRUE(queue.empty());
  for (TokenId token = 0; token < 3; ++token) queue.Push(Make(nullptr, 1, token));
  EXPECT_EQ(queue.size(), 3u);
  EXPECT_EQ(queue.Pop().token, 0);
  EXPECT_EQ(queue.size(), 2u);
  EXPECT_EQ(Drain(queue), (std::vector<TokenId>{1, 2}));
}

TEST(EventQueue, FindsOnlyUndrainedEvents) {
  const auto a = LoneRequest();
  const auto b = LoneRequest(100, 1);
  EventQueue queue;
  queue.Reserve(4);
  queue.Push(Make(a, 1, 10));
  queue.Push(Make(b, 1, 11));
  EXPECT_TRUE(queue.HasEventOf(*a));
  ASSERT_NE(queue.FindLast(*b, 1), nullptr);
  EXPECT_EQ(queue.FindLast(*b, 1)->token, 11);
  EXPECT_EQ(queue.FindLast(*b, 2), nullptr) << "another turn";
  queue.Pop();
  EXPECT_FALSE(queue.HasEventOf(*a));
  EXPECT_EQ(queue.FindLast(*a, 1), nullptr);
  EXPECT_TRUE(queue.HasEventOf(*b));
}

TEST(EventQueue, LooksAtEveryUndrainedEvent) {
  EventQueue queue;
  queue.Reserve(3);
  for (TokenId token = 0; token < 3; ++token) queue.Push(Make(nullptr, 1, token));
  const auto positive = [](const Event& event) { return event.token > 0; };
  EXPECT_FALSE(queue.AllOf(positive));
  queue.Pop();
  EXPECT_TRUE(queue.AllOf(positive));
}

TEST(EventQueue, PurgesARequestsEventsAndKeepsTheOrderOfTheOthers) {
  const auto a = LoneRequest();
  const auto b = LoneRequest(100, 1);
  EventQueue queue;
  queue.Reserve(6);
  queue.Push(Make(b, 1, 0));
  queue.Push(Make(a, 1, 1));
  queue.Push(Make(nullptr, 0, 2));
  queue.Push(Make(b, 1, 3));
  queue.Push(Make(a, 1, 4));
  queue.Push(Make(b, 1, 5));
  queue.Pop();
  queue.Purge(*a);
  EXPECT_EQ(queue.size(), 3u);
  EXPECT_FALSE(queue.HasEventOf(*a));
  EXPECT_EQ(a.use_count(), 1) << "the queue lets go of it";
  EXPECT_EQ(Drain(queue), (std::vector<TokenId>{2, 3, 5}));
}

TEST(EventQueue, IsEmptyAndUsableAfterItsLastEventsArePurged) {
  const auto a = LoneRequest();
  EventQueue queue;
  queue.Reserve(2);
  queue.Push(Make(nullptr, 0, 1));
  queue.Push(Make(a, 1, 2));
  queue.Pop();
  queue.Purge(*a);
  EXPECT_TRUE(queue.empty());
  queue.Reserve(1);
  queue.Push(Make(nullptr, 0, 9));
  EXPECT_EQ(Drain(queue), std::vector<TokenId>{9});
}

TEST(EventQueue, KeepsItsEventsInPlaceWhileTheRoomMadeLasts) {
  EventQueue queue;
  queue.Reserve(8);
  const auto a = LoneRequest();
  queue.Push(Make(a, 1));
  const Event* first = queue.FindLast(*a, 1);
  for (int i = 0; i < 7; ++i) queue.Push(Make(nullptr, 0));
  EXPECT_EQ(queue.FindLast(*a, 1), first);
}

TEST(EventQueue, MovesItsEventsRarelyWhenRoomIsMadeOneByOne) {
  EventQueue queue;
  const auto first = LoneRequest();
  const auto other = LoneRequest();
  const Event* place = nullptr;
  int moves = 0;
  for (size_t i = 0; i < 1000; ++i) {
    queue.Reserve(queue.size() + 1);
    queue.Push(Make(i == 0 ? first : other, 1));
    moves += queue.FindLast(*first, 1) != place;
    place = queue.FindLast(*first, 1);
  }
  EXPECT_LE(moves, 11);
}

}  // namespace
}  // namespace oga::testing
