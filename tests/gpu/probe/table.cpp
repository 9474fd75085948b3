#include "tests/gpu/probe/table.h"

namespace numsan::gpu::probe {

void add_outputs(BatchFiller& filler, const std::vector<TensorView>& views, uint8_t flags, InputItems inputs) {
    for (size_t i = 0; i < views.size(); ++i) {
        const auto number = static_cast<uint32_t>(i);
        if (filler.add(views[i], number, number, flags, inputs) != Admission::Added)
            throw Wrong("output " + std::to_string(i) + " found no room in a table");
    }
}

Table::Table(Subject& subject, uint32_t lane, Gate gate)
    : state_(subject.state()), subject_(subject), filler_(new BatchFiller) {
    DeviceMemory& memory = *state_.memory;  // an address of the device: only its members' addresses are taken
    LaneMemory& scratch = memory.lanes[lane];
    ScanHeader header{};
    header.gate = gate.is_behind ? &scratch.gate : nullptr;
    header.raise = &scratch.gate;
    header.scratch = scratch.items;
    header.blocks_done = &scratch.blocks_done;
    header.state = &memory.eager;
    header.ring = state_.eager.device;
    header.ring_capacity = kRingCapacity;
    header.results = state_.results_device;
    header.results_capacity = kResults;
    header.flags = gate.clears ? uint32_t(kClearsGate) : 0;
    filler_->begin(header);
}

void Table::close(Size size) {
    if (!filler_->close()) throw Wrong("a table has nothing to launch");
    const bool small = size == Size::Fitting && filler_->fits_small();
    table_ = small ? static_cast<const void*>(&filler_->small()) : &filler_->large();
    kernel_ = small ? state_.scan_small : state_.scan_large;
    blocks_ = grid_blocks(filler_->header().chunks, state_.multiprocessors);
}

void Table::launch(CUstream stream) const {
    void* parameters[] = {const_cast<void*>(table_)};
    check("cuLaunchKernel",
          subject_.driver.launch(kernel_, blocks_, 1, 1, kBlockThreads, 1, 1, 0, stream, parameters, nullptr));
}

Table table_of(Subject& subject, const void* data, size_t bytes, DType dtype, uint8_t flags) {
    Table table(subject);
    add_outputs(table.filler(), {Shaped(data, dtype, static_cast<int64_t>(bytes / info(dtype).element_bytes())).view},
                flags);
    table.close();
    return table;
}

std::vector<HitSlot> take_hits(Subject& subject) {
    static HitReader reader(*subject.state().eager.host, kRingCapacity);
    std::vector<HitSlot> hits;
    for (HitSlot hit; reader.next(hit);) hits.push_back(hit);
    return hits;
}

}  // namespace numsan::gpu::probe
