// A launch on the device and its twin: the same table through the same kernel source, built for the host.
#pragma once

#include <string>
#include <vector>

#include "tests/cuda/compare.h"
#include "tests/cuda/patterns.h"
#include "tests/gpu/probe/table.h"

namespace numsan::gpu::probe {

/// One tensor in both memories.
struct Paired {
    TensorView on_host;
    const void* on_device;
    TensorView device_view() const {
        TensorView view = on_host;
        view.data = view.storage = view.storage_data = on_device;
        view.storage_bytes = 1;
        return view;
    }
};

/// Memory on the host, and the same bytes on the device.
struct Copied {
    Lanes& lanes;
    Buffer buffer;
    Copied(Lanes& l, DType dtype, CUstream stream) : lanes(l), buffer(size_t(l.count()) * info(dtype).lane_bytes) {
        buffer.put(lanes.data(), buffer.bytes(), stream);
        check("cuStreamSynchronize", gpu().stream_synchronize(stream));
    }
    Paired paired(const Shaped& shaped) const {
        const auto offset = static_cast<const unsigned char*>(shaped.view.data) - lanes.data();
        return {shaped.view, buffer.data(static_cast<size_t>(offset))};
    }
};

enum class GateState : uint8_t { None, Closed, Open };

using Operands = std::vector<std::vector<Paired>>;  ///< of each output; empty: none at all

struct TwinOptions {
    bool exact = false;  ///< kExact: each output is told, bad or not
    bool oracle = true;  ///< compared with the Thrust reference as well
    Size size = Size::Fitting;
    Look look = Look::AsNeeded;
    GateState gate = GateState::None;
    bool shared = false;  ///< all outputs have the operands of the first, one copy of each
    int replays = 0;      ///< of a captured graph; 0: launched without one
};

/// Launches `tensors`, kBatchOutputs at most, and waits. Empty when results and hits have the twin's bytes, and the
/// oracle's values. Of more operands than a look has room for, kLookedInputs are reported: which ones is open, and each
/// of them has the oracle's values. `reported`: gets the number of operands that the device has reported.
std::string compare_with_twin(Subject& subject, CUstream stream, const std::vector<Paired>& tensors,
                              const TwinOptions& options = {}, const Operands& operands = {},
                              size_t* reported = nullptr);

}  // namespace numsan::gpu::probe
