#include "interpose/libraries/nccl/nccl_group.h"

#include <new>

namespace numsan::nccl {
namespace {

thread_local constinit int depth = 0;
thread_local constinit OpenGroup::Calls* kept = nullptr;  // until the group ends

}  // namespace

bool OpenGroup::is_open() noexcept { return depth > 0; }

void OpenGroup::begin() noexcept { ++depth; }

bool OpenGroup::end() noexcept { return depth > 0 && --depth == 0; }

void OpenGroup::add(const LibraryCall& call) noexcept {
    try {
        if (kept == nullptr) {
            kept = new Calls;
            kept->reserve(1);
        }
        if (kept->size() < kMost) return kept->push_back(call);
    } catch (const std::bad_alloc&) {
        if (kept == nullptr || kept->empty()) return;
    }
    kept->back().unseen = "too many were grouped";
}

std::unique_ptr<OpenGroup::Calls> OpenGroup::take() noexcept {
    std::unique_ptr<Calls> calls(kept);
    kept = nullptr;
    return calls;
}

}  // namespace numsan::nccl
