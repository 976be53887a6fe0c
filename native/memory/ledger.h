// Who holds how much of a device's memory. What is taken for weights, keys and values, working memory and outputs is
// claimed here first, so that models and engines of one process share a device instead of each taking half of it.
//
// One per device: Cpu() for the machine's memory, the only one today, and others in tests. Any thread. Claims take a lock, and the first of a lease reads
// what the system leaves; giving back takes none. A step like the one before it claims nothing, so it meets no lock.
//
// Two axes. Owned bytes are the device's memory: given to one lease, never lent twice. Mapped bytes are attributed only:
// what a lease was promised beyond what there is, by a host that knows that it will not all be used.
//
// What is left is what the system says is available at this moment, less what was promised and is not there yet. Pages
// that have been written to are missing from what is available; those that have not been would be lent twice:
//   awaited    claimed, and neither mapped nor written yet: all of it is subtracted
//   in place   written, or about to be by whoever claimed it: nothing is subtracted
//   by pages   mapped, and written as it is used: what is not in memory yet is subtracted, as the kernel counts it
// So the limit follows other processes and a control group that changes, and untouched pages are safe from being lent.
//
//   L1  owned bytes never exceed the limit, which is what was owned and left when it was last read
//   L2  owned and mapped bytes never exceed OGA_MEMORY_LIMIT, when that is set
//   L3  an entry without a lease holds nothing
//   L4  a lease counted by pages owns no more than those pages
// A refused claim changes nothing but the count of refusals.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <mutex>
#include <optional>
#include <string>
#include <utility>

#include "base/error.h"
#include "memory/host_memory.h"

namespace oga {

enum class MemoryRole : uint8_t { kWeights, kKv, kFixedState, kWorkspace, kAdapter, kDraft, kOutput, kColdTier };
inline constexpr size_t kMemoryRoles = 8;
const char* MemoryRoleName(MemoryRole role);  // for people: "key-value cache"

// What becomes of a claim for more than the machine seems to leave. Above OGA_MEMORY_LIMIT every claim is refused.
enum class BeyondMemory {
  kRefuse,
  // Half of what is left is owned, as an engine that sizes itself would take; the rest is mapped.
  kAttribute,
};

// Error{kResourceExhausted} about what can be lowered.
class MemoryRefused : public Error {
 public:
  MemoryRefused(Field field, std::string message, uint64_t left_bytes)
      : Error(StatusCode::kResourceExhausted, std::move(field), std::move(message)), left_bytes_(left_bytes) {}
  uint64_t left_bytes() const noexcept { return left_bytes_; }

 private:
  uint64_t left_bytes_;
};

struct LedgerReport {
  struct Bytes {
    uint64_t owned = 0;
    uint64_t mapped = 0;
  };

  std::array<Bytes, kMemoryRoles> roles{};  // by MemoryRole
  std::optional<uint64_t> limit_bytes;      // of the owned; nothing when nobody tells it
  std::string bound;                        // what sets the limit
  uint64_t refusals = 0;

  const Bytes& of(MemoryRole role) const { return roles[static_cast<size_t>(role)]; }
  Bytes total() const;
  // One line. The runtime's own working memory is not measured, and the line says so.
  std::string Text() const;
};

class Lease;

// Where a ledger learns what there is; a test gives its own.
struct LedgerSources {
  std::optional<uint64_t> stated_limit_bytes;  // of OGA_MEMORY_LIMIT
  std::function<HostMemory()> read_host;       // throws Error when the system does not tell
  std::function<uint64_t(uintptr_t, uint64_t)> resident_bytes;
};

// What `text`, the value of OGA_MEMORY_LIMIT, bounds the ledger to; nothing when it is null or empty. Throws
// Error{kInvalidArgument} about OGA_MEMORY_LIMIT for what is not a positive number of bytes.
std::optional<uint64_t> StatedMemoryLimit(const char* text);

class Ledger {
 public:
  explicit Ledger(LedgerSources sources);
  Ledger(const Ledger&) = delete;
  Ledger& operator=(const Ledger&) = delete;

