// Capture and interning of Python stacks; api_walk.cpp has what goes through the public API.
#include "interpose/python/frames.h"

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <iterator>
#include <string_view>
#include <utility>

#include "interpose/python/api/gate.h"
#include "interpose/python/layout/frame_walk.h"
#include "interpose/python/layout/layout_check.h"
#include "interpose/python/names/kept_sources.h"
#include "interpose/python/names/live_names.h"

namespace numsan {
namespace {

constexpr std::string_view kModuleFile = "torch/nn/modules/module.py";

constexpr size_t kFewStacks = 16;  // a list of them is not worth a look

using FreeCode = void (*)(void* code);
FreeCode g_free_code = nullptr;  ///< what the type of code objects had, before it was watched
std::atomic<PythonStacks*> g_watching{nullptr};

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

PythonStacks::Code& PythonStacks::remember(Code code) {
    const bool in_torch = std::string_view(code.file).ends_with(kModuleFile);
    code.module_call = in_torch && (code.function == "Module._call_impl" || code.function == "_call_impl");
    code.module_entry =
        in_torch && (code.function == "Module._wrapped_call_impl" || code.function == "_wrapped_call_impl");
    codes_.push_back(std::move(code));
    Code& kept = codes_.back();
    kept.self = std::prev(codes_.end());
    code_by_address_.emplace(kept.code, &kept);
    if (kept.module_call || kept.module_entry) {
        for (auto& slot : module_codes_) {
            const void* empty = nullptr;
            if (!slot.compare_exchange_strong(empty, kept.code) && empty != kept.code) continue;
            ++kept.uses;  // known for good
            break;
        }
        const auto at = reinterpret_cast<uintptr_t>(kept.code);
        const uintptr_t low = module_low_.load();
        const uintptr_t high = low == ~uintptr_t(0) ? at : std::max(at, low + module_span_.load());
        module_low_.store(std::min(low, at));
        module_span_.store(high - std::min(low, at));
    }
    return kept;
}

/// Under the mutex, as the following.
void PythonStacks::forget_if_unused(Code& code) noexcept {
    if (code.uses > 0) return;
    const auto [begin, end] = code_by_address_.equal_range(code.code);
    const auto known = std::find_if(begin, end, [&](const auto& one) { return one.second == &code; });
    if (known != end) code_by_address_.erase(known);
    if (mode_ == Mode::Api)
        unneeded_.splice(unneeded_.end(), codes_, code.self);
    else
        codes_.erase(code.self);
}

/// Of a stack that gives way, or was not added after all.
void PythonStacks::forget_frames(std::span<const StoredFrame> frames) noexcept {
    for (const StoredFrame& frame : frames) {
        Code& code = code_in(frame);
        --code.uses;
        forget_if_unused(code);
    }
}

/// Those that were forgotten by the table.
void PythonStacks::forget_stacks(Code& code) const {
    std::erase_if(code.stacks, [&](StackId id) { return !table_.holds(id); });
}

PythonStacks::Code* PythonStacks::known_code(const void* code) const noexcept {
    const auto [begin, end] = code_by_address_.equal_range(code);
    if (mode_ == Mode::Api) return begin != end ? begin->second : nullptr;
    const void* file = pointer_at(code, layout_.code_file);
    const void* name = pointer_at(code, layout_.code_name);
    const auto line = read_at<int32_t>(code, layout_.code_first_line);
    const auto is_it = [&](const auto& one) {
        const Code& known = *one.second;
        return known.file_object == file && known.name_object == name && known.first_line == line;
    };
    const auto known = std::find_if(begin, end, is_it);
    return known != end ? known->second : nullptr;
}

PythonStacks::Code& PythonStacks::code_of(const void* code) {
    if (Code* known = known_code(code)) return *known;
    const void* file = pointer_at(code, layout_.code_file);
    const void* name = pointer_at(code, layout_.code_name);
    const void* shown = layout_.code_qualname >= 0 ? pointer_at(code, layout_.code_qualname) : name;
    Code made;
    made.code = code;
    made.file_object = file;
    made.name_object = name;
    made.first_line = read_at<int32_t>(code, layout_.code_first_line);
    made.file = python_text(layout_, file);
    made.function = python_text(layout_, shown);
    return remember(std::move(made));
}

StackId PythonStacks::add(uint64_t hash, std::vector<StoredFrame> frames) {
    // One frame per module call: of _wrapped_call_impl and the _call_impl that it called, the inner one speaks.
    bool in_module = false;
    for (size_t i = 0; i < frames.size(); ++i) {
        const Code& code = code_in(frames[i]);
        in_module |= code.module_call || code.module_entry;
        if (i == 0 || !code.module_entry) continue;
        StoredFrame& callee = frames[i - 1];
        if (!code_in(callee).module_call) continue;
        if (!callee.self) callee.self = frames[i].self;
        if (callee.self == frames[i].self) frames[i].self = nullptr;
    }
    const std::vector<StoredFrame> ours = frames;
    for (const StoredFrame& frame : ours) ++code_in(frame).uses;  // before others give way
    try {
        const StackTable::Inserted inserted = table_.insert(hash, std::move(frames), in_module);
        if (!inserted.added) forget_frames(ours);
        if (inserted.added && mode_ == Mode::Raw) note_stack(inserted.id, ours);
        return inserted.id;
    } catch (...) {
        forget_frames(ours);
        throw;
    }
}

/// Where a code is gone its stacks are found by it.
void PythonStacks::note_stack(StackId id, const std::vector<StoredFrame>& frames) noexcept {
    try {
        for (const StoredFrame& frame : frames) {
            Code& code = code_in(frame);
            if (code.stacks.size() > 2 * size_t(code.uses) + kFewStacks) forget_stacks(code);
            if (code.stacks.empty() || code.stacks.back() != id) code.stacks.push_back(id);
        }
    } catch (...) {
        table_.retire(id);  // no memory to find it by
    }
}

StackId PythonStacks::add_raw(const void* thread, uint64_t hash) {
    Frame frames[kMaxDepth];
    std::vector<StoredFrame> stored;
    const std::lock_guard<std::mutex> lock(mutex_);
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

void PythonStacks::code_dies(const void* code) noexcept {
    const std::lock_guard<std::mutex> lock(mutex_);
    const auto [begin, end] = code_by_address_.equal_range(code);
    for (auto it = begin; it != end; ++it) {
        Code& gone = *it->second;
        for (const StackId id : gone.stacks) table_.retire(id);
        gone.stacks.clear();
        if (gone.uses == 0) codes_.erase(gone.self);  // else its stacks still show it
    }
    if (begin == end) return;
    code_by_address_.erase(begin, end);
    for (auto& slot : module_codes_) {
        const void* dead = code;
        slot.compare_exchange_strong(dead, nullptr);
    }
}

/// In place of the type's own function, which it calls. The interpreter's lock is held.
void PythonStacks::code_is_freed(void* code) {
    if (PythonStacks* stacks = g_watching.load(std::memory_order_acquire)) stacks->code_dies(code);
    g_free_code(code);
}

void PythonStacks::watch_codes() {
    if (mode_ != Mode::Raw) return;
    const InsidePython inside;
    if (!inside || !python_usable(*api_)) return;
    const PythonLock lock(*api_);
    constexpr ptrdiff_t kTypeName = 24, kTypeDealloc = 48;  // of PyTypeObject; same in 3.10 to 3.14
    char* const type = static_cast<char*>(const_cast<void*>(api_->PyCode_Type));
    const char* const name = read_at<const char*>(type, kTypeName);
    if (name == nullptr || std::string_view(name) != "code") return;
    g_watching.store(this, std::memory_order_release);
    const std::atomic_ref<FreeCode> slot(*reinterpret_cast<FreeCode*>(type + kTypeDealloc));
    if (slot.load() == code_is_freed) return;
    g_free_code = slot.load();
    slot.store(code_is_freed);
}

size_t PythonStacks::known_codes() const {
    const std::lock_guard<std::mutex> lock(mutex_);
    return codes_.size();
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
            return add_raw(thread, hash);
        }
        return mode_ == Mode::Api ? capture_api() : 0;
    } catch (...) {
        return 0;  // out of memory
    }
}

std::vector<SourceFrame> PythonStacks::resolve(StackId id) const {
    std::vector<SourceFrame> result;
    const std::lock_guard<std::mutex> lock(mutex_);  // codes are forgotten with stacks
    for (const StoredFrame& frame : table_.frames(id)) {
        const Code& code = code_in(frame);
        result.push_back({code.file, code.function, frame.line, frame.self, false, false, code.code});
    }
    return result;
}

LiveNames PythonStacks::names(const TensorReader& reader) {
    if (mode_ == Mode::None) return {};
    const InsidePython inside;
    if (!inside || !python_usable(*api_)) return {};
    LiveNames found = live_names(*api_, mode_ == Mode::Raw ? &layout_ : nullptr, reader, on_own_thread);
    std::vector<SourceFrame> frames;
    for (const StackId stack : reader.sources_of) {
        for (SourceFrame& frame : resolve(stack)) frames.push_back(std::move(frame));
    }
    found.sources = kept_sources(*api_, std::move(frames), on_own_thread);
    return found;
}

}  // namespace numsan
