#include "tests/gpu/probe/table.h"

#include <algorithm>

namespace numsan::gpu::probe {
namespace {

HitReader& reader_of(Subject& subject) {
    static HitReader reader(*subject.state().eager.host, kRingCapacity);
    return reader;
}

}  // namespace

void add_outputs(BatchFiller& filler, const std::vector<TensorView>& views, uint8_t flags, InputItems inputs) {
    for (size_t i = 0; i < views.size(); ++i) {
        const auto number = static_cast<uint32_t>(i);
        if (filler.add(views[i], number, number, flags, inputs) != Admission::Added)
            throw Wrong("output " + std::to_string(i) + " found no room in a table");
    }
}

Table::Table(Subject& subject, uint32_t lane, Gate gate)
    : state_(subject.state()),
      lane_(state_.memory->lanes[lane]),
      memory_(new Buffer(sizeof(Scratch))),
      subject_(subject),
      filler_(new BatchFiller) {
    memory_->fill(0, gpu().stream);
    check("cuStreamSynchronize", gpu().stream_synchronize(gpu().stream));
    // Addresses of the device: only those of their members are taken.
    DeviceMemory& memory = *state_.memory;
    auto& scratch = *reinterpret_cast<Scratch*>(memory_->at(0));
    ScanHeader header{};
    header.gate = gate.is_behind ? &lane_.gate : nullptr;
    header.raise = &lane_.gate;
    if (gate.counts) {
        header.sequence = &lane_.sequence;
        header.window = &lane_.window;
        header.replays = state_.replays_device + lane;
        header.capture = 1;
        state_.replays_host[lane].launches = 1;
    }
    header.scratch = scratch.items;
    header.looks = &scratch.looks;
    header.launch = &scratch.launch;
    header.state = &memory.eager;
    header.ring = state_.eager.device;
    header.ring_capacity = kRingCapacity;
    header.results = state_.results_device;
    header.results_capacity = kResults;
    header.flags = gate.clears ? uint32_t(kClearsGate) : 0;
    filler_->begin(header);
}

void Table::close(Size size, Look look) {
    ScanHeader& header = filler_->header();
    LookList* const looks = header.looks;
    if (!filler_->close()) throw Wrong("a table has nothing to launch");
    if (look == Look::Always && header.looks == nullptr) {
        header.looks = looks;
        header.look_chunks = 4 * header.chunks;
    }
    blocks_ = header.scan_blocks = grid_blocks(header.chunks, state_.multiprocessors);
    if (header.looks != nullptr)
        look_blocks_ = grid_blocks(header.look_chunks, state_.multiprocessors, kLookBlocksPerSm);
    const bool small = size == Size::Fitting && filler_->fits_small();
    table_ = small ? static_cast<const void*>(&filler_->small()) : &filler_->large();
    scan_ = small ? state_.scan_small : state_.scan_large;
    look_ = small ? state_.look_small : state_.look_large;
}

void Table::launch(CUstream stream) const {
    void* parameters[] = {const_cast<void*>(table_)};
    const auto launch = [&](CUfunction kernel, uint32_t blocks) {
        check("cuLaunchKernel",
              subject_.driver.launch(kernel, blocks, 1, 1, kBlockThreads, 1, 1, 0, stream, parameters, nullptr));
    };
    launch(scan_, blocks_);
    if (look_blocks_ != 0) launch(look_, look_blocks_);
}

void Table::set_gate(bool open, CUstream stream) const {
    const auto word = reinterpret_cast<CUdeviceptr>(&lane_.gate);
    check("cuMemsetD8Async", gpu().fill(word, open ? 1 : 0, sizeof lane_.gate, stream));
}

void Table::restart_count(CUstream stream) const {
    const auto word = reinterpret_cast<CUdeviceptr>(&lane_.sequence);
    check("cuMemsetD8Async", gpu().fill(word, 0, sizeof lane_.sequence, stream));
}

std::string Table::not_at_rest(CUstream stream) const {
    std::vector<unsigned char> bytes(sizeof(Scratch));
    check("cuMemcpyDtoHAsync", gpu().from_device(bytes.data(), memory_->at(0), bytes.size(), stream));
    check("cuStreamSynchronize", gpu().stream_synchronize(stream));
    const auto set = std::find_if(bytes.begin(), bytes.end(), [](unsigned char byte) { return byte != 0; });
    if (set == bytes.end()) return "";
    const auto at = size_t(set - bytes.begin());
    const char* what = at < offsetof(Scratch, looks)    ? "an output's scratch"
                       : at < offsetof(Scratch, launch) ? "the list of looks"
                                                        : "the launch's words";
    return std::string(what) + " not at rest; ";
}

Table table_of(Subject& subject, const void* data, size_t bytes, DType dtype, uint8_t flags) {
    Table table(subject);
    add_outputs(table.filler(), {Shaped(data, dtype, static_cast<int64_t>(bytes / info(dtype).element_bytes())).view},
                flags);
    table.close();
    return table;
}

std::vector<HitSlot> take_hits(Subject& subject) {
    std::vector<HitSlot> hits;
    for (HitSlot hit; reader_of(subject).next(hit);) hits.push_back(hit);
    return hits;
}

uint64_t dropped_slots(Subject& subject) { return reader_of(subject).dropped(); }

void forget_debt(Subject& subject, CUstream stream) {
    const CUdeviceptr state = reinterpret_cast<CUdeviceptr>(&subject.state().memory->eager);
    check("cuMemsetD8Async",
          gpu().fill(state + offsetof(ScanState, paid_until), 0, sizeof(ScanState::paid_until), stream));
}

}  // namespace numsan::gpu::probe
