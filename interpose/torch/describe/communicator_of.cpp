#include "interpose/torch/describe/communicator_of.h"

#include <atomic>
#include <exception>
#include <memory>
#include <numeric>
#include <string>
#include <vector>

#if __has_include(<torch/csrc/distributed/c10d/ProcessGroup.hpp>)
#include <torch/csrc/distributed/c10d/ProcessGroup.hpp>

// ProcessGroup::getGroupName() and getGroupDesc() as torch defines them, in either ABI of strings: a class that Python
// code derives from it would be asked in Python. Weak, because a torch may have been built without them.
#if _GLIBCXX_USE_CXX11_ABI
#define NUMSAN_GROUP_TEXT(function) "_ZNK4c10d12ProcessGroup12" function "B5cxx11Ev"
#else
#define NUMSAN_GROUP_TEXT(function) "_ZNK4c10d12ProcessGroup12" function "Ev"
#endif
[[gnu::weak]] const std::string& numsan_group_name(const c10d::ProcessGroup*) asm(NUMSAN_GROUP_TEXT("getGroupName"));
[[gnu::weak]] const std::string& numsan_group_desc(const c10d::ProcessGroup*) asm(NUMSAN_GROUP_TEXT("getGroupDesc"));
#undef NUMSAN_GROUP_TEXT

namespace numsan {
namespace {

/// One that was seen, with what it points at. Groups of one name follow each other: a program may take all of them down
/// and begin anew.
struct KnownCommunicator {
    std::string name;
    std::string description;
    std::vector<int32_t> ranks;
    Communicator shown{};
    const KnownCommunicator* next = nullptr;
    size_t number = 1;  ///< of all that are known
};

constexpr size_t kMost = 512;  // a report names each
std::atomic<const KnownCommunicator*> g_known{nullptr};

/// The backends of torch itself know the ranks; of the group of all ranks, and with an older torch, they do not.
template <class Group>
std::vector<int32_t> ranks_of(const Group& group) {
    std::vector<int32_t> ranks;
    if constexpr (requires { group.getDefaultBackend()->getBackendOptions()->global_ranks_in_group; }) {
        const auto type = group.getBackendType();
        if (type != Group::BackendType::GLOO && type != Group::BackendType::NCCL) return ranks;
        try {
            for (const auto rank : group.getDefaultBackend()->getBackendOptions()->global_ranks_in_group)
                ranks.push_back(static_cast<int32_t>(rank));
        } catch (const std::exception&) {
            ranks.clear();  // a backend without options
        }
    }
    return ranks;
}

const KnownCommunicator* find(const KnownCommunicator* from, const std::string& name, int32_t rank, int32_t size) {
    while (from != nullptr && !(from->shown.rank == rank && from->shown.size == size && from->name == name))
        from = from->next;
    return from;
}

const Communicator* add(const c10d::ProcessGroup& group, const std::string& name, int32_t rank, int32_t size,
                        const KnownCommunicator* seen) {
    auto made = std::make_unique<KnownCommunicator>();
    made->name = name;
    if (numsan_group_desc != nullptr) made->description = numsan_group_desc(&group);
    if (made->description == "undefined") made->description.clear();  // torch's word for none
    made->ranks = ranks_of(group);
    if (made->ranks.empty() && made->description == "default_pg") {  // that is of all ranks
        made->ranks.resize(static_cast<size_t>(size));
        std::iota(made->ranks.begin(), made->ranks.end(), 0);
    }
    const bool whole = made->ranks.size() == static_cast<size_t>(size);
    made->shown = {made->name.c_str(), made->description.c_str(), rank, size, whole ? made->ranks.data() : nullptr};
    while (true) {
        made->next = seen;
        made->number = seen == nullptr ? 1 : seen->number + 1;
        if (made->number > kMost) return nullptr;
        if (g_known.compare_exchange_weak(seen, made.get(), std::memory_order_release, std::memory_order_acquire))
            return &made.release()->shown;
        if (const KnownCommunicator* same = find(seen, name, rank, size)) return &same->shown;
    }
}

}  // namespace

const Communicator* communicator_of(const c10::IValue& value) noexcept {
    if (numsan_group_name == nullptr || !value.isObject()) return nullptr;
    try {
        const auto holder = value.toObjectRef().getSlot(0).toCapsule();
        const auto* group = static_cast<const c10d::ProcessGroup*>(holder.get());
        if (group == nullptr) return nullptr;
        // As the class itself answers, not one that Python code derives from it.
        const int32_t rank = group->c10d::ProcessGroup::getRank();
        const int32_t size = group->c10d::ProcessGroup::getSize();
        const std::string& name = numsan_group_name(group);
        const KnownCommunicator* seen = g_known.load(std::memory_order_acquire);
        if (const KnownCommunicator* known = find(seen, name, rank, size)) return &known->shown;
        return add(*group, name, rank, size, seen);
    } catch (const std::exception&) {
        return nullptr;  // a group that has no name yet; out of memory
    }
}

}  // namespace numsan

#else

namespace numsan {

const Communicator* communicator_of(const c10::IValue&) noexcept { return nullptr; }

}  // namespace numsan

#endif
