// What numsan keeps in one CUDA context: kernels, scratch, and the rings. All of it is made at first use; nothing is
// allocated, loaded or synchronised after that, and nothing is ever given back while the context lives.
#pragma once

#include <atomic>
#include <cstdint>

#include "cuda/driver.h"
#include "cuda/kernel/hit_ring.h"
#include "cuda/kernel/scan_table.h"

namespace numsan::gpu {

/// Scratch of a scan and of the look behind it. Device memory. Several threads may launch into one stream, where
/// another scan may then come between the two: one pair at a time has it.
struct LookMemory {
    ItemScratch items[kBatchOutputs];
    LookList list;
};

/// Scratch of launches that follow each other: those of one stream, or of one stream in one capture. Device memory.
struct LaneMemory {
    ItemScratch items[kBatchOutputs];
    LookMemory looked;
    LaunchWords launch;
    ReplayWindow window;  ///< of a capture
    uint32_t sequence;    ///< replays so far, of all captures that had the lane
    uint32_t gate;        ///< of the lane's own launches, which follow each other: none of them sees it change
    uint32_t unused[34];
};
static_assert(sizeof(LaneMemory) % 256 == 0);

/// Device memory of a context. Launches that replays repeat have a state and a ring of their own: their sequence
/// numbers count replays and are not those of the host.
struct DeviceMemory {
    ScanState eager, replay;
    uint64_t unused[16];
    LaneMemory lanes[kLanes];
};
static_assert(offsetof(DeviceMemory, lanes) == 256);

/// A ring, and the host's end of it. The memory is the process's own, registered with the context: it can be read
/// after the context is gone. A forked child shares it and writes nothing there.
struct Channel {
    HitRing* host = nullptr;
    HitRing* device = nullptr;
};

struct DeviceState {
    CUcontext context = nullptr;
    unsigned long long context_id = 0;
    int device = -1;
    char device_name[128] = "";
    int major = 0, minor = 0;  ///< of the compute capability
    uint32_t multiprocessors = 0;
    CUmodule module = nullptr;
    CUfunction scan_small = nullptr, scan_large = nullptr, look_small = nullptr, look_large = nullptr;
    DeviceMemory* memory = nullptr;  ///< device address
    Channel eager, replay;
    RangeResult* results_host = nullptr;  ///< kResults, of eager launches; memory as a Channel's
    RangeResult* results_device = nullptr;
    LaunchTime* times_host = nullptr;  ///< LaunchClock::kTimes; memory as a Channel's
    LaunchTime* times_device = nullptr;
    ReplayWords* replays_host = nullptr;  ///< one for each lane; memory as a Channel's
    ReplayWords* replays_device = nullptr;
};

/// What went wrong, and in which call.
struct Failure {
    CUresult result = CUDA_SUCCESS;
    const char* call = "";
};

/// Makes the state of `state.context`. Not while the calling thread's own stream is captured; another thread's capture
/// is not disturbed. After a failure nothing is left behind, as far as the driver still takes calls. [MT]
Failure set_up(const Driver& driver, DeviceState& state) noexcept;

}  // namespace numsan::gpu
