// What one operator wrote: bytes taken from shadows, copied into device memory when the stream gets there.
#include <algorithm>
#include <cstring>

#include "device.h"

namespace fakegpu {

void Batch::add(char* memory, const char* shadow, size_t bytes) {
    if (bytes == 0) return;
    pieces_.push_back({memory, bytes});
    bytes_.insert(bytes_.end(), shadow, shadow + bytes);
}

void Batch::add(const Block& block, const at::Tensor& twin) {
    if (twin.numel() == 0) return;
    const size_t item = twin.element_size();
    const size_t start = static_cast<size_t>(twin.storage_offset()) * item;
    if (twin.is_non_overlapping_and_dense()) {
        add(block.memory + start, block.shadow + start, static_cast<size_t>(twin.numel()) * item);
        return;
    }
    struct Dim {
        size_t size, stride;  // bytes
    };
    std::vector<Dim> dims;
    for (int64_t d = 0; d < twin.dim(); ++d) {
        if (twin.size(d) > 1 && twin.stride(d) != 0)
            dims.push_back({static_cast<size_t>(twin.size(d)), static_cast<size_t>(twin.stride(d)) * item});
    }
    std::sort(dims.begin(), dims.end(), [](const Dim& a, const Dim& b) { return a.stride > b.stride; });
    size_t run = item;
    while (!dims.empty() && dims.back().stride == run) {
        run *= dims.back().size;
        dims.pop_back();
    }
    std::vector<size_t> index(dims.size(), 0);
    for (size_t offset = start;;) {
        add(block.memory + offset, block.shadow + offset, run);
        size_t d = dims.size();
        for (; d > 0; --d) {
            offset += dims[d - 1].stride;
            if (++index[d - 1] < dims[d - 1].size) break;
            offset -= dims[d - 1].stride * dims[d - 1].size;
            index[d - 1] = 0;
        }
        if (d == 0) return;
    }
}

void Batch::submit(const c10::Stream& stream, const char* kernel) && {
    if (pieces_.empty()) return;
    const size_t items = bytes_.size();
    launch(stream, kernel, items, [pieces = std::move(pieces_), bytes = std::move(bytes_)] {
        const char* from = bytes.data();
        for (const Piece& piece : pieces) {
            std::memcpy(piece.memory, from, piece.bytes);
            from += piece.bytes;
        }
    });
}

}  // namespace fakegpu
