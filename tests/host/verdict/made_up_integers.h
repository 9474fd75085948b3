// Made-up integer tensors, beside those of made_up.h.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <type_traits>
#include <vector>

#include "tests/host/verdict/made_up.h"

namespace numsan {

template <class T>
class MadeUpIntegers {
  public:
    std::vector<T> values;

    MadeUpIntegers(std::initializer_list<T> v) : values(v), size_(static_cast<int64_t>(v.size())) {}
    MadeUpIntegers(const MadeUpIntegers&) = delete;
    MadeUpIntegers& operator=(const MadeUpIntegers&) = delete;

    TensorView view(uint32_t flags = kReturned) const {
        TensorView made{};
        made.data = made.storage_data = values.data();
        made.storage = made.impl = this;
        made.storage_bytes = size_ * static_cast<int64_t>(sizeof(T));
        made.numel = size_;
        made.sizes = &size_;
        made.strides = &kStride;
        made.ndim = 1;
        made.dtype = DType::Float32;
        made.device = Device::Cpu;
        made.flags = flags;
        made.integer = std::is_same_v<T, uint8_t>   ? IntegerType::UInt8
                       : std::is_same_v<T, int8_t>  ? IntegerType::Int8
                       : std::is_same_v<T, int16_t> ? IntegerType::Int16
                       : std::is_same_v<T, int32_t> ? IntegerType::Int32
                                                    : IntegerType::Int64;
        return made;
    }

  private:
    static constexpr int64_t kStride = 1;
    int64_t size_;
};

}  // namespace numsan
