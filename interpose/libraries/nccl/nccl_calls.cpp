#include "interpose/libraries/nccl/nccl_calls.h"

#include <iterator>
#include <memory>

#include "interpose/libraries/library_functions.h"
#include "interpose/libraries/listened_call.h"
#include "interpose/libraries/nccl/nccl_abi.h"
#include "interpose/libraries/nccl/nccl_group.h"
#include "interpose/libraries/nccl/nccl_transfer.h"

namespace numsan::nccl {
namespace {

enum GroupFunction : int { kGroupStart = kFunctionCount, kGroupEnd, kGroupSimulateEnd, kAllFunctions };

void* theirs[kAllFunctions];  // each is set before ours is called

template <class Function>
Function* original(int id) {
    return their_function<Function>(theirs[id]);
}

AskedFunction<OfCommunicator> ask_count("ncclCommCount");
AskedFunction<OfCommunicator> ask_rank("ncclCommUserRank");
AskedFunction<OfCommunicator> ask_device("ncclCommCuDevice");

bool ask(const AskedFunction<OfCommunicator>& asked, void* communicator, int& value) {
    OfCommunicator* const function = asked.get();
    return function != nullptr && function(communicator, &value) == kSuccess;
}

void describe_by(LibraryCall& call, const Transfer& transfer, void* communicator) {
    Member member{};
    const bool known = ask(ask_count, communicator, member.ranks) && ask(ask_rank, communicator, member.rank) &&
                       ask(ask_device, communicator, member.device);
    describe(call, transfer, member);
    if (!known) call.unseen = "its communicator cannot be asked";
}

template <class Make>
int call_theirs(const Transfer& transfer, void* communicator, Make make) {
    ListenedCall listened;
    if (!listened) return make();
    describe_by(listened.call, transfer, communicator);
    if (!OpenGroup::is_open()) return listened.make(make);
    const int status = ListenedCall::make_untold(make);
    if (status == kSuccess) OpenGroup::add(listened.call);
    return status;
}

// ---- forms of calls: theirs are called with what ours are given

constexpr int kNone = -1;

template <int id>
int reducing(const void* send, void* receive, size_t count, int type, int reduction, void* communicator, void* stream) {
    return call_theirs({Function(id), send, receive, count, type, kNone, reduction, stream}, communicator, [&] {
        return original<Reducing>(id)(send, receive, count, type, reduction, communicator, stream);
    });
}

template <int id>
int reducing_to_root(const void* send, void* receive, size_t count, int type, int reduction, int root,
                     void* communicator, void* stream) {
    return call_theirs({Function(id), send, receive, count, type, root, reduction, stream}, communicator, [&] {
        return original<ReducingToRoot>(id)(send, receive, count, type, reduction, root, communicator, stream);
    });
}

template <int id>
int exchanging(const void* send, void* receive, size_t count, int type, void* communicator, void* stream) {
    return call_theirs({Function(id), send, receive, count, type, kNone, kNone, stream}, communicator,
                       [&] { return original<Exchanging>(id)(send, receive, count, type, communicator, stream); });
}

template <int id>
int with_root(const void* send, void* receive, size_t count, int type, int root, void* communicator, void* stream) {
    return call_theirs({Function(id), send, receive, count, type, root, kNone, stream}, communicator,
                       [&] { return original<WithRoot>(id)(send, receive, count, type, root, communicator, stream); });
}

template <int id>
int in_place(void* buffer, size_t count, int type, int root, void* communicator, void* stream) {
    return call_theirs({Function(id), buffer, buffer, count, type, root, kNone, stream}, communicator,
                       [&] { return original<InPlace>(id)(buffer, count, type, root, communicator, stream); });
}

template <int id>
int sending(const void* buffer, size_t count, int type, int peer, void* communicator, void* stream) {
    return call_theirs({Function(id), buffer, nullptr, count, type, peer, kNone, stream}, communicator,
                       [&] { return original<Sending>(id)(buffer, count, type, peer, communicator, stream); });
}

template <int id>
int receiving(void* buffer, size_t count, int type, int peer, void* communicator, void* stream) {
    return call_theirs({Function(id), nullptr, buffer, count, type, peer, kNone, stream}, communicator,
                       [&] { return original<Receiving>(id)(buffer, count, type, peer, communicator, stream); });
}

// ---- groups: what is called within one is made at its end

int group_start() {
    const int status = original<Group>(kGroupStart)();
    if (status == kSuccess && !ListenedCall::is_open()) OpenGroup::begin();
    return status;
}

int group_end() {
    const auto make = [] { return original<Group>(kGroupEnd)(); };
    if (ListenedCall::is_open() || !OpenGroup::end()) return make();
    const std::unique_ptr<OpenGroup::Calls> calls = OpenGroup::take();
    return calls != nullptr ? ListenedCall::make_all(calls->data(), calls->size(), make) : make();
}

/// It ends the group, and makes nothing of what was called.
int group_simulate_end(void* result) {
    if (!ListenedCall::is_open() && OpenGroup::end()) OpenGroup::take();
    return original<GroupSimulateEnd>(kGroupSimulateEnd)(result);
}

// The forms of nccl_calls.def.
// NOLINTBEGIN(readability-identifier-naming)
template <int id>
constexpr auto ours_Reducing = reducing<id>;
template <int id>
constexpr auto ours_ReducingToRoot = reducing_to_root<id>;
template <int id>
constexpr auto ours_Exchanging = exchanging<id>;
template <int id>
constexpr auto ours_WithRoot = with_root<id>;
template <int id>
constexpr auto ours_InPlace = in_place<id>;
template <int id>
constexpr auto ours_Sending = sending<id>;
template <int id>
constexpr auto ours_Receiving = receiving<id>;
// NOLINTEND(readability-identifier-naming)

}  // namespace

const ReplacedImport kImports[] = {
#define NUMSAN_NCCL_CALL(function, form, readers, read, writers, written) \
    {"nccl" #function, address_of<form>(ours_##form<k##function>), &theirs[k##function]},
#include "interpose/libraries/nccl/nccl_calls.def"
#undef NUMSAN_NCCL_CALL
    {"ncclGroupStart", address_of<Group>(group_start), &theirs[kGroupStart]},
    {"ncclGroupEnd", address_of<Group>(group_end), &theirs[kGroupEnd]},
    {"ncclGroupSimulateEnd", address_of<GroupSimulateEnd>(group_simulate_end), &theirs[kGroupSimulateEnd]},
};
const int kImportCount = static_cast<int>(std::size(kImports));

void find_asked() noexcept {
    for (void*& one : theirs) {
        void* const function = __atomic_load_n(&one, __ATOMIC_ACQUIRE);
        ask_count.find_beside(function);
        ask_rank.find_beside(function);
        ask_device.find_beside(function);
    }
}

}  // namespace numsan::nccl
