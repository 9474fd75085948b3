// One launch of a scan kernel, and of the look behind it, made by hand: the engine's own table and launch shapes, and
// none of its bookkeeping.
#pragma once

#include <memory>
#include <vector>

#include "cuda/batch_filler.h"
#include "tests/cuda/compare.h"
#include "tests/gpu/probe/subject.h"

namespace numsan::gpu::probe {

enum class Size : uint8_t { Fitting, Large };

enum class Look : uint8_t {
    AsNeeded,  ///< where the engine has one
    Always,    ///< behind small tensors too
};

/// Adds outputs 0, 1, ... of `views` to a filler that has begun. Throws Wrong where one finds no room.
void add_outputs(BatchFiller& filler, const std::vector<TensorView>& views, uint8_t flags = 0, InputItems inputs = {});

/// Can be launched again and again: it leaves its scratch at rest, which is its own. Tables that may run at the same
/// time need lanes of their own.
class Table {
  public:
    struct Gate {
        bool is_behind = false;  ///< the launch looks at nothing while the lane's gate is closed
        bool clears = false;
        bool counts = false;  ///< it is a graph of one launch, whose replays the lane's word numbers
    };
    explicit Table(Subject& subject, uint32_t lane = 0) : Table(subject, lane, Gate{}) {}
    Table(Subject& subject, uint32_t lane, Gate gate);

    BatchFiller& filler() { return *filler_; }
    /// Nothing can be added after it.
    void close(Size size = Size::Fitting, Look look = Look::AsNeeded);
    /// The scan, and the look if there is one.
    void launch(CUstream stream) const;
    uint32_t blocks() const { return blocks_; }
    /// 0: no look follows.
    uint32_t look_blocks() const { return look_blocks_; }

    /// Of the lane, in the stream's order.
    void set_gate(bool open, CUstream stream) const;
    void restart_count(CUstream stream) const;
    /// Empty, or where a launch has not left the scratch as it found it. Waits for the stream.
    std::string not_at_rest(CUstream stream) const;

  private:
    /// Device memory, zero at rest.
    struct Scratch {
        ItemScratch items[kBatchOutputs];
        LookList looks;
        LaunchWords launch;
    };

    const DeviceState& state_;
    LaneMemory& lane_;  ///< an address of the device, as what the scratch is
    std::unique_ptr<Buffer> memory_;
    Subject& subject_;
    std::unique_ptr<BatchFiller> filler_;
    CUfunction scan_ = nullptr, look_ = nullptr;
    const void* table_ = nullptr;
    uint32_t blocks_ = 0, look_blocks_ = 0;
};

/// A finished table of one dense tensor of `bytes` bytes of device memory.
Table table_of(Subject& subject, const void* data, size_t bytes, DType dtype, uint8_t flags = 0);

/// What launches have reported so far, as a host that reads the ring finds it: none of it is found twice.
std::vector<HitSlot> take_hits(Subject& subject);

/// Slots that launches have dropped so far: the ring was full, or there was no time for the exact pass.
uint64_t dropped_slots(Subject& subject);

/// What exact passes took is forgotten, in the stream's order: what comes next in it has all the time they may take.
void forget_debt(Subject& subject, CUstream stream);

}  // namespace numsan::gpu::probe
