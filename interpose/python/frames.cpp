// Capture and interning of Python stacks; api_walk.cpp has what goes through the public API.
#include "interpose/python/frames.h"

#include <string_view>

#include "interpose/python/frame_walk.h"
#include "interpose/python/gate.h"
#include "interpose/python/layout_check.h"
#include "interpose/python/names.h"

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
    if (layout_agrees(*api_, layout_)) {
        mode_ = Mode::Raw;
    } else {
        why_ = "frame layout of " + version + " does not match the interpreter";
    }
}

/// Everything that tells this stack from others, the identity of the code objects included: an address may be used
/// again.
uint64_t PythonStacks::hash_frames(const void* thread) const noexcept {
    const PythonLayout layout = layout_;
    const void* const module_codes[] = {
        module_codes_[0].load(std::memory_order_relaxed), module_codes_[1].load(std::memory_order_relaxed),
        module_codes_[2].load(std::memory_order_relaxed), module_codes_[3].load(std::memory_order_relaxed)};
    const TrustedMemory memory;
    const FrameWalk walk(*api_, layout, memory);
    uint64_t hash = 0x9e3779b97f4a7c15u;
    const void* frame = walk.first(thread);
    for (int depth = 0; frame && depth < kMaxDepth; frame = pointer_at(frame, layout.previous)) {
        if (layout.owner >= 0 && read_at<char>(frame, layout.owner) >= kOwnedByInterpreter) continue;
        ++depth;
        const void* code = pointer_at(frame, layout.code);
        const uint64_t at = layout.kind == PythonLayout::Kind::Pointer ? read_at<uint64_t>(frame, layout.instruction)
                                                                       : read_at<uint32_t>(frame, layout.instruction);
        const uint64_t identity =
            (read_at<uint64_t>(code, layout.code_name) ^ read_at<uint32_t>(code, layout.code_first_line)) *
                0x9e3779b97f4a7c15u +
            read_at<uint64_t>(code, layout.code_file) * 0xc2b2ae3d27d4eb4fu;
        const uint64_t place = reinterpret_cast<uint64_t>(code) * 0xbf58476d1ce4e5b9u + at * 0x94d049bb133111ebu;
        hash = mix(hash, place ^ (identity >> 7));
        if (code == module_codes[0] || code == module_codes[1] || code == module_codes[2] || code == module_codes[3]) {
            hash = mix(hash, reinterpret_cast<uint64_t>(walk.self(frame)));
        }
    }
    return hash ^ hash >> 32;
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
    const uint64_t again = hash_frames(thread);  // another one when a module's code was met for the first time just now
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
            if (!python_gate().open()) [[unlikely]]
                return 0;
            const void* thread = api_->PyGILState_GetThisThreadState();
            const TrustedMemory memory;
            if (!thread || !FrameWalk(*api_, layout_, memory).first(thread)) return 0;
            const uint64_t hash = hash_frames(thread);
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

LiveNames PythonStacks::names(StorageOf storage_of) {
    if (mode_ == Mode::None) return {};
    const InsidePython inside;
    if (!inside || !python_usable(*api_)) return {};
    return live_names(*api_, storage_of, on_own_thread);
}

}  // namespace numsan
