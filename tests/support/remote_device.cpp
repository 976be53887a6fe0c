#include "support/remote_device.h"

#include <sys/mman.h>

#include <cerrno>
#include <cstddef>
#include <cstring>
#include <map>
#include <mutex>
#include <new>
#include <vector>

namespace oga::testing {

RemoteFaults g_remote_faults;

namespace {

constexpr std::align_val_t kStagingAlignment{64};
constexpr int kSpoilt = 0xff;  // as a float no number, as an integer -1

bool Fails(std::atomic<int>& countdown) {
  int left = countdown;
  while (left > 0 && !countdown.compare_exchange_weak(left, left - 1)) continue;
  return left == 1;
}

void* Map(uint64_t bytes, int protection) {
  void* const mapping = mmap(nullptr, bytes, protection, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (mapping == MAP_FAILED) Throw(StatusCode::kResourceExhausted, std::string(std::strerror(errno)));
  return mapping;
}

// Which bytes are behind which addresses.
class AddressSpace {
 public:
  void Add(DeviceAddress address, uint64_t bytes, std::byte* memory) {
    const std::lock_guard lock(mutex_);
    ranges_[address] = {bytes, memory};
  }

  void Remove(DeviceAddress address) {
    const std::lock_guard lock(mutex_);
    ranges_.erase(address);
  }

  // Throws unless all of them are in one range.
  std::byte* Find(DeviceAddress address, uint64_t bytes) {
    const std::lock_guard lock(mutex_);
    auto range = ranges_.upper_bound(address);
    if (range != ranges_.begin()) {
      --range;
      const uint64_t offset = static_cast<uint64_t>(address) - static_cast<uint64_t>(range->first);
      if (offset <= range->second.bytes && bytes <= range->second.bytes - offset) return range->second.memory + offset;
    }
    Throw(StatusCode::kInternal, "the remote device has no ", bytes, " bytes at ", static_cast<uint64_t>(address));
  }

 private:
  struct Range {
    uint64_t bytes;
    std::byte* memory;
  };
  std::mutex mutex_;
  std::map<DeviceAddress, Range> ranges_;
};

class RemoteMemory final : public DeviceMemory {
 public:
  // `alias` and `memory` are mappings of `mapped_bytes` each; the address is within the first as the bytes are in the
  // second.
  RemoteMemory(std::shared_ptr<AddressSpace> space, void* alias, void* memory, uint64_t mapped_bytes, uint64_t offset,
               uint64_t bytes)
      : DeviceMemory(AddressOf(alias) + offset, bytes, nullptr),
        space_(std::move(space)),
        alias_(alias),
        memory_(memory),
        mapped_bytes_(mapped_bytes) {
    space_->Add(address(), bytes, static_cast<std::byte*>(memory) + offset);
  }

  ~RemoteMemory() override {
    space_->Remove(address());
    munmap(alias_, mapped_bytes_);
    munmap(memory_, mapped_bytes_);
  }

 private:
  const std::shared_ptr<AddressSpace> space_;
  void* const alias_;
  void* const memory_;
  const uint64_t mapped_bytes_;
};

class StagingMemory final : public DeviceMemory {
 public:
  explicit StagingMemory(uint64_t bytes) : StagingMemory(::operator new(bytes, kStagingAlignment), bytes) {}
  ~StagingMemory() override { ::operator delete(host(), kStagingAlignment); }

 private:
  StagingMemory(void* memory, uint64_t bytes) : DeviceMemory(AddressOf(memory), bytes, memory) {}
};

class RemoteStream final : public DeviceStream {
 public:
  explicit RemoteStream(std::shared_ptr<AddressSpace> space) : space_(std::move(space)) {}

  void CopyToDevice(DeviceAddress target, const void* source, uint64_t bytes) override {
    Queue(space_->Find(target, bytes), source, bytes);
  }
  void CopyToHost(void* target, DeviceAddress source, uint64_t bytes) override {
    std::memset(target, kSpoilt, bytes);
    Queue(target, space_->Find(source, bytes), bytes);
  }
  void CopyWithin(DeviceAddress target, DeviceAddress source, uint64_t bytes) override {
    Queue(space_->Find(target, bytes), space_->Find(source, bytes), bytes);
  }

  void Synchronize() override {
    const bool fails = Fails(g_remote_faults.synchronisation);
    const size_t count = fails ? copies_.size() / 2 : copies_.size();
    for (size_t i = 0; i < count; ++i) std::memcpy(copies_[i].target, copies_[i].source, copies_[i].bytes);
    copies_.clear();
    if (fails) Throw(g_remote_faults.code, "the remote device failed to copy");
  }

 private:
  struct Copy {
    void* target;
    const void* source;
    uint64_t bytes;
  };

  void Queue(void* target, const void* source, uint64_t bytes) { copies_.push_back({target, source, bytes}); }

  const std::shared_ptr<AddressSpace> space_;
  std::vector<Copy> copies_;
};

class RemoteDevice final : public Device {
 public:
  const std::string& name() const override { return name_; }
  RuntimeMemory runtime_memory() const override { return {.name = "Cpu", .id = 0, .arena = "cpu:0"}; }
  void* RuntimePointer(DeviceAddress address) const override { return space_->Find(address, 1); }

  std::unique_ptr<DeviceMemory> AllocateBuffer(uint64_t bytes) const override {
    auto memory = AllocatePool(bytes, 1);
    std::memset(RuntimePointer(memory->address()), kSpoilt, bytes);
    return memory;
  }

  std::unique_ptr<DeviceMemory> AllocatePool(uint64_t bytes, uint64_t alignment) const override {
    FailIfItIsTime();
    const uint64_t mapped_bytes = bytes + alignment;
    if (mapped_bytes < bytes) Throw(StatusCode::kResourceExhausted, "more bytes than there are addresses");
    void* const alias = Map(mapped_bytes, PROT_NONE);
    void* memory = nullptr;
    try {
      memory = Map(mapped_bytes, PROT_READ | PROT_WRITE);
    } catch (...) {
      munmap(alias, mapped_bytes);
      throw;
    }
    const uint64_t offset = (alignment - reinterpret_cast<uintptr_t>(alias) % alignment) % alignment;
    return std::make_unique<RemoteMemory>(space_, alias, memory, mapped_bytes, offset, bytes);
  }

  std::unique_ptr<DeviceMemory> AllocateStaging(uint64_t bytes) const override {
    FailIfItIsTime();
    auto memory = std::make_unique<StagingMemory>(bytes);
    std::memset(memory->host(), kSpoilt, bytes);
    return memory;
  }

  std::unique_ptr<DeviceStream> CreateStream() const override { return std::make_unique<RemoteStream>(space_); }

 private:
  static void FailIfItIsTime() {
    if (Fails(g_remote_faults.allocation))
      Throw(StatusCode::kResourceExhausted, "the remote device has no memory left");
  }

  const std::string name_ = "REMOTE";
  const std::shared_ptr<AddressSpace> space_ = std::make_shared<AddressSpace>();
};

}  // namespace

std::shared_ptr<const Device> MakeRemoteDevice() { return std::make_shared<const RemoteDevice>(); }

}  // namespace oga::testing
