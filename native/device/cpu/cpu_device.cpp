#include "device/cpu/cpu_device.h"

#include <cstring>
#include <new>
#include <string>
#include <utility>

#include "base/error.h"
#include "base/platform_file.h"
#include "base/platform_memory.h"

namespace oga {

namespace {

constexpr std::align_val_t kBufferAlignment{64};

class HeapMemory final : public DeviceMemory {
 public:
  explicit HeapMemory(uint64_t bytes) : HeapMemory(::operator new(bytes, kBufferAlignment), bytes) {}
  ~HeapMemory() override { ::operator delete(host(), kBufferAlignment); }

 private:
  HeapMemory(void* memory, uint64_t bytes) : DeviceMemory(AddressOf(memory), bytes, memory) {}
};

class PagedMemory final : public DeviceMemory {
 public:
  PagedMemory(platform::Pages pages, uint64_t bytes)
      : DeviceMemory(AddressOf(pages.data()), bytes, pages.data()), pages_(std::move(pages)) {}

 private:
  const platform::Pages pages_;
};

class CpuStream final : public DeviceStream {
 public:
  void CopyToDevice(DeviceAddress target, const void* source, uint64_t bytes) override {
    std::memcpy(Pointer(target), source, bytes);
  }
  void CopyToHost(void* target, DeviceAddress source, uint64_t bytes) override {
    std::memcpy(target, Pointer(source), bytes);
  }
  void CopyWithin(DeviceAddress target, DeviceAddress source, uint64_t bytes) override {
    std::memcpy(Pointer(target), Pointer(source), bytes);
  }
  void Synchronize() override {}

 private:
  static void* Pointer(DeviceAddress address) { return reinterpret_cast<void*>(address); }
};

class CpuDevice final : public Device {
 public:
  const std::string& name() const override { return name_; }
  RuntimeMemory runtime_memory() const override { return {.name = "Cpu", .id = 0, .arena = "cpu:0"}; }
  void* RuntimePointer(DeviceAddress address) const override { return reinterpret_cast<void*>(address); }

  std::unique_ptr<DeviceMemory> AllocateBuffer(uint64_t bytes) const override {
    return std::make_unique<HeapMemory>(bytes);
  }
  std::unique_ptr<DeviceMemory> AllocatePool(uint64_t bytes, uint64_t alignment) const override;
  std::unique_ptr<DeviceMemory> AllocateStaging(uint64_t bytes) const override {
    return std::make_unique<HeapMemory>(bytes);
  }
  std::unique_ptr<DeviceStream> CreateStream() const override { return std::make_unique<CpuStream>(); }

 private:
  const std::string name_ = "CPU";
};

// Attention reads whole blocks at random: with small pages most of them would miss the address cache.
std::unique_ptr<DeviceMemory> CpuDevice::AllocatePool(uint64_t bytes, uint64_t alignment) const {
  const bool huge = alignment >= platform::kHugePageBytes;
  platform::Pages pages(bytes, huge ? platform::PageSize::kHuge : platform::PageSize::kSmall);
  if (!pages) Throw(StatusCode::kResourceExhausted, platform::SystemReason(pages.error()));
  return std::make_unique<PagedMemory>(std::move(pages), bytes);
}

}  // namespace

std::shared_ptr<const Device> MakeCpuDevice() { return std::make_shared<const CpuDevice>(); }

}  // namespace oga
