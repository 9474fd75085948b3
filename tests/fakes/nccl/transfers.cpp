#include "tests/fakes/nccl/transfers.h"

#include <cstring>

namespace fake_nccl {
namespace {

/// Calls act(pointer to elements of the type); other types are copied only.
template <class Act>
void as(ncclDataType_t type, void* memory, Act act) {
    switch (type) {
        case ncclFloat32: return act(static_cast<float*>(memory));
        case ncclFloat64: return act(static_cast<double*>(memory));
        case ncclFloat16: return act(static_cast<__half*>(memory));
        case ncclBfloat16: return act(static_cast<__nv_bfloat16*>(memory));
        case ncclInt32: return act(static_cast<int*>(memory));
        default: return;
    }
}

double number(ncclDataType_t type, const char* from, size_t index) {
    double value = 0;
    as(type, const_cast<char*>(from), [&](auto* elements) {
        if constexpr (sizeof *elements == 2)
            value = static_cast<double>(static_cast<float>(elements[index]));
        else
            value = static_cast<double>(elements[index]);
    });
    return value;
}

void set(ncclDataType_t type, char* to, size_t index, double value) {
    as(type, to, [&](auto* elements) {
        if constexpr (sizeof *elements == 2)
            elements[index] = static_cast<float>(value);
        else
            elements[index] = static_cast<std::remove_reference_t<decltype(*elements)>>(value);
    });
}

double reduced(ncclRedOp_t reduction, double a, double b) {
    switch (reduction) {
        case ncclProd: return a * b;
        case ncclMax: return a > b ? a : b;
        case ncclMin: return a < b ? a : b;
        default: return a + b;
    }
}

using Bytes = std::vector<char>;

const char* block_of(const Part& part, size_t index) {
    return static_cast<const char*>(part.send) + index * part.count * bytes_of(part.type);
}

/// Of elements that lie `block` blocks of them behind the beginning of what each rank puts in.
Bytes reduce(const std::map<int, Part>& parts, size_t block) {
    const Part& first = parts.at(0);
    Bytes made(first.count * bytes_of(first.type));
    for (size_t i = 0; i < first.count; ++i) {
        double value = number(first.type, block_of(first, block), i);
        for (const auto& [rank, part] : parts) {
            if (rank != 0) value = reduced(first.reduction, value, number(first.type, block_of(part, block), i));
        }
        if (first.reduction == ncclAvg) value /= static_cast<double>(parts.size());
        set(first.type, made.data(), i, value);
    }
    return made;
}

/// What comes to the rank; empty: nothing.
Bytes result(int rank, const std::map<int, Part>& parts) {
    const Part& own = parts.at(rank);
    const size_t bytes = own.count * bytes_of(own.type);
    const auto index = static_cast<size_t>(rank);
    Bytes made;
    const auto append = [&](const Part& from, size_t block) {
        const char* const begin = block_of(from, block);
        made.insert(made.end(), begin, begin + bytes);
    };
    switch (own.what) {
        case What::AllReduce: return reduce(parts, 0);
        case What::Reduce: return rank == own.peer ? reduce(parts, 0) : Bytes{};
        case What::ReduceScatter: return reduce(parts, index);
        case What::Broadcast: append(parts.at(own.peer), 0); break;
        case What::Scatter: append(parts.at(own.peer), index); break;
        case What::Gather:
        case What::AllGather:
            if (own.what == What::Gather && rank != own.peer) break;
            for (const auto& [other, part] : parts) append(part, 0);
            break;
        case What::AlltoAll:
            for (const auto& [other, part] : parts) append(part, index);
            break;
        case What::Send: break;
        case What::Receive:
            for (const auto& [other, part] : parts) {
                if (part.what == What::Send) append(part, 0);
            }
            break;
    }
    return made;
}

bool is_between_two(const Part& part) { return part.what == What::Send || part.what == What::Receive; }

}  // namespace

size_t bytes_of(ncclDataType_t type) {
    switch (type) {
        case ncclFloat64:
        case ncclInt64:
        case ncclUint64: return 8;
        case ncclFloat32:
        case ncclInt32:
        case ncclUint32: return 4;
        case ncclFloat16:
        case ncclBfloat16: return 2;
        default: return 1;
    }
}

Clique::Key Clique::key_of(int rank, const Part& part) const {
    if (!is_between_two(part)) return {-1, -1, part.number};
    const bool sends = part.what == What::Send;
    return {sends ? rank : part.peer, sends ? part.peer : rank, part.number};
}

void Clique::run(int rank, const std::vector<Part>& parts) {
    // A rank that sends to itself has two parts in one meeting: the one that receives has no number of its own there.
    const auto seat_of = [&](const Part& part) { return part.what == What::Receive ? ranks_ + rank : rank; };
    const auto all_of = [&](const Part& part) { return is_between_two(part) ? 2 : ranks_; };
    std::vector<Bytes> results;
    std::unique_lock lock(mutex_);
    for (const Part& part : parts) meetings_[key_of(rank, part)].offered.emplace(seat_of(part), part);
    changed_.notify_all();
    for (const Part& part : parts) {
        Meeting& meeting = meetings_[key_of(rank, part)];
        changed_.wait(lock, [&] { return static_cast<int>(meeting.offered.size()) == all_of(part); });
        results.push_back(result(seat_of(part), meeting.offered));
        ++meeting.done;
    }
    changed_.notify_all();
    // Nobody writes before all have read: what is sent may be written, too.
    for (size_t i = 0; i < parts.size(); ++i) {
        Meeting& meeting = meetings_[key_of(rank, parts[i])];
        const int all = all_of(parts[i]);
        changed_.wait(lock, [&] { return meeting.done >= all; });
        if (!results[i].empty()) std::memcpy(parts[i].receive, results[i].data(), results[i].size());
        if (++meeting.done == 2 * all) meetings_.erase(key_of(rank, parts[i]));
    }
}

}  // namespace fake_nccl
