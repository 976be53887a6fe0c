// The ledger over machines that are made up, and each of its invariants broken.
#include "memory/ledger.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <thread>
#include <vector>

#include "support/invariants.h"

namespace oga {

struct LedgerAccess {
  static Ledger::Entry& Entry(Ledger& ledger, size_t index) { return ledger.entries_[index]; }
};

namespace {

using testing::Breaks;

// What is available moves as a real machine's does when a test says so.
struct Machine {
  HostMemory host{1000, "the machine"};
  uint64_t resident_bytes = 0;
  int readings = 0;
  bool silent = false;

  LedgerSources Sources(std::optional<uint64_t> stated = {}) {
    return {stated,
            [this] {
              ++readings;
              if (silent) Throw(StatusCode::kIoError, "nobody tells");
              return host;
            },
            [this](uintptr_t, uint64_t) { return resident_bytes; }};
  }
};

MemoryRefused RefusalOf(const std::function<void()>& action) {
  try {
    action();
  } catch (const MemoryRefused& refusal) {
    return refusal;
  }
  ADD_FAILURE() << "nothing was refused";
  return {{}, "", 0};
}

bool Contains(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

class Ledgers : public ::testing::Test {
 protected:
  Machine machine_;
  Ledger ledger_{machine_.Sources()};
};

TEST_F(Ledgers, ChargeWhatIsClaimedUntilItIsGivenBack) {
  {
    Lease lease = ledger_.Claim(MemoryRole::kWeights, 300, BeyondMemory::kRefuse);
    EXPECT_EQ(lease.role(), MemoryRole::kWeights);
    EXPECT_EQ(lease.bytes(), 300u);
    lease.Grow(200);
    lease.Shrink(100);
    EXPECT_EQ(ledger_.Report().of(MemoryRole::kWeights).owned, 400u);
    lease.Resize(50);
    lease.Resize(60);
    EXPECT_EQ(ledger_.Report().total().owned, 60u);
    lease.Shrink(1000);
    EXPECT_EQ(lease.bytes(), 0u);
    lease.Grow(7);
  }
  EXPECT_EQ(ledger_.Report().total().owned, 0u);
  ledger_.Validate();
}

TEST_F(Ledgers, FollowALeaseThatMoves) {
  Lease first = ledger_.Claim(MemoryRole::kKv, 100, BeyondMemory::kRefuse);
  Lease second = std::move(first);
  EXPECT_EQ(first.bytes(), 0u);
  first.Release();
  EXPECT_EQ(ledger_.Report().total().owned, 100u);
  second = ledger_.Claim(MemoryRole::kOutput, 30, BeyondMemory::kRefuse);
  EXPECT_EQ(ledger_.Report().total().owned, 30u);
  Lease of_nobody;
  of_nobody.Grow(uint64_t{1} << 60);
  of_nobody.Shrink(1);
  of_nobody.Settle();
  of_nobody.CountByPages(this, 1);
  EXPECT_EQ(of_nobody.bytes(), 0u);
}

TEST_F(Ledgers, RefuseWhatIsNotThereAndChangeNothing) {
  const Lease held = ledger_.Claim(MemoryRole::kWeights, 800, BeyondMemory::kRefuse);
  Lease lease = ledger_.Claim(MemoryRole::kKv, 100, BeyondMemory::kRefuse);
  const MemoryRefused claim = RefusalOf([&] { ledger_.Claim(MemoryRole::kKv, 101, BeyondMemory::kRefuse); });
  EXPECT_EQ(claim.code(), StatusCode::kResourceExhausted);
  EXPECT_EQ(claim.field(), "engine.dynamic_batching.num_blocks");
  EXPECT_EQ(claim.left_bytes(), 100u);
  for (const char* part : {"key-value cache", "101 bytes are wanted", "the machine leaves 100 bytes",
                           "weights 800 bytes, key-value cache 100 bytes", "set engine.dynamic_batching.num_blocks"}) {
    EXPECT_TRUE(Contains(claim.message(), part)) << claim.message();
  }
  EXPECT_EQ(RefusalOf([&] { lease.Grow(101); }).left_bytes(), 100u);
  EXPECT_EQ(lease.bytes(), 100u);
  EXPECT_EQ(ledger_.Report().total().owned, 900u);
  EXPECT_EQ(ledger_.Report().refusals, 2u);
  lease.Grow(100);
  ledger_.Validate();
}

TEST_F(Ledgers, AttributeWhatIsBeyondTheMemoryAndLeaveHalf) {
  Lease lease = ledger_.Claim(MemoryRole::kKv, 5000, BeyondMemory::kAttribute);
  EXPECT_EQ(lease.owned_bytes(), 500u);
  EXPECT_EQ(lease.bytes(), 5000u);
  EXPECT_EQ(ledger_.Report().of(MemoryRole::kKv).mapped, 4500u);
  EXPECT_EQ(ledger_.ClaimHalf(MemoryRole::kKv, 1, 1000).units, 250u);
  lease.Shrink(4400);
  EXPECT_EQ(lease.owned_bytes(), 500u) << "what is only mapped is given back first";
  lease.Shrink(300);
  EXPECT_EQ(lease.owned_bytes(), 300u);
  const Lease whole = ledger_.Claim(MemoryRole::kKv, 700, BeyondMemory::kAttribute);
  EXPECT_EQ(whole.owned_bytes(), 700u) << "what fits is set aside whole";
  ledger_.Validate();
}

TEST_F(Ledgers, NeverHoldMoreThanWasStated) {
  Ledger ledger(machine_.Sources(400));
  const Lease lease = ledger.Claim(MemoryRole::kWeights, 300, BeyondMemory::kAttribute);
  const MemoryRefused refusal = RefusalOf([&] { ledger.Claim(MemoryRole::kKv, 101, BeyondMemory::kAttribute); });
  EXPECT_EQ(refusal.left_bytes(), 100u);
  EXPECT_TRUE(Contains(refusal.message(), "OGA_MEMORY_LIMIT, 400 bytes, leaves 100 bytes")) << refusal.message();
  EXPECT_EQ(RefusalOf([&] { ledger.Claim(MemoryRole::kWeights, 101, BeyondMemory::kRefuse); }).field(),
            "OGA_MEMORY_LIMIT");
  const Ledger::Share share = ledger.ClaimHalf(MemoryRole::kKv, 10, 100);
  EXPECT_EQ(share.units, 5u);
  EXPECT_EQ(share.bound, "OGA_MEMORY_LIMIT");
  EXPECT_EQ(ledger.Report().limit_bytes, 400u);
  EXPECT_EQ(ledger.Report().bound, "OGA_MEMORY_LIMIT");
  ledger.Validate();
  // What is attributed counts too: a stated limit is one of all that is held.
  machine_.host.available_bytes = 40;
  Ledger tight(machine_.Sources(400));
  const Lease most = tight.Claim(MemoryRole::kKv, 400, BeyondMemory::kAttribute);
  EXPECT_EQ(most.owned_bytes(), 20u);
  EXPECT_THROW(tight.Claim(MemoryRole::kKv, 1, BeyondMemory::kAttribute), MemoryRefused);
  tight.Validate();
}

// Half of what is left, each time; and the machine's bound is named when it is the tighter one.
TEST_F(Ledgers, ShareByHalves) {
  const Ledger::Share first = ledger_.ClaimHalf(MemoryRole::kKv, 30, 100);
  EXPECT_EQ(first.units, 16u);
  EXPECT_EQ(first.left_bytes, 1000u);
  EXPECT_EQ(first.bound, "the machine");
  EXPECT_EQ(first.lease.bytes(), 480u);
  const Ledger::Share second = ledger_.ClaimHalf(MemoryRole::kKv, 30, 3);
  EXPECT_EQ(second.units, 3u) << "no more than is of use";
  const Ledger::Share none = ledger_.ClaimHalf(MemoryRole::kKv, 300, 1);
  EXPECT_EQ(none.units, 0u);
  EXPECT_EQ(none.left_bytes, 430u);
  EXPECT_EQ(none.lease.bytes(), 0u);
  EXPECT_EQ(ledger_.ClaimHalf(MemoryRole::kKv, 0, 9).units, 9u) << "units that take no memory";
}

// Of pages that nobody has written, the kernel still says that they are available; they are spoken for all the same.
TEST_F(Ledgers, SubtractWhatWasPromisedAndIsNotThereYet) {
  Lease cache = ledger_.Claim(MemoryRole::kKv, 400, BeyondMemory::kRefuse);
  const auto left = [&] { return ledger_.ClaimHalf(MemoryRole::kKv, 1, 1).left_bytes; };
  EXPECT_EQ(left(), 600u) << "awaited";
  cache.CountByPages(this, 500);
  EXPECT_EQ(left(), 600u) << "mapped, not written";
  machine_.resident_bytes = 300;
  machine_.host.available_bytes = 700;
  EXPECT_EQ(left(), 600u) << "written in part: missing from what is available, and not to be subtracted again";
  machine_.resident_bytes = 450;
  machine_.host.available_bytes = 600;
  EXPECT_EQ(left(), 600u) << "more there than was charged";
  Lease weights = ledger_.Claim(MemoryRole::kWeights, 100, BeyondMemory::kRefuse);
  EXPECT_EQ(left(), 500u) << "being loaded";
  machine_.host.available_bytes = 500;
  weights.Settle();
  EXPECT_EQ(left(), 500u) << "loaded";
}

TEST_F(Ledgers, FollowOtherProcesses) {
  const Lease lease = ledger_.Claim(MemoryRole::kKv, 400, BeyondMemory::kRefuse);
  machine_.host.available_bytes = 450;  // somebody took 550
  const Ledger::Share share = ledger_.ClaimHalf(MemoryRole::kKv, 1, 1000);
  EXPECT_EQ(share.left_bytes, 50u);
  EXPECT_EQ(ledger_.Report().limit_bytes, 450u);
  machine_.host.available_bytes = 100;  // and more than was left
  EXPECT_EQ(ledger_.ClaimHalf(MemoryRole::kKv, 1, 1000).left_bytes, 0u);
  ledger_.Validate();
  machine_.host.available_bytes = 5000;
  EXPECT_EQ(ledger_.ClaimHalf(MemoryRole::kKv, 1, 1000).left_bytes, 5000u - 425);
}

// Addresses are used up by mapping, memory by writing.
TEST_F(Ledgers, CountAddressesByWhatIsMapped) {
  machine_.host.addresses_bytes = 600;
  Lease cache = ledger_.Claim(MemoryRole::kKv, 400, BeyondMemory::kRefuse);
  EXPECT_EQ(ledger_.ClaimHalf(MemoryRole::kKv, 1, 1).left_bytes, 200u);
  cache.CountByPages(this, 400);
  machine_.host.addresses_bytes = 200;
  const Ledger::Share share = ledger_.ClaimHalf(MemoryRole::kKv, 1, 1);
  EXPECT_EQ(share.left_bytes, 200u);
  EXPECT_EQ(share.bound, kAddressSpaceBound);
}

// Reading what there is costs files and system calls; a lease that grows pays for it only when it must.
TEST_F(Ledgers, ReadTheMachineForANewLeaseAndBeforeARefusal) {
  Lease lease = ledger_.Open(MemoryRole::kWorkspace, BeyondMemory::kRefuse);
  EXPECT_EQ(machine_.readings, 0);
  lease.Grow(100);
  EXPECT_EQ(machine_.readings, 1);
  lease.Grow(100);
  EXPECT_EQ(machine_.readings, 1);
  machine_.host.available_bytes = 2000;
  lease.Grow(1500);
  EXPECT_EQ(machine_.readings, 2);
  machine_.host.available_bytes = 1800;
  EXPECT_THROW(lease.Grow(2000), MemoryRefused);
  EXPECT_EQ(machine_.readings, 3);
}

TEST_F(Ledgers, GrantWhatNobodyCanBoundAndRefuseToGuessIt) {
  machine_.silent = true;
  const Lease lease = ledger_.Claim(MemoryRole::kKv, 5000, BeyondMemory::kRefuse);
  EXPECT_EQ(ledger_.Report().limit_bytes, std::nullopt);
  EXPECT_THROW(ledger_.ClaimHalf(MemoryRole::kKv, 1, 1), Error);
  Ledger stated(machine_.Sources(400));
  EXPECT_EQ(stated.ClaimHalf(MemoryRole::kKv, 1, 1000).units, 200u);
}

TEST_F(Ledgers, SurviveCountsBeyond64Bits) {
  const uint64_t huge = uint64_t{1} << 62;
  std::vector<Lease> leases;
  for (int i = 0; i < 9; ++i) leases.push_back(ledger_.Claim(MemoryRole::kKv, huge, BeyondMemory::kAttribute));
  EXPECT_EQ(ledger_.Report().total().mapped, UINT64_MAX);
  ledger_.Validate();
}

TEST_F(Ledgers, ReportInOneLineByRole) {
  const Lease weights = ledger_.Claim(MemoryRole::kWeights, 2 << 10, BeyondMemory::kAttribute);
  EXPECT_EQ(ledger_.Report().Text(),
            "memory: 500 bytes of 1000 bytes, by the machine: weights 500 bytes and 1.5 KiB beyond the memory; the "
            "runtime's own working memory is not measured");
  EXPECT_THROW(ledger_.Claim(MemoryRole::kKv, 501, BeyondMemory::kRefuse), MemoryRefused);
  EXPECT_TRUE(Contains(ledger_.Report().Text(), "; refused claims: 1")) << ledger_.Report().Text();
  for (size_t role = 0; role < kMemoryRoles; ++role) {
    EXPECT_STRNE(MemoryRoleName(static_cast<MemoryRole>(role)), "");
  }
}

TEST(StatedMemoryLimits, AreBytesWithUnits) {
  EXPECT_EQ(StatedMemoryLimit(nullptr), std::nullopt);
  EXPECT_EQ(StatedMemoryLimit(""), std::nullopt);
  EXPECT_EQ(StatedMemoryLimit("4GiB"), uint64_t{4} << 30);
  for (const char* text : {"0", "lots", "4GB", "-1"}) {
    try {
      StatedMemoryLimit(text);
      FAIL() << text << " was accepted";
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), StatusCode::kInvalidArgument);
      EXPECT_EQ(error.field(), "OGA_MEMORY_LIMIT");
      EXPECT_TRUE(Contains(error.message(), text)) << error.message();
    }
  }
}

// Whoever comes second sees what the first has left, so no two get the same bytes.
TEST(LedgerRaces, SharesOfManyThreadsStayWithinTheLimit) {
  for (int round = 0; round < 50; ++round) {
    Machine machine;
    machine.host.available_bytes = 1 << 20;
    Ledger ledger(machine.Sources());
    std::vector<Ledger::Share> shares(4);
    std::vector<std::thread> threads;
    for (auto& share : shares) {
      threads.emplace_back([&ledger, &share] { share = ledger.ClaimHalf(MemoryRole::kKv, 1, 1 << 20); });
    }
    for (std::thread& thread : threads) thread.join();
    uint64_t sum = 0;
    for (const Ledger::Share& share : shares) sum += share.units;
    EXPECT_EQ(sum, (1u << 20) - (1u << 16)) << "a half, a quarter, an eighth and a sixteenth, in some order";
    ledger.Validate();
  }
}

TEST(LedgerRaces, ClaimsAndReturnsOfManyThreadsAddUp) {
  Machine machine;
  machine.host.available_bytes = 4000;
  Ledger ledger(machine.Sources(3000));
  Lease shared = ledger.Open(MemoryRole::kWorkspace, BeyondMemory::kAttribute);
  std::vector<std::thread> threads;
  for (uint64_t id = 1; id <= 4; ++id) {
    threads.emplace_back([&ledger, &shared, id] {
      for (int round = 0; round < 300; ++round) {
        try {
          Lease own = ledger.Claim(static_cast<MemoryRole>(id), 200 * id, BeyondMemory::kAttribute);
          own.Grow(100);
          shared.Grow(id);
          own.Settle();
          ledger.Validate();
          shared.Shrink(id);
        } catch (const MemoryRefused&) {
        }
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(shared.bytes(), 0u);
  EXPECT_EQ(ledger.Report().total().owned, 0u);
  EXPECT_EQ(ledger.Report().total().mapped, 0u);
  ledger.Validate();
}

class BrokenLedgers : public ::testing::Test {
 protected:
  Machine machine_;
  Ledger ledger_{machine_.Sources(5000)};
  Lease lease_ = ledger_.Claim(MemoryRole::kKv, 100, BeyondMemory::kAttribute);
};

TEST_F(BrokenLedgers, OwnMoreThanTheLimit) {
  LedgerAccess::Entry(ledger_, 0).owned_bytes = 1001;
  EXPECT_TRUE(Breaks(ledger_, "L1"));
}

TEST_F(BrokenLedgers, HoldMoreThanWasStated) {
  LedgerAccess::Entry(ledger_, 0).mapped_bytes = 4901;
  EXPECT_TRUE(Breaks(ledger_, "L2"));
}

TEST_F(BrokenLedgers, HoldMemoryWithoutALease) {
  LedgerAccess::Entry(ledger_, 0).in_use = false;
  EXPECT_TRUE(Breaks(ledger_, "L3"));
  LedgerAccess::Entry(ledger_, 0).in_use = true;
}

TEST_F(BrokenLedgers, OwnMoreThanTheirPages) {
  lease_.CountByPages(this, 100);
  ledger_.Validate();
  LedgerAccess::Entry(ledger_, 0).owned_bytes = 101;
  EXPECT_TRUE(Breaks(ledger_, "L4"));
}

// Its parent's may be locked for ever, and holds what a child does not have.
TEST(LedgerOfTheMachine, IsAnotherOneInAForkedChild) {
  const Lease held = Ledger::Cpu().Claim(MemoryRole::kOutput, 4096, BeyondMemory::kAttribute);
  const pid_t child = fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    const bool holds_nothing = Ledger::Cpu().Report().total().owned == 0;
    const Lease own = Ledger::Cpu().Claim(MemoryRole::kOutput, 1, BeyondMemory::kAttribute);
    _exit(holds_nothing && own.owned_bytes() == 1 ? 0 : 1);
  }
  int status = -1;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
  EXPECT_GE(Ledger::Cpu().Report().of(MemoryRole::kOutput).owned, 4096u);
}

}  // namespace
}  // namespace oga
