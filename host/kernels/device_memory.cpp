#include "host/kernels/device_memory.h"

#include <algorithm>
#include <iterator>

namespace numsan {

void DeviceMemory::allocated(uint64_t address, int64_t bytes, bool of_host) {
    if (bytes <= 0) return;
    // What it overlaps was freed without being seen.
    const uint64_t end = address + static_cast<uint64_t>(bytes);
    auto first = allocations_.lower_bound(address);
    if (first != allocations_.begin()) {
        const auto before = std::prev(first);
        if (before->first + static_cast<uint64_t>(before->second.bytes) > address) first = before;
    }
    allocations_.erase(first, allocations_.lower_bound(end));
    Allocation& made = allocations_[address];
    made.bytes = bytes;
    made.of_host = of_host;
}

void DeviceMemory::freed(uint64_t address) { allocations_.erase(address); }

void DeviceMemory::forget() { allocations_.clear(); }

const std::pair<const uint64_t, DeviceMemory::Allocation>* DeviceMemory::allocation_of(uint64_t address) const {
    const auto after = allocations_.upper_bound(address);
    if (after == allocations_.begin()) return nullptr;
    const auto& found = *std::prev(after);
    return address - found.first < static_cast<uint64_t>(found.second.bytes) ? &found : nullptr;
}

std::optional<DeviceMemory::Buffer> DeviceMemory::at(uint64_t address, DType dtype, uint64_t end) const {
    const auto* found = allocation_of(address);
    if (found == nullptr) return std::nullopt;
    const Allocation& allocation = found->second;
    const auto none = allocation.beginnings.end();
    const auto other = std::find_if(allocation.beginnings.upper_bound(address), none,
                                    [&](const auto& beginning) { return beginning.second.dtype != dtype; });
    const uint64_t last = other != none ? other->first : found->first + static_cast<uint64_t>(allocation.bytes);
    const auto bytes = static_cast<int64_t>(std::min(last, end) - address);
    return Buffer{address, std::min(bytes, kMostBytes), found->first, allocation.bytes, bytes > kMostBytes};
}

DeviceMemory::Beginning* DeviceMemory::beginning(uint64_t address) {
    const auto* found = allocation_of(address);
    if (found == nullptr) return nullptr;
    Allocation& allocation = allocations_.at(found->first);
    const auto known = allocation.beginnings.find(address);
    if (known != allocation.beginnings.end()) return &known->second;
    if (allocation.beginnings.size() >= kMostBuffers) return nullptr;
    return &allocation.beginnings[address];
}

void DeviceMemory::has_integers(uint64_t address) {
    if (Beginning* buffer = beginning(address)) *buffer = {};
}

void DeviceMemory::has_type(uint64_t address, DType dtype) {
    Beginning* buffer = beginning(address);
    if (buffer == nullptr || buffer->dtype == dtype) return;
    buffer->dtype = dtype;
    buffer->known_at = 0;
}

std::optional<uint64_t> DeviceMemory::beginning_of(uint64_t address) const {
    const auto* found = allocation_of(address);
    if (found == nullptr) return std::nullopt;
    const auto after = found->second.beginnings.upper_bound(address);
    return after != found->second.beginnings.begin() ? std::prev(after)->first : found->first;
}

std::optional<DType> DeviceMemory::type_at(uint64_t address) const {
    const auto* found = allocation_of(address);
    if (found == nullptr) return std::nullopt;
    const auto after = found->second.beginnings.upper_bound(address);
    return after != found->second.beginnings.begin() ? std::prev(after)->second.dtype : std::nullopt;
}

bool DeviceMemory::is_known(uint64_t address) const {
    const auto* found = allocation_of(address);
    if (found == nullptr) return false;
    const auto buffer = found->second.beginnings.find(address);
    return buffer != found->second.beginnings.end() && !found->second.of_host &&
           buffer->second.known_at > std::max(found->second.written_at, all_written_at_);
}

void DeviceMemory::known(uint64_t address) {
    if (Beginning* buffer = beginning(address)) buffer->known_at = ++clock_;
}

void DeviceMemory::written(uint64_t address) {
    const auto* found = allocation_of(address);
    if (found != nullptr) allocations_.at(found->first).written_at = ++clock_;
}

void DeviceMemory::goes_on(uint64_t address, uint64_t end) {
    const auto* found = allocation_of(end);
    if (found == nullptr || found != allocation_of(address)) return;
    if (found->second.beginnings.contains(end)) beginning(end)->known_at = 0;
}

}  // namespace numsan
