// Values as one number: of a number, and of words that are spread evenly over a tensor's storage.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>

#include "host/base/tensor_bytes.h"
#include "host/base/tensor_view.h"

namespace numsan {

constexpr uint64_t mixed(uint64_t hash, uint64_t word) noexcept {
    hash = (hash ^ word) * 0x9E3779B97F4A7C15u;
    return hash ^ hash >> 29;
}

/// The bits of a number among an op's arguments; 0: not known.
inline uint64_t value_of_number(const TensorView& number) noexcept {
    uint64_t word = 0;
    if (number.data != nullptr)
        std::memcpy(&word, number.data, static_cast<size_t>(std::min<int64_t>(8, element_bytes(number))));
    return word;
}

/// Of up to `most` words. False: the tensor has no memory of the host's.
inline bool sample_values(const TensorView& tensor, int64_t most, uint64_t& sample) noexcept {
    if (tensor.storage_data == nullptr || tensor.storage_bytes <= 0 || tensor.device != Device::Cpu) return false;
    const auto* bytes = static_cast<const char*>(tensor.storage_data);
    const int64_t words = tensor.storage_bytes / 8;
    uint64_t word = 0;
    sample = static_cast<uint64_t>(tensor.storage_bytes);
    if (words == 0) std::memcpy(&word, bytes, static_cast<size_t>(tensor.storage_bytes));
    sample = mixed(sample, word);
    const int64_t taken = std::min(words, most);
    for (int64_t i = 0; i < taken; ++i) {
        std::memcpy(&word, bytes + (i * words / taken) * 8, 8);
        sample = mixed(sample, word);
    }
    return true;
}

}  // namespace numsan
