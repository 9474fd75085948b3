// What the fake cuFFT computes: sums as they are defined, as one kernel of the fake driver.
#pragma once

#include <cufftXt.h>

#include <cstdint>

namespace fake_cufft {

/// Where the numbers of one side lie, in elements of it.
struct Side {
    bool real = false;
    int64_t strides[3] = {}, distance = 0;
};

struct Transform {
    int rank = 1;
    int64_t n[3] = {1, 1, 1};
    int64_t batch = 1;
    bool doubles = false;
    int direction = CUFFT_FORWARD;
    Side in, out;
    const void* from = nullptr;
    void* to = nullptr;

    void compute() const;
    /// Launches compute() in the stream.
    cufftResult launch(void* stream) const;
};

}  // namespace fake_cufft