  // Of the machine's memory, bounded by OGA_MEMORY_LIMIT as it is at the first call; lives as long as the process, and
  // not in a child forked from it, whose own holds nothing.
  static Ledger& Cpu();

  // The ledger outlives its leases. Throws MemoryRefused.
  Lease Claim(MemoryRole role, uint64_t bytes, BeyondMemory beyond);

  // A lease of no bytes yet.
  Lease Open(MemoryRole role, BeyondMemory beyond);

  struct Share;
  // As many units as fit half of what is left, at most `most_units`, in one move: of two claims at once the second sees
  // what the first has left. No units when not one fits. Throws what reading the system's memory throws, unless
  // OGA_MEMORY_LIMIT bounds it.
  Share ClaimHalf(MemoryRole role, uint64_t unit_bytes, uint64_t most_units);

  LedgerReport Report() const;
  void Validate() const;

 private:
  friend class Lease;
  friend struct LedgerAccess;

  struct OfProcess;

  // Of one lease. Grows under the lock, shrinks and is released without.
  struct Entry {
    std::atomic<bool> in_use{false};
    std::atomic<uint64_t> owned_bytes{0};
    std::atomic<uint64_t> mapped_bytes{0};
    std::atomic<bool> in_place{false};
    std::atomic<uintptr_t> pages_begin{0};
    std::atomic<uint64_t> pages_bytes{0};  // 0: not counted by pages
    MemoryRole role{};                     // these two are written before the lease exists, and read under the lock
    BeyondMemory beyond{};
  };

  Entry& TakeEntry(MemoryRole role, BeyondMemory beyond);
  LedgerReport::Bytes Total() const;
  void ReadLimit();
  void TryReadLimit();
  uint64_t LeftOfMemory() const;
  uint64_t LeftOfStated() const;
  void Add(Entry& entry, uint64_t bytes);
  [[noreturn]] void Refuse(MemoryRole role, uint64_t bytes, uint64_t left_bytes, bool by_stated);
  LedgerReport ReportLocked() const;

  const LedgerSources sources_;
  mutable std::mutex mutex_;
  std::deque<Entry> entries_;            // on addresses that stay
  std::optional<uint64_t> limit_bytes_;  // of the owned, as last read; nothing: never read, or nobody tells it
  std::string bound_;
  uint64_t refusals_ = 0;
};

// Memory that is charged for as long as this lives. Bytes are claimed before they are allocated and given back after
// they are freed.
//
// Grow and Shrink may meet on several threads; everything else is its owner's. Giving back takes no lock and never fails.
class Lease {
 public:
  Lease() = default;  // of no ledger: grants everything and charges nothing
  Lease(Lease&& other) noexcept : ledger_(std::exchange(other.ledger_, nullptr)), entry_(other.entry_) {}
  Lease& operator=(Lease&& other) noexcept;
  ~Lease() { Release(); }

  MemoryRole role() const { return entry_->role; }  // of a ledger's only
  uint64_t owned_bytes() const noexcept { return ledger_ == nullptr ? 0 : entry_->owned_bytes.load(); }
  uint64_t bytes() const noexcept;  // owned and mapped

  // Claims more. Throws MemoryRefused; the lease then keeps what it had.
  void Grow(uint64_t bytes);
  // Gives back, of what is only mapped first; at most what is held.
  void Shrink(uint64_t bytes) noexcept;
  // Grows or shrinks to `bytes`; a lease of one thread only.
  void Resize(uint64_t bytes);
  void Release() noexcept;

  // What was awaited is in place now, and so is what will be claimed from now on.
  void Settle() noexcept;
  // The memory is mapped here now, and written as it is used.
  void CountByPages(const void* begin, uint64_t bytes) noexcept;

 private:
  friend class Ledger;
  Lease(Ledger* ledger, Ledger::Entry* entry) : ledger_(ledger), entry_(entry) {}

  Ledger* ledger_ = nullptr;
  Ledger::Entry* entry_ = nullptr;
};

struct Ledger::Share {
  Lease lease;
  uint64_t units = 0;
  uint64_t left_bytes = 0;  // before this was taken
  std::string bound;        // what sets that
};

}  // namespace oga
