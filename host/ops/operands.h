// What an op does with the memory of its operands.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <vector>

#include "host/base/adapter_abi.h"
#include "host/base/tensor_bytes.h"
#include "host/base/tensor_view.h"

namespace numsan {

inline bool scannable(const TensorView& t) { return (t.flags & kScannable) != 0; }
inline bool covers_storage(const TensorView& t) { return bytes_of(t) >= t.storage_bytes; }

/// All that the op hands out is in memory of its operands, and was not written.
bool only_views(const OpEvent& event) noexcept;
/// The op makes views or new memory: it computes nothing. Those of which the schema says so are not shown at all.
bool computes_nothing(const OpEvent& event) noexcept;

/// True when the op overwrote this operand: its old values are gone.
bool written_by(const OpEvent& event, const TensorView& input);

/// The same, asked for all operands of an op, which may be over lists of thousands. The event outlives it. Throws
/// std::bad_alloc where there are many outputs.
class WrittenOperands {
  public:
    explicit WrittenOperands(const OpEvent& event);
    bool contain(const TensorView& input) const;

  private:
    size_t place_of(const void* storage) const;

    const OpEvent& event_;
    std::vector<const void*> written_;  ///< storages, by place_of(); empty: the outputs are few
};

/// The op that makes the gradient backward() starts with, from the value it starts from. Other calls look the same.
inline bool is_root(const OpEvent& event) {
    return event.input_count == 1 && std::strcmp(event.op->name, "aten::ones_like") == 0;
}

/// Whether a collective sends this operand to other ranks. One with operands of two kinds fills the first, whatever was
/// in it, and sends the others; one that works in place sends what it fills, unless it only receives, or may do so.
bool sends(const OpEvent& event, const TensorView& input);

/// True for set_: the tensor takes over a storage that others filled, a file or another process.
bool adopts_storage(const OpEvent& event);

}  // namespace numsan
