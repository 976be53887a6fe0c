// Reservation: what a step has set aside in the cache. One is outstanding at a time; it rolls back unless it is committed.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>

#include "step/execution_batch.h"
#include "step/ids.h"

namespace oga {

class PagedCache;

enum class CommitStatus { kCommitted, kInconsistent };

class Reservation {
 public:
  explicit Reservation(PagedCache* cache) : cache_(cache) {}
  Reservation(Reservation&& other) noexcept : cache_(std::exchange(other.cache_, nullptr)) {}
  Reservation& operator=(Reservation&&) = delete;
  ~Reservation() { Rollback(); }

  // Blocks that must be copied before the step may write them.
  std::span<const BlockCopy> copies() const noexcept;

  // The widest table of the plan's rows, in blocks.
  uint32_t table_columns() const noexcept;

  // Writes the table of row `row` of the plan, reserved blocks included, and fills the rest with kUnmappedBlock.
  void FillTable(size_t row, std::span<BlockId> out) const noexcept;

  // Makes the blocks the requests' own. kInconsistent, with nothing changed, when anything moved since Reserve.
  CommitStatus Commit() noexcept;
  void Rollback() noexcept;

 private:
  PagedCache* cache_ = nullptr;
};

}  // namespace oga
