#include "interpose/libraries/nccl/nccl_transfer.h"

#include <limits>

#include "interpose/libraries/nccl/nccl_abi.h"

namespace numsan::nccl {
namespace {

enum class Ranks : uint8_t { Every, Root, Others, Nobody };
enum class Counts : uint8_t { One, OneForEach };

struct Row {
    const char* name;
    Ranks readers;
    Counts read;
    Ranks writers;
    Counts written;
};
constexpr Row kRows[] = {
#define NUMSAN_NCCL_CALL(function, form, readers, read, writers, written) \
    {"nccl" #function, Ranks::readers, Counts::read, Ranks::writers, Counts::written},
#include "interpose/libraries/nccl/nccl_calls.def"
#undef NUMSAN_NCCL_CALL
};

bool is_one_of(Ranks ranks, bool is_root) {
    return ranks == Ranks::Every || (ranks == Ranks::Root && is_root) || (ranks == Ranks::Others && !is_root);
}

/// More than can be counted is no buffer that can be looked at.
int64_t elements_in(Counts counts, size_t count, int ranks) {
    int64_t all = 0;
    const bool fits = !__builtin_mul_overflow(count, counts == Counts::OneForEach ? ranks : 1, &all);
    return fits ? all : std::numeric_limits<int64_t>::max();
}

}  // namespace

LibraryCall::Elements elements_of(int type) noexcept {
    switch (type) {
        case kFloat16: return {DType::Float16};
        case kFloat32: return {DType::Float32};
        case kFloat64: return {DType::Float64};
        case kBFloat16: return {DType::BFloat16};
        case kFloat8E4M3: return {DType::Float8E4M3Fn};
        case kFloat8E5M2: return {DType::Float8E5M2};
        default: return {std::nullopt, type >= 0 && type < kFloat16};
    }
}

void describe(LibraryCall& call, const Transfer& transfer, const Member& member) noexcept {
    const Row& row = kRows[transfer.function];
    const bool is_root = transfer.peer == member.rank;
    const bool reads = is_one_of(row.readers, is_root), writes = is_one_of(row.writers, is_root);
    const LibraryCall::Elements elements = elements_of(transfer.type);
    call.name = row.name;
    call.queue = DeviceQueue{transfer.stream, static_cast<int16_t>(member.device), true};
    const int64_t read = elements_in(row.read, transfer.count, member.ranks);
    const int64_t written = elements_in(row.written, transfer.count, member.ranks);
    const bool in_place = reads && writes && transfer.send == transfer.receive && read == written;
    if (reads) call.add(transfer.send, elements, read, true, in_place);
    if (writes && !in_place) call.add(transfer.receive, elements, written, false, true);

    const bool among_several = member.ranks > 1;
    const bool stays = is_root && (row.writers == Ranks::Root || row.writers == Ranks::Nobody);
    call.sends = reads && among_several && !stays;
    const bool is_own = row.readers == Ranks::Root && is_root;
    const bool adds_up = transfer.reduction == kSum;
    const bool by_factor = transfer.reduction > kAverage;  // that the program gave when it made the reduction
    call.receives = writes && ((among_several && !is_own && !adds_up) || by_factor);
}

}  // namespace numsan::nccl
