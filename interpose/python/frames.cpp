// Capture and interning of Python stacks; api_walk.cpp has what goes through the public API.
#include "interpose/python/frames.h"

#include <algorithm>
#include <string_view>

#include "interpose/python/api/gate.h"
#include "interpose/python/layout/frame_walk.h"
#include "interpose/python/layout/layout_check.h"
#include "interpose/python/names/live_names.h"

namespace numsan {
namespace {

constexpr std::string_view kModuleFile = "torch/nn/modules/module.py";

}  // namespace

PythonStacks::PythonStacks(Mode best) : api_(python_api()) {
    if (!api_) {
        why_ = "no python interpreter in this process";
        return;
    }
    if (!python_usable(*api_)) {
        why_ = "the python interpreter is not running";
        return;
    }
    mode_ = Mode::Api;
    if (best != Mode::Raw) {
        why_ = "asked for";
        return;
    }
    const std::string version = "python 3." + std::to_string(python_minor(*api_));
    const auto layout = python_layout(*api_);
    if (!layout) {
        why_ = python_free_threaded(*api_) ? "free-threaded python" : "frame layout of " + version + " is not known";
        return;
    }
    layout_ = *layout;
    hash_ = hash_for(python_minor(*api_));
    if (layout_agrees(*api_, layout_)) {
        mode_ = Mode::Raw;
    } else {
        why_ = "frame layout of " + version + " does not match the interpreter";
    }
}

/// Everything that distinguishes this stack from others, the identity of the code objects included: an address may be
/// used again. 0: the thread runs no Python. On the path of every op. Addresses have fewer than 48 bits: two that are
/// rotated against each other differ in one word.
template <class Layout>
uint64_t PythonStacks::hash_frames(const Layout& layout, const void* thread) const noexcept {
    const void* frame = layout.pointer(thread, layout.at.thread_frame);
    if (layout.at.cframe_frame >= 0 && frame) frame = layout.pointer(frame, layout.at.cframe_frame);
    if (!frame) return 0;
    const uintptr_t module_low = module_low_.load(std::memory_order_relaxed);
    const uintptr_t module_span = module_span_.load(std::memory_order_relaxed);
    uint64_t hash = 0x9e3779b97f4a7c15u;
    for (int depth = 0; frame && depth < kMaxDepth; frame = layout.pointer(frame, layout.at.previous)) {
        if (layout.at.owner >= 0 && read_at<char>(frame, layout.at.owner) >= kOwnedByInterpreter) continue;
        ++depth;
        const void* code = layout.pointer(frame, layout.at.code);
        const uint64_t at = layout.at.kind == PythonLayout::Kind::Pointer
                                ? read_at<uint64_t>(frame, layout.at.instruction)
                                : read_at<uint32_t>(frame, layout.at.instruction);
        const uint64_t name = read_at<uint64_t>(code, layout.at.code_name);
        const uint64_t file = read_at<uint64_t>(code, layout.at.code_file);
        const uint64_t line = read_at<uint32_t>(code, layout.at.code_first_line);
        const uint64_t place = (reinterpret_cast<uint64_t>(code) ^ std::rotl(name, 32)) * 0xbf58476d1ce4e5b9u +
                               (at ^ std::rotl(file ^ line << 48, 32)) * 0x94d049bb133111ebu;
        hash = mix(hash, place);
        if (reinterpret_cast<uintptr_t>(code) - module_low <= module_span && is_module_code(code)) {
            const TrustedMemory memory;
            hash = mix(hash, reinterpret_cast<uint64_t>(FrameWalk(*api_, layout_, memory).self(frame)));
        }
    }
    hash ^= hash >> 32;
    return hash != 0 ? hash : 1;
}

/// Offsets that the compiler knows; these versions keep no tags in pointers.
template <PythonLayout kLayout>
struct KnownLayout {
    static constexpr PythonLayout at = kLayout;
    static const void* pointer(const void* base, int32_t offset) noexcept { return read_at<const void*>(base, offset); }
};

template <PythonLayout kLayout>
uint64_t PythonStacks::hash_known(const PythonStacks& stacks, const void* thread) noexcept {
    return stacks.hash_frames(KnownLayout<kLayout>{}, thread);
}

uint64_t PythonStacks::hash_any(const PythonStacks& stacks, const void* thread) noexcept {
    struct {
        const PythonLayout at;
        static const void* pointer(const void* base, int32_t offset) noexcept { return pointer_at(base, offset); }
    } const layout{stacks.layout_};
    return stacks.hash_frames(layout, thread);
}

PythonStacks::HashFrames PythonStacks::hash_for(int minor) noexcept {
    switch (minor) {
#define NUMSAN_PYTHON_LAYOUT(its, kind, ...) \
    case its:                                \
        return hash_known<PythonLayout{PythonLayout::Kind::kind, __VA_ARGS__}>;
#define NUMSAN_PYTHON_PUBLISHED(...)
#include "interpose/python/layout/layouts.def"
#undef NUMSAN_PYTHON_LAYOUT
#undef NUMSAN_PYTHON_PUBLISHED
        default: return hash_any;
    }
}

int PythonStacks::copy_frames(const void* thread, Frame (&frames)[kMaxDepth]) const noexcept {
    const TrustedMemory memory;
    const FrameWalk walk(*api_, layout_, memory);
    int count = 0;
    for (const void* frame = walk.complete(walk.first(thread)); frame && count < kMaxDepth;
         frame = walk.previous(frame)) {
        const void* code = walk.code(frame);
        frames[count++] = {code, walk.instruction(frame), is_module_code(code) ? walk.self(frame) : nullptr};
    }
    return count;
}

/// Needs no lock: the frame keeps its code object alive, and line tables do not change.
int PythonStacks::line_of(const Frame& frame) const noexcept {
    const TrustedMemory memory;
    const FrameWalk walk(*api_, layout_, memory);
    return api_->PyCode_Addr2Line(const_cast<void*>(frame.code), int(walk.byte_of(frame.code, frame.instruction)));
}

const PythonStacks::Code& PythonStacks::remember(Code code) {
    const bool in_torch = std::string_view(code.file).ends_with(kModuleFile);
    code.module_call = in_torch && (code.function == "Module._call_impl" || code.function == "_call_impl");
    code.module_entry =
        in_torch && (code.function == "Module._wrapped_call_impl" || code.function == "_wrapped_call_impl");
    codes_.push_back(std::move(code));
    const Code& kept = codes_.back();
    code_by_address_.emplace(kept.code, &kept);
    if (kept.module_call || kept.module_entry) {
        for (auto& slot : module_codes_) {
            const void* empty = nullptr;
            if (slot.compare_exchange_strong(empty, kept.code) || empty == kept.code) break;
        }
        const auto at = reinterpret_cast<uintptr_t>(kept.code);
        const uintptr_t low = module_low_.load();
        const uintptr_t high = low == ~uintptr_t(0) ? at : std::max(at, low + module_span_.load());
        module_low_.store(std::min(low, at));
        module_span_.store(high - std::min(low, at));
    }
    return kept;
}

const PythonStacks::Code& PythonStacks::code_of(const void* code) {
    const void* file = pointer_at(code, layout_.code_file);
    const void* name = pointer_at(code, layout_.code_name);
    const int32_t line = read_at<int32_t>(code, layout_.code_first_line);
    const auto [begin, end] = code_by_address_.equal_range(code);
    for (auto it = begin; it != end; ++it) {
        const Code& known = *it->second;
        if (known.file_object == file && known.name_object == name && known.first_line == line) return known;
    }
    const void* shown = layout_.code_qualname >= 0 ? pointer_at(code, layout_.code_qualname) : name;
    return remember({code, file, name, line, python_text(layout_, file), python_text(layout_, shown), false, false});
}

StackId PythonStacks::add(uint64_t hash, std::vector<StoredFrame> frames) {
    // One frame per module call: of _wrapped_call_impl and the _call_impl that it called, the inner one speaks.
    bool in_module = false;
    for (size_t i = 0; i < frames.size(); ++i) {
        const Code& code = *static_cast<const Code*>(frames[i].code);
        in_module |= code.module_call || code.module_entry;
        if (i == 0 || !code.module_entry) continue;
        StoredFrame& callee = frames[i - 1];
        if (!static_cast<const Code*>(callee.code)->module_call) continue;
        if (!callee.self) callee.self = frames[i].self;
        if (callee.self == frames[i].self) frames[i].self = nullptr;
    }
    return table_.insert(hash, std::move(frames), in_module);
}

StackId PythonStacks::add_raw(const void* thread, uint64_t hash) {
    Frame frames[kMaxDepth];
    std::vector<StoredFrame> stored;
    std::lock_guard lock(mutex_);
    int count = copy_frames(thread, frames);
    for (int i = 0; i < count; ++i) code_of(frames[i].code);
    const uint64_t again = hash_(*this, thread);  // another one when a module's code was met just now
    if (again != hash) {
        if (const StackId known = table_.find(again)) return known;
        count = copy_frames(thread, frames);
    }
    stored.reserve(size_t(count));
    for (int i = 0; i < count; ++i) {
        const Code& code = code_of(frames[i].code);
        const int line = line_of(frames[i]);
        stored.push_back({&code, frames[i].self, line > 0 ? line : code.first_line});
    }
    return add(again, std::move(stored));
}

StackId PythonStacks::capture() noexcept {
    try {
        if (mode_ == Mode::Raw) [[likely]] {
            if (!python_access().open()) [[unlikely]]
                return 0;
            const void* thread = api_->PyGILState_GetThisThreadState();
            const uint64_t hash = thread ? hash_(*this, thread) : 0;
            if (hash == 0) return 0;
            if (const StackId known = table_.find(hash)) return known;
            return table_.full() ? StackTable::kOverflow : add_raw(thread, hash);
        }
        return mode_ == Mode::Api ? capture_api() : 0;
    } catch (...) {
        return 0;  // out of memory
    }
}

std::vector<SourceFrame> PythonStacks::resolve(StackId id) const {
    std::vector<SourceFrame> result;
    for (const StoredFrame& frame : table_.frames(id)) {
        const Code& code = *static_cast<const Code*>(frame.code);
        result.push_back({code.file, code.function, frame.line, frame.self, false});
    }
    return result;
}

LiveNames PythonStacks::names(const TensorReader& reader) {
    if (mode_ == Mode::None) return {};
    const InsidePython inside;
    if (!inside || !python_usable(*api_)) return {};
    return live_names(*api_, mode_ == Mode::Raw ? &layout_ : nullptr, reader, on_own_thread);
}

}  // namespace numsan
