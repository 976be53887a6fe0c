// Where the tensors of a model live: memory, and streams that copy to it, from it and within it.
//
// One implementation per kind of device, private to its folder; devices.h finds one by name. A Device is immutable and
// used from any thread. It outlives its memory and its streams, each of which has one owner and one thread at a time.
//   D1  A DeviceAddress is not a pointer: only the device reads and writes there. Where the host may, it does so through
//       DeviceMemory::host().
//   D2  The copies of a stream happen in the order of the calls, all of them by the time Synchronize returns. Until then
//       both ends stay allocated, what is read stays as it is, and what is written holds nothing of use.
//   D3  When Synchronize returns or throws, no copy of its stream is pending.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

namespace oga {

// A place in a device's memory.
enum class DeviceAddress : uintptr_t {};

constexpr DeviceAddress operator+(DeviceAddress address, uint64_t bytes) {
  return static_cast<DeviceAddress>(static_cast<uintptr_t>(address) + bytes);
}

// The place behind a pointer, on a device that computes in host memory.
inline DeviceAddress AddressOf(const void* pointer) {
  return static_cast<DeviceAddress>(reinterpret_cast<uintptr_t>(pointer));
}

// A range of memory, given back by the destructor.
class DeviceMemory {
 public:
  virtual ~DeviceMemory() = default;

  DeviceMemory(const DeviceMemory&) = delete;
  DeviceMemory& operator=(const DeviceMemory&) = delete;

  DeviceAddress address() const { return address_; }
  uint64_t bytes() const { return bytes_; }

  // The same memory for the host; null where the host cannot reach it.
  void* host() const { return host_; }

 protected:
  DeviceMemory(DeviceAddress address, uint64_t bytes, void* host) : address_(address), bytes_(bytes), host_(host) {}

 private:
  const DeviceAddress address_;
  const uint64_t bytes_;
  void* const host_;
};

// Copies, in order. Each call may throw what Synchronize throws: Error{kResourceExhausted} when memory ran out, which a
// later attempt may survive, and any other Error when the device failed.
class DeviceStream {
 public:
  virtual ~DeviceStream() = default;

  virtual void CopyToDevice(DeviceAddress target, const void* source, uint64_t bytes) = 0;
  virtual void CopyToHost(void* target, DeviceAddress source, uint64_t bytes) = 0;
  virtual void CopyWithin(DeviceAddress target, DeviceAddress source, uint64_t bytes) = 0;  // ranges apart

  // Waits for the copies so far, and reports what became of them.
  virtual void Synchronize() = 0;
};

// What the runtime calls the memory of a device. Plain values, since the runtime stands above this folder.
struct RuntimeMemory {
  const char* name = "";   // as its memory info takes it: "Cpu"
  int id = 0;              // which of several
  const char* arena = "";  // as its run options name the arena to shrink: "cpu:0"
};

class Device {
 public:
  virtual ~Device() = default;

  virtual const std::string& name() const = 0;  // for people: "CPU"
  virtual RuntimeMemory runtime_memory() const = 0;

  // What the runtime takes for `address` when it is given a tensor there.
  virtual void* RuntimePointer(DeviceAddress address) const = 0;

  // All three throw std::bad_alloc or Error{kResourceExhausted} when there is no such memory; `bytes` is not 0.

  // For a tensor of a step. Aligned for any kernel; its contents are undefined.
  virtual std::unique_ptr<DeviceMemory> AllocateBuffer(uint64_t bytes) const = 0;

  // For many tensors that stay. Starts on `alignment`, the size of a small page or of a huge one, which it is then best
  // made of. Reads as zeros until it is written, and where the system can do that, costs memory only as far as that.
  virtual std::unique_ptr<DeviceMemory> AllocatePool(uint64_t bytes, uint64_t alignment) const = 0;

  // For the host's end of copies: host() is never null.
  virtual std::unique_ptr<DeviceMemory> AllocateStaging(uint64_t bytes) const = 0;

  virtual std::unique_ptr<DeviceStream> CreateStream() const = 0;
};

}  // namespace oga
