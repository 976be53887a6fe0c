#include "memory/ledger.h"

#include <algorithm>
#include <cstdlib>
#include <memory>
#include <utility>

#include "base/byte_text.h"
#include "base/check.h"
#include "base/platform_memory.h"
#include "base/platform_process.h"

namespace oga {

namespace {

constexpr const char* kLimitVariable = "OGA_MEMORY_LIMIT";
// What an engine that sizes itself leaves: the other half is for the runtime's activations, for the next engine, for
// other processes and for an error in the estimate.
constexpr uint64_t kShare = 2;

// What a host reads about a role when there is no memory for it.
struct RoleText {
  const char* name;
  const char* field;   // what can be lowered
  const char* advice;  // how
};

const RoleText& TextOf(MemoryRole role) {
  static constexpr RoleText kTexts[kMemoryRoles] = {
      {"weights", kLimitVariable, "load a smaller model, or one of fewer bits"},
      {"key-value cache", "engine.dynamic_batching.num_blocks", "set engine.dynamic_batching.num_blocks lower"},
      {"fixed state", "engine.dynamic_batching.max_resident_requests",
       "set engine.dynamic_batching.max_resident_requests lower"},
      {"workspace", "engine.dynamic_batching.max_scheduled_tokens",
       "set engine.dynamic_batching.max_scheduled_tokens lower"},
      {"adapters", kLimitVariable, "load fewer adapters"},
      {"drafts", kLimitVariable, "draft with a smaller model, or without one"},
      {"outputs", "engine.dynamic_batching.max_scheduled_tokens",
       "set engine.dynamic_batching.max_scheduled_tokens lower"},
      {"cold tier", kLimitVariable, "keep fewer idle requests"},
  };
  return kTexts[static_cast<size_t>(role)];
}

uint64_t Less(uint64_t bytes, uint64_t taken) { return bytes > taken ? bytes - taken : 0; }

// Address spaces are never this large, but a config may ask for one.
uint64_t SaturatingSum(uint64_t a, uint64_t b) { return a > UINT64_MAX - b ? UINT64_MAX : a + b; }

// Takes up to `wanted` out of `bytes`; returns how much that was.
uint64_t TakeUpTo(std::atomic<uint64_t>& bytes, uint64_t wanted) noexcept {
  uint64_t held = bytes.load();
  while (!bytes.compare_exchange_weak(held, held - std::min(held, wanted))) {
  }
  return std::min(held, wanted);
}

// "weights 540.0 MiB, key-value cache 1.2 GiB": what is held, by role.
std::string HeldText(const LedgerReport& report) {
  std::string text;
  for (size_t i = 0; i < kMemoryRoles; ++i) {
    const LedgerReport::Bytes& bytes = report.roles[i];
    if (bytes.owned == 0 && bytes.mapped == 0) continue;
    const auto role = static_cast<MemoryRole>(i);
    text += Message(text.empty() ? "" : ", ", MemoryRoleName(role), " ", BytesText(bytes.owned));
    if (bytes.mapped != 0) text += Message(" and ", BytesText(bytes.mapped), " beyond the memory");
  }
  return text.empty() ? "nothing" : text;
}

}  // namespace

const char* MemoryRoleName(MemoryRole role) { return TextOf(role).name; }

std::optional<uint64_t> StatedMemoryLimit(const char* text) {
  if (text == nullptr || *text == '\0') return std::nullopt;
  const auto bytes = ParseBytes(text);
  if (bytes && *bytes > 0) return bytes;
  Throw(StatusCode::kInvalidArgument, Field{kLimitVariable}, kLimitVariable, " is '", text,
        "'; it must be a whole number of bytes above 0, or of K, M, G or T (KiB, MiB, GiB or TiB), such as 4GiB");
}

LedgerReport::Bytes LedgerReport::total() const {
  Bytes total;
  for (const Bytes& bytes : roles) {
    total.owned = SaturatingSum(total.owned, bytes.owned);
    total.mapped = SaturatingSum(total.mapped, bytes.mapped);
  }
  return total;
}

std::string LedgerReport::Text() const {
  const std::string limit = limit_bytes ? Message(" of ", BytesText(*limit_bytes), ", by ", bound) : "";
  const std::string refused = refusals == 0 ? "" : Message("; refused claims: ", refusals);
  return Message("memory: ", BytesText(total().owned), limit, ": ", HeldText(*this), refused,
                 "; the runtime's own working memory is not measured");
}

Ledger::Ledger(LedgerSources sources) : sources_(std::move(sources)) {}

// Never destroyed: leases of objects that the host leaks may be given back while the process exits. A forked child has
// one of its own, since a thread that it lacks may hold the lock of its parent's for ever.
struct Ledger::OfProcess {
  const platform::ProcessId process = platform::CurrentProcess();
  Ledger ledger{
      {StatedMemoryLimit(std::getenv(kLimitVariable)), [] { return ReadHostMemory(); }, platform::ResidentBytes}};
};

Ledger& Ledger::Cpu() {
  static constinit std::atomic<OfProcess*> current{nullptr};
  OfProcess* found = current;
  while (found == nullptr || found->process != platform::CurrentProcess()) {
    auto made = std::make_unique<OfProcess>();
    if (current.compare_exchange_strong(found, made.get())) return made.release()->ledger;
  }
  return found->ledger;
}

Ledger::Entry& Ledger::TakeEntry(MemoryRole role, BeyondMemory beyond) {
  auto free = std::find_if(entries_.begin(), entries_.end(), [](const Entry& entry) { return !entry.in_use.load(); });
  Entry& entry = free != entries_.end() ? *free : entries_.emplace_back();
  entry.role = role;
  entry.beyond = beyond;
  entry.in_use = true;
  return entry;
}

LedgerReport::Bytes Ledger::Total() const { return ReportLocked().total(); }

// A lease that gives back meanwhile makes the limit too low by as much, which the next reading mends.
void Ledger::ReadLimit() {
  const HostMemory host = sources_.read_host();
  uint64_t awaited = 0;
  uint64_t untouched = 0;
  for (const Entry& entry : entries_) {
    const uint64_t owned = entry.owned_bytes;
    const uint64_t pages_bytes = entry.pages_bytes;
    if (pages_bytes != 0) {
      untouched += Less(owned, sources_.resident_bytes(entry.pages_begin, pages_bytes));
    } else if (!entry.in_place) {
      awaited += owned;
    }
  }
  const auto left = [](uint64_t bytes, uint64_t taken) {
    return bytes == HostMemory::kUnbounded ? bytes : Less(bytes, taken);
  };
  const uint64_t by_memory = left(host.available_bytes, awaited + untouched);
  const uint64_t by_addresses = left(host.addresses_bytes, awaited);
  bound_ = by_addresses < by_memory ? kAddressSpaceBound : host.bound;
  limit_bytes_ = SaturatingSum(Total().owned, std::min(by_memory, by_addresses));
}

// What the system does not tell cannot bound what is asked for in bytes; what it told last still does.
void Ledger::TryReadLimit() {
  try {
    ReadLimit();
  } catch (const Error& error) {
    if (error.code() != StatusCode::kIoError) throw;
  }
}

uint64_t Ledger::LeftOfMemory() const { return limit_bytes_ ? Less(*limit_bytes_, Total().owned) : UINT64_MAX; }

uint64_t Ledger::LeftOfStated() const {
  if (!sources_.stated_limit_bytes) return UINT64_MAX;
  const LedgerReport::Bytes total = Total();
  return Less(*sources_.stated_limit_bytes, SaturatingSum(total.owned, total.mapped));
}

// By the limit as it was last read: Claim and Grow read it anew where that matters.
void Ledger::Add(Entry& entry, uint64_t bytes) {
  const uint64_t stated = LeftOfStated();
  if (bytes > stated) Refuse(entry.role, bytes, stated, true);
  const uint64_t left = LeftOfMemory();
  if (bytes > left && entry.beyond == BeyondMemory::kRefuse) Refuse(entry.role, bytes, left, false);
  const uint64_t owned = bytes <= left ? bytes : left / kShare;
  entry.owned_bytes += owned;
  entry.mapped_bytes += bytes - owned;
}

void Ledger::Refuse(MemoryRole role, uint64_t bytes, uint64_t left_bytes, bool by_stated) {
  ++refusals_;
  const RoleText& text = TextOf(role);
  const std::string limit =
      by_stated ? Message(kLimitVariable, ", ", BytesText(*sources_.stated_limit_bytes), ",") : bound_;
  throw MemoryRefused(
      Field{text.field},
      Message("there is no memory for the ", text.name, ": ", BytesText(bytes), " are wanted, and ", limit, " leaves ",
              BytesText(left_bytes), "; taken are: ", HeldText(ReportLocked()), "; ", text.advice, ", ",
              by_stated ? "raise OGA_MEMORY_LIMIT" : "free memory or raise that limit",
              ", or destroy an engine or a model that is not needed"),
      left_bytes);
}

Lease Ledger::Claim(MemoryRole role, uint64_t bytes, BeyondMemory beyond) {
  const std::lock_guard lock(mutex_);
  TryReadLimit();
  Lease lease(this, &TakeEntry(role, beyond));
  Add(*lease.entry_, bytes);
  return lease;
}

Lease Ledger::Open(MemoryRole role, BeyondMemory beyond) {
  const std::lock_guard lock(mutex_);
  return Lease(this, &TakeEntry(role, beyond));
}

Ledger::Share Ledger::ClaimHalf(MemoryRole role, uint64_t unit_bytes, uint64_t most_units) {
  const std::lock_guard lock(mutex_);
  sources_.stated_limit_bytes ? TryReadLimit() : ReadLimit();
  const uint64_t memory = LeftOfMemory();
  const uint64_t stated = LeftOfStated();
  Share share;
  share.left_bytes = std::min(memory, stated);
  share.bound = stated <= memory ? kLimitVariable : bound_;
  share.units = unit_bytes == 0 ? most_units : std::min(most_units, share.left_bytes / kShare / unit_bytes);
  if (share.units == 0) {
    ++refusals_;
    return share;
  }
  share.lease = Lease(this, &TakeEntry(role, BeyondMemory::kRefuse));
  share.lease.entry_->owned_bytes = share.units * unit_bytes;
  return share;
}

LedgerReport Ledger::Report() const {
  const std::lock_guard lock(mutex_);
  return ReportLocked();
}

LedgerReport Ledger::ReportLocked() const {
  LedgerReport report;
  for (const Entry& entry : entries_) {
    LedgerReport::Bytes& bytes = report.roles[static_cast<size_t>(entry.role)];
    bytes.owned = SaturatingSum(bytes.owned, entry.owned_bytes);
    bytes.mapped = SaturatingSum(bytes.mapped, entry.mapped_bytes);
  }
  report.refusals = refusals_;
  report.limit_bytes = limit_bytes_;
  report.bound = bound_;
  if (sources_.stated_limit_bytes && *sources_.stated_limit_bytes <= limit_bytes_.value_or(UINT64_MAX)) {
    report.limit_bytes = sources_.stated_limit_bytes;
    report.bound = kLimitVariable;
  }
  return report;
}

void Ledger::Validate() const {
  const std::lock_guard lock(mutex_);
  const LedgerReport::Bytes total = Total();
  CheckInvariant(!limit_bytes_ || total.owned <= *limit_bytes_, "L1", "more is owned than the limit");
  CheckInvariant(
      !sources_.stated_limit_bytes || SaturatingSum(total.owned, total.mapped) <= *sources_.stated_limit_bytes, "L2",
      "more is held than OGA_MEMORY_LIMIT");
  for (const Entry& entry : entries_) {
    const bool in_use = entry.in_use;  // read first: a lease that ends meanwhile gives back before it is gone
    const bool holds = entry.owned_bytes != 0 || entry.mapped_bytes != 0;
    CheckInvariant(in_use || !holds, "L3", "an entry without a lease holds memory");
    const uint64_t pages_bytes = entry.pages_bytes;
    CheckInvariant(pages_bytes == 0 || entry.owned_bytes <= pages_bytes, "L4", "a lease owns more than its pages");
  }
}

Lease& Lease::operator=(Lease&& other) noexcept {
  if (this == &other) return *this;
  Release();
  ledger_ = std::exchange(other.ledger_, nullptr);
  entry_ = other.entry_;
  return *this;
}

uint64_t Lease::bytes() const noexcept {
  return ledger_ == nullptr ? 0 : SaturatingSum(entry_->owned_bytes, entry_->mapped_bytes);
}

void Lease::Grow(uint64_t bytes) {
  if (ledger_ == nullptr || bytes == 0) return;
  const std::lock_guard lock(ledger_->mutex_);
  if (!ledger_->limit_bytes_ || bytes > ledger_->LeftOfMemory()) ledger_->TryReadLimit();
  ledger_->Add(*entry_, bytes);
}

void Lease::Shrink(uint64_t bytes) noexcept {
  if (ledger_ == nullptr) return;
  bytes -= TakeUpTo(entry_->mapped_bytes, bytes);
  TakeUpTo(entry_->owned_bytes, bytes);
}

void Lease::Resize(uint64_t bytes) {
  const uint64_t held = this->bytes();
  if (bytes > held) Grow(bytes - held);
  if (bytes < held) Shrink(held - bytes);
}

void Lease::Release() noexcept {
  if (ledger_ == nullptr) return;
  entry_->owned_bytes = 0;
  entry_->mapped_bytes = 0;
  entry_->pages_bytes = 0;
  entry_->in_place = false;
  entry_->in_use = false;  // last: from here on the entry is another lease's
  ledger_ = nullptr;
}

void Lease::Settle() noexcept {
  if (ledger_ != nullptr) entry_->in_place = true;
}

void Lease::CountByPages(const void* begin, uint64_t bytes) noexcept {
  if (ledger_ == nullptr) return;
  entry_->pages_begin = reinterpret_cast<uintptr_t>(begin);
  entry_->pages_bytes = bytes;
}

}  // namespace oga
