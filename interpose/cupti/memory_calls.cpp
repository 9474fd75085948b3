#include "interpose/cupti/memory_calls.h"

#include <algorithm>
#include <iterator>
#include <string_view>

#include "interpose/cupti/cupti_abi.h"

namespace numsan::cupti {
namespace {

enum class Shape : uint8_t { Allocate, AllocateManaged, AllocateRows, Free, Copy, CopyInStream, Set, Other };

struct Row {
    uint32_t id;
    Shape shape;
    bool of_thread;  ///< null is the thread's own stream
};

constexpr bool is_of_thread(std::string_view call) { return call.ends_with("_ptds") || call.ends_with("_ptsz"); }

constexpr Row kRows[] = {
#define NUMSAN_MEMORY_CALLBACK(call, number, what) {number, Shape::what, is_of_thread(#call)},
#include "interpose/cupti/memory_callbacks.def"
#undef NUMSAN_MEMORY_CALLBACK
};

template <class Parameters>
const Parameters& as(const void* parameters) {
    return *static_cast<const Parameters*>(parameters);
}

}  // namespace

const uint32_t kMemoryCallbacks[] = {
#define NUMSAN_MEMORY_CALLBACK(call, number, what) number,
#include "interpose/cupti/memory_callbacks.def"
#undef NUMSAN_MEMORY_CALLBACK
};
const int kMemoryCallbackCount = static_cast<int>(std::size(kMemoryCallbacks));

bool is_free(uint32_t id) noexcept {
    return std::any_of(std::begin(kRows), std::end(kRows),
                       [&](const Row& row) { return row.id == id && row.shape == Shape::Free; });
}

std::optional<MemoryCall> memory_call(uint32_t id, const void* parameters) noexcept {
    using What = MemoryCall::What;
    for (const Row& row : kRows) {
        if (row.id != id) continue;
        MemoryCall call{What::Other};
        if (parameters == nullptr) return call;
        switch (row.shape) {
            case Shape::Allocate:
            case Shape::AllocateManaged: {
                const auto& given = as<AllocateParams>(parameters);
                call = {What::Allocate, *given.address, 0, static_cast<int64_t>(given.bytes)};
                call.managed = row.shape == Shape::AllocateManaged;
                break;
            }
            case Shape::AllocateRows: {
                const auto& given = as<AllocateRowsParams>(parameters);
                call = {What::Allocate, *given.address, 0, static_cast<int64_t>(*given.pitch * given.height)};
                break;
            }
            case Shape::Free: call = {What::Free, as<AddressParams>(parameters).address}; break;
            case Shape::Set: call = {What::Set, as<AddressParams>(parameters).address}; break;
            case Shape::Copy:
            case Shape::CopyInStream: {
                const auto& given = as<CopyParams>(parameters);
                call = {What::Copy, given.to, given.from, static_cast<int64_t>(given.bytes)};
                if (row.shape == Shape::CopyInStream) call.stream = as<CopyInStreamParams>(parameters).stream;
                if (call.stream == nullptr && row.of_thread) call.stream = kThreadStream;
                break;
            }
            case Shape::Other: break;
        }
        return call;
    }
    return std::nullopt;
}

}  // namespace numsan::cupti
