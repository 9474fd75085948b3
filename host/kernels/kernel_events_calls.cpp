// Calls of libraries: what they read and write they say.
#include <algorithm>
#include <new>

#include "host/kernels/kernel_events.h"
#include "host/ops/op_traits.h"

namespace numsan {

const OpInfo& KernelEvents::call_op(const char* call, OpClass op_class) {
    std::pair<std::string, OpClass> key(call, op_class);
    const auto known = calls_.find(key);
    if (known != calls_.end()) return known->second;
    const std::string name = call + std::string(op_class == OpClass::HostRead ? "" : kLibraryCallMark);
    return calls_.emplace(std::move(key), new_op(name, op_class)).first->second;
}

void KernelEvents::before_call(const LibraryCall& call) noexcept {
    if (call.captured || call.unseen != nullptr) return;
    EventViews views;
    views.device = call.queue.device;
    {
        const std::lock_guard lock(mutex_);
        try {
            for (int i = 0; i < call.count; ++i) memory_.has_type(call.buffers[i].address, call.buffers[i].dtype);
            for (int i = 0; i < call.count; ++i) {
                const LibraryCall::Buffer& buffer = call.buffers[i];
                uint64_t end = ~uint64_t(0);
                for (int k = 0; k < call.count; ++k) {
                    if (call.buffers[k].address > buffer.address) end = std::min(end, call.buffers[k].address);
                }
                add_unknown(views, buffer.address, buffer.dtype, end);
            }
        } catch (const std::bad_alloc&) {
            return;
        }
    }
    look_at_unknown(views, call.queue);
    if (call.sends) show_sent(call);
}

void KernelEvents::show_sent(const LibraryCall& call) noexcept {
    EventViews views;
    views.device = call.queue.device;
    const OpInfo* op = nullptr;
    {
        const std::lock_guard lock(mutex_);
        try {
            op = &call_op(call.name, OpClass::Collective);
            for (int i = 0; i < call.count; ++i) {
                if (call.buffers[i].read) views.add(memory_, call.buffers[i], false);
            }
        } catch (const std::bad_alloc&) {
            return;
        }
    }
    if (views.reads == 0) return;
    OpEvent event = event_of(*op, call.queue);
    views.show_in(event);
    sink_.op_end(event);
}

void KernelEvents::after_call(const LibraryCall& call) noexcept {
    EventViews views;
    views.device = call.queue.device;
    bool explained = call.explained;
    const OpInfo* op = nullptr;
    {
        const std::lock_guard lock(mutex_);
        try {
            if (call.captured) {
                ++captured_;
                return;
            }
            if (call.unseen != nullptr) {
                ++calls_unseen_[{call.name, call.unseen}];
                memory_.all_written();
                return;
            }
            op = &call_op(call.name, OpClass::Other);
            views.complete = call.complete;
            for (int i = 0; i < call.count; ++i) {
                const LibraryCall::Buffer& buffer = call.buffers[i];
                if (buffer.read && !views.add(memory_, buffer, false)) explained = false;
                if (!buffer.written || views.add(memory_, buffer, true)) continue;
                memory_.written(buffer.address);
                views.complete = false;
            }
            for (int i = 0; i < call.other_count; ++i) {
                memory_.has_integers(call.others[i]);
                memory_.written(call.others[i]);
            }
            if (!call.complete) memory_.all_written();
            if (!explained && !call.receives && views.writes > 0) ++calls_unexplained_;
            ++(views.complete ? calls_scanned_ : views.writes > 0 ? calls_partly_ : calls_elsewhere_);
        } catch (const std::bad_alloc&) {
            memory_.all_written();
            return;
        }
    }
    if (views.writes == 0) return;
    OpEvent event = event_of(*op, call.queue);
    views.show_in(event);
    event.scalars = call.numbers;
    event.scalar_count = call.number_count;
    event.launches = call.launches;
    const bool of_others = !explained || call.receives;  // what is bad may come of what was not looked at
    if (of_others) sink_.ignore(true);
    sink_.op_end(event);
    if (of_others) sink_.ignore(false);
}

}  // namespace numsan
