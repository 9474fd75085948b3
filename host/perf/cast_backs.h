// Casts to a wider type whose results are cast back as they are.
#pragma once

#include <cstddef>
#include <cstdint>

#include "host/base/adapter_abi.h"
#include "host/base/ids.h"
#include "host/ops/op_traits.h"
#include "host/perf/storage_slots.h"
#include "host/track/lineage.h"

namespace numsan {

/// Of one thread. Constant memory.
class CastBacks {
  public:
    /// An op that took `ns`, before the lineage knows of it. What it and the cast that it takes back took; 0: it takes
    /// none back.
    int64_t taken_back(const OpEvent& event, int64_t ns, const Lineage& lineage) noexcept {
        if (!is_cast(event)) return 0;
        const TensorView& from = event.inputs[0];
        const Wide& wide = wide_[from.storage];
        if (wide.storage != from.storage || wide.numel != from.numel || wide.narrow != event.outputs[0].dtype ||
            wide.written == OpSeq::None || wide.written != lineage.written_at(from.storage))
            return 0;
        return ns + wide.ns;
    }

    /// The same op, once the lineage knows of it.
    void remember(const OpEvent& event, int64_t ns, const Lineage& lineage) noexcept {
        if (!is_cast(event)) return;
        const TensorView& to = event.outputs[0];
        const DTypeInfo& was = info(event.inputs[0].dtype);
        if (was.lane_bytes >= info(to.dtype).lane_bytes) return;  // the way back would not give the same values
        wide_[to.storage] = {to.storage, lineage.written_at(to.storage), to.numel, ns, event.inputs[0].dtype};
    }

  private:
    struct Wide {
        const void* storage = nullptr;
        OpSeq written = OpSeq::None;
        int64_t numel = 0;
        int64_t ns = 0;
        DType narrow = DType::Float32;
    };

    static bool is_cast(const OpEvent& event) noexcept {
        return event.input_count == 1 && event.output_count == 1 && (event.inputs[0].flags & kScannable) != 0 &&
               (event.outputs[0].flags & (kScannable | kWritten)) == kScannable &&
               event.inputs[0].dtype != event.outputs[0].dtype && event.inputs[0].numel == event.outputs[0].numel &&
               traits_of(event).form == Form::Cast;
    }

    StorageSlots<Wide, 64> wide_;
};

}  // namespace numsan
