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

struct TwinOptions {
    bool exact = false;  ///< kExact: each output is told, bad or not
    bool oracle = true;  ///< compared with the Thrust reference as well
    Size size = Size::Fitting;
};

/// Launches `tensors`, kBatchOutputs at most, and waits. Empty when results and hits have the twin's bytes, and the
/// oracle's values.
std::string compare_with_twin(Subject& subject, CUstream stream, const std::vector<Paired>& tensors,
                              const TwinOptions& options = {});

/// Finite lanes, and with `bad` a few of the borders of the classes among them.
void fill(Lanes& lanes, DType dtype, bool bad, std::mt19937_64& random);

}  // namespace numsan::gpu::probe
