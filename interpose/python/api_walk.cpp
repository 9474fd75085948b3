// Python stacks by the public API: where the layout of frames is not known, or the interpreter has no lock.
#include <algorithm>
#include <list>

#include "interpose/python/api/gate.h"
#include "interpose/python/api/reference.h"
#include "interpose/python/frames.h"

namespace numsan {

/// The calling thread's frames by the public API, with lines for instructions; the thread holds the lock. May run a
/// garbage collection, and with it anything at all: never under our mutex.
uint64_t PythonStacks::walk_api(std::vector<Frame>& frames) const {
    frames.clear();
    uint64_t hash = 0x9e3779b97f4a7c15u;
    void* frame = api_->PyEval_GetFrame();
    if (!frame) return hash;
    api_->Py_IncRef(frame);
    Reference current(*api_, frame);
    while (current.get() && frames.size() < kMaxDepth) {
        const Reference code(*api_, api_->PyFrame_GetCode(current.get()));  // the frame keeps it alive
        const int line = api_->PyFrame_GetLineNumber(current.get());
        const void* self = nullptr;
        if (api_->PyFrame_GetVarString && is_module_code(code.get())) {
            const Reference value(*api_, api_->PyFrame_GetVarString(current.get(), "self"));
            self = value.get();
            if (!self) api_->PyErr_Clear();
        }
        frames.push_back({code.get(), uintptr_t(line > 0 ? line : 0), self});
        hash = mix(mix(hash, reinterpret_cast<uint64_t>(code.get())), uint64_t(line));
        hash = mix(hash, reinterpret_cast<uint64_t>(self));
        current.reset(api_->PyFrame_GetBack(current.get()));
    }
    return hash ^ hash >> 32;
}

/// Remembers the codes of `frames`; true when one of a module's call was among the new ones. The interpreter is asked
/// outside our mutex: a thread of a free-threaded build may be stopped there, while others wait for the mutex and keep
/// the world from stopping.
bool PythonStacks::remember_api(const std::vector<Frame>& frames) {
    std::list<Code> fresh;
    {
        const std::lock_guard<std::mutex> guard(mutex_);
        for (const Frame& frame : frames) {
            const auto is_it = [&](const Code& code) { return code.code == frame.code; };
            if (known_code(frame.code) != nullptr || std::any_of(fresh.begin(), fresh.end(), is_it)) continue;
            fresh.emplace_back().code = frame.code;
        }
    }
    for (Code& code : fresh) {
        void* const object = const_cast<void*>(code.code);
        code.file = attribute(*api_, object, "co_filename");
        code.function = qualified_name(*api_, object);
    }
    bool module = false;
    const std::lock_guard<std::mutex> guard(mutex_);
    for (Code& code : fresh) {
        if (known_code(code.code) != nullptr) continue;  // another thread was quicker
        const Code& kept = remember(std::move(code));
        api_->Py_IncRef(const_cast<void*>(kept.code));  // for as long as it is known: the address is its identity
        module |= kept.module_call || kept.module_entry;
    }
    return module;
}

/// 0: one of the codes was forgotten meanwhile.
StackId PythonStacks::add_api(const std::vector<Frame>& seen, uint64_t hash) {
    std::vector<StoredFrame> frames;
    frames.reserve(seen.size());
    std::list<Code> unneeded;
    StackId id = 0;
    {
        const std::lock_guard<std::mutex> guard(mutex_);
        for (const Frame& one : seen) {
            if (const Code* known = known_code(one.code); known != nullptr)
                frames.push_back({known, one.self, int(one.instruction)});
        }
        if (frames.size() == seen.size()) id = add(hash, std::move(frames));
        for (const Frame& one : seen) {
            if (Code* known = known_code(one.code); known != nullptr) forget_if_unused(*known);
        }
        unneeded.swap(unneeded_);
    }
    for (const Code& code : unneeded) api_->Py_DecRef(const_cast<void*>(code.code));
    return id;
}

StackId PythonStacks::capture_api() {
    const InsidePython inside;
    if (!inside || !python_usable(*api_) || !api_->PyGILState_GetThisThreadState()) return 0;
    const PythonLock lock(*api_);
    std::vector<Frame> seen;
    uint64_t hash = walk_api(seen);
    if (seen.empty()) return 0;
    constexpr int kTries = 8;
    for (int i = 0; i < kTries; ++i) {
        if (const StackId known = table_.find(hash)) return known;
        if (remember_api(seen)) hash = walk_api(seen);  // the modules of these frames were not asked for
        if (const StackId id = add_api(seen, hash)) return id;
    }
    return 0;
}

}  // namespace numsan
