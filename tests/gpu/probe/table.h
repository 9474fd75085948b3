// One launch of a scan kernel, made by hand: the engine's own table and launch shape, and none of its bookkeeping.
#pragma once

#include <memory>
#include <vector>

#include "cuda/batch_filler.h"
#include "tests/cuda/compare.h"
#include "tests/gpu/probe/subject.h"

namespace numsan::gpu::probe {

enum class Size : uint8_t { Fitting, Large };

/// Adds outputs 0, 1, ... of `views` to a filler that has begun. Throws Wrong where one finds no room.
void add_outputs(BatchFiller& filler, const std::vector<TensorView>& views, uint8_t flags = 0, InputItems inputs = {});

/// Can be launched again and again: it leaves its lane's scratch at rest. Tables that may run at the same time need
/// lanes of their own.
class Table {
  public:
    struct Gate {
        bool is_behind = false;  ///< the launch looks at nothing while the lane's gate is closed
        bool clears = false;
    };
    explicit Table(Subject& subject, uint32_t lane = 0) : Table(subject, lane, Gate{}) {}
    Table(Subject& subject, uint32_t lane, Gate gate);

    BatchFiller& filler() { return *filler_; }
    /// Nothing can be added after it.
    void close(Size size = Size::Fitting);
    void launch(CUstream stream) const;
    uint32_t blocks() const { return blocks_; }

  private:
    const DeviceState& state_;
    Subject& subject_;
    std::unique_ptr<BatchFiller> filler_;
    CUfunction kernel_ = nullptr;
    const void* table_ = nullptr;
    uint32_t blocks_ = 0;
};

/// A finished table of one dense tensor of `bytes` bytes of device memory.
Table table_of(Subject& subject, const void* data, size_t bytes, DType dtype, uint8_t flags = 0);

/// What launches have reported so far, as a host that reads the ring finds it: none of it is found twice.
std::vector<HitSlot> take_hits(Subject& subject);

}  // namespace numsan::gpu::probe
