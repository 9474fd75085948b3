// How a thread's frames are walked by a layout, over memory that is read at once or asked for first.
#pragma once

#include "interpose/python/layout/layout.h"

namespace numsan {

/// Who a frame belongs to, in 3.11 and later.
inline constexpr char kOwnedByThread = 0;
inline constexpr char kOwnedByGenerator = 1;
inline constexpr char kOwnedByInterpreter = 3;  ///< and above: the interpreter's own frames, without Python code

/// The walk of the calling thread's frames from the innermost outwards. `Memory` has read<T>(base, offset); what it
/// answers with zeros ends the walk. Needs no lock: no other thread changes frames of a thread that is here. Those of
/// other threads may be read under the interpreter's lock.
template <class Memory>
class FrameWalk {
  public:
    FrameWalk(const PythonApi& api, const PythonLayout& layout, Memory& memory)
        : api_(api), layout_(layout), memory_(memory) {}

    /// A pointer member, without tag bits (pointer_at).
    const void* pointer(const void* base, int32_t offset) const noexcept {
        return reinterpret_cast<const void*>(memory_.template read<uintptr_t>(base, offset) & ~kTagBits);
    }

    /// The innermost frame of any kind.
    const void* first(const void* thread) const noexcept {
        const void* frame = pointer(thread, layout_.thread_frame);
        return layout_.cframe_frame >= 0 && frame ? pointer(frame, layout_.cframe_frame) : frame;
    }

    /// `frame`, or the next one outwards, that the public API shows; null where there is none.
    const void* complete(const void* frame) const noexcept {
        for (int skipped = 0; frame && skipped < kMaxSkipped; ++skipped, frame = pointer(frame, layout_.previous)) {
            if (is_complete(frame)) return frame;
        }
        return nullptr;
    }
    const void* previous(const void* frame) const noexcept { return complete(pointer(frame, layout_.previous)); }

    const void* code(const void* frame) const noexcept { return pointer(frame, layout_.code); }

    /// As layout.kind has it: a pointer, or an index.
    uintptr_t instruction(const void* frame) const noexcept {
        return layout_.kind == PythonLayout::Kind::Pointer
                   ? memory_.template read<uintptr_t>(frame, layout_.instruction)
                   : uintptr_t(memory_.template read<int32_t>(frame, layout_.instruction));
    }

    /// Where `instruction` of `code` lies, in bytes from the first one.
    int64_t byte_of(const void* code, uintptr_t instruction) const noexcept {
        return layout_.kind == PythonLayout::Kind::Pointer
                   ? int64_t(instruction - reinterpret_cast<uintptr_t>(code) - uintptr_t(layout_.code_bytes))
                   : int64_t(int32_t(instruction)) * 2;
    }

    /// What the slot at `offset` holds, null where it is not set; it lies in a cell when an inner function uses it.
    const void* variable(const void* frame, int32_t offset) const noexcept {
        const void* value = pointer(frame, offset);
        if (value && memory_.template read<const void*>(value, kObjectType) == api_.PyCell_Type)
            value = memory_.template read<const void*>(value, kCellContents);
        return value;
    }

    /// The first argument.
    const void* self(const void* frame) const noexcept { return variable(frame, layout_.locals); }

  private:
    static constexpr uintptr_t kTagBits = 7;
    static constexpr int kMaxSkipped = 64;  ///< each call between Python and C leaves one or two
    static constexpr int32_t kFirstTraceableBeforeBytes = 16;
    static constexpr int32_t kCellContents = 16;
    static constexpr int32_t kObjectType = 8;

    /// False for a frame that the public API does not show: still being set up, or not of Python code.
    bool is_complete(const void* frame) const noexcept {
        const char owner = layout_.owner >= 0 ? memory_.template read<char>(frame, layout_.owner) : kOwnedByGenerator;
        if (owner >= kOwnedByInterpreter) return false;
        const void* const its_code = code(frame);
        if (!its_code || memory_.template read<const void*>(its_code, kObjectType) != api_.PyCode_Type) return false;
        if (owner == kOwnedByGenerator) return true;
        const int64_t first =
            2 * int64_t(memory_.template read<int32_t>(its_code, layout_.code_bytes - kFirstTraceableBeforeBytes));
        return byte_of(its_code, instruction(frame)) >= first;
    }

    const PythonApi& api_;
    const PythonLayout& layout_;
    Memory& memory_;
};

}  // namespace numsan
