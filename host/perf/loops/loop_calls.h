// What the rounds of a loop are compared by: calls of ops, their operands and the slices that they write.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "host/base/adapter_abi.h"
#include "host/base/ids.h"
#include "host/track/lineage.h"

namespace numsan {

struct LoopOperand {
    const void* storage = nullptr;
    const void* memory = nullptr;  ///< where the storage lies
    const char* data = nullptr;
    uint64_t sizes = 0;
    int64_t written = -1;                   ///< number of the op that wrote the storage before
    bool is_read = true;                    ///< not overwritten
    int32_t input = 0;                      ///< which argument of the call
    uint64_t values = 0;                    ///< in a sample, where such were expected; 0: not known
    std::array<std::ptrdiff_t, 2> apart{};  ///< ways from the round before; nested loops have two
    const char* ahead = nullptr;            ///< where the next round's is expected
    uint64_t values_ahead = 0;
};

/// A slice that a call wrote.
struct LoopSlice {
    const void* storage = nullptr;
    const char* data = nullptr;
    uint64_t sizes = 0;
    std::ptrdiff_t apart = 0;   ///< from the round before; 0: not always the same
    std::ptrdiff_t extent = 0;  ///< bytes from its first element to its last one's end
    std::ptrdiff_t stride = 0;  ///< the smallest, in bytes
};

struct LoopCall {
    static constexpr size_t kOperands = 4;

    const OpInfo* op = nullptr;
    uint64_t shape = 0;  ///< of sizes and numbers
    int64_t seq = 0;
    bool adds_up = false;  ///< it may add to what it has made a round before
    bool is_sum = false;   ///< it did
    size_t operand_count = 0;
    std::array<LoopOperand, kOperands> operands{};
    std::array<const void*, kOperands> memory{};  ///< of what it made
    LoopSlice slice{};
};

/// Fills in `call`, of an op before the lineage knows of it; false: it may be no part of a loop that one op for each of
/// its calls could replace.
bool loop_call(const OpEvent& event, OpSeq seq, const Lineage& lineage, LoopCall& call) noexcept;

/// A tensor that is not all of its storage.
bool is_slice(const TensorView& tensor) noexcept;
uint64_t sizes_of(const TensorView& tensor) noexcept;
/// Of up to 64 elements of a tensor like this one, from `data` on; 0: it does not lie in the storage.
uint64_t values_at(const TensorView& tensor, const char* data) noexcept;
/// The op writes all of the operand and reads nothing of it.
bool overwrites(const OpEvent& event, const TensorView& operand) noexcept;
/// The op writes what begins where the operand does; written_by() asks for anywhere in its storage.
bool writes_to(const OpEvent& event, const TensorView& operand) noexcept;

}  // namespace numsan
