// Compares what a layout reads with what the interpreter says, over memory that is asked for first.
#include "interpose/python/layout/layout_check.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <memory>

#include "interpose/python/api/gate.h"
#include "interpose/python/api/own_thread.h"
#include "interpose/python/api/reference.h"
#include "interpose/python/api/run_script.h"
#include "interpose/python/layout/frame_walk.h"
#include "interpose/python/scripts.h"

namespace numsan {
namespace {

/// Memory that may not be there. The kernel copies it for us, and says EFAULT instead of killing the process; a pipe
/// does that in containers, too, which may forbid process_vm_readv().
class ProbedMemory {
  public:
    ProbedMemory() {
        if (pipe2(pipe_.data(), O_CLOEXEC | O_NONBLOCK) != 0) pipe_ = {-1, -1};
    }
    ~ProbedMemory() {
        for (const int end : pipe_) {
            if (end >= 0) close(end);
        }
    }
    ProbedMemory(const ProbedMemory&) = delete;
    ProbedMemory& operator=(const ProbedMemory&) = delete;

    /// Zero where there is no memory.
    template <class T>
    T read(const void* base, int32_t offset) noexcept {
        T value{};
        return copy(static_cast<const char*>(base) + offset, &value, sizeof value) ? value : T{};
    }

    bool is_there(const void* at, size_t bytes) noexcept {
        std::array<char, 256> unused;
        for (const char* from = static_cast<const char*>(at); bytes > 0;) {
            const size_t piece = std::min(bytes, unused.size());
            if (!copy(from, unused.data(), piece)) return false;
            from += piece;
            bytes -= piece;
        }
        return true;
    }

  private:
    /// Not more than a pipe takes at once (PIPE_BUF).
    bool copy(const void* from, void* to, size_t bytes) noexcept {
        const auto uninterrupted = [bytes](auto call) {
            ssize_t done;
            do done = call();
            while (done < 0 && errno == EINTR);
            return done == ssize_t(bytes);
        };
        return uninterrupted([&] { return write(pipe_[1], from, bytes); }) &&
               uninterrupted([&] { return ::read(pipe_[0], to, bytes); });
    }

    std::array<int, 2> pipe_{-1, -1};
};

class LayoutCheck {
  public:
    LayoutCheck(const PythonApi& api, const PythonLayout& layout)
        : api_(api), layout_(layout), walk_(api, layout, memory_) {}

    /// Whether what is read of the calling thread's frames is what the public API shows. The thread holds the lock.
    bool frames_agree() {
        void* innermost = api_.PyEval_GetFrame();
        api_.Py_IncRef(innermost);
        Reference shown(api_, innermost);
        const void* frame = innermost_frame();
        for (int depth = 0; depth < kDepth && (frame || shown.get()); ++depth) {
            if (!frame || !shown.get() || !frame_agrees(frame, shown.get())) return false;
            frame = walk_.previous(frame);
            shown.reset(api_.PyFrame_GetBack(shown.get()));
        }
        return true;
    }

    /// As above, where the first argument and the owner of the innermost frame are known.
    bool frames_agree(const void* self, char owner) {
        if (!frames_agree()) return false;
        const void* frame = innermost_frame();
        return frame && walk_.self(frame) == self &&
               (layout_.owner < 0 || memory_.read<char>(frame, layout_.owner) == owner);
    }

  private:
    static constexpr int kDepth = 64;

    const void* innermost_frame() {
        const void* thread = api_.PyGILState_GetThisThreadState();
        return thread ? walk_.complete(walk_.first(thread)) : nullptr;
    }

    bool frame_agrees(const void* frame, void* shown) {
        const Reference code(api_, api_.PyFrame_GetCode(shown));
        if (code.get() != walk_.code(frame)) return false;
        const uintptr_t instruction = walk_.instruction(frame);
        return walk_.byte_of(code.get(), instruction) == number(shown, "f_lasti") &&
               memory_.read<int32_t>(code.get(), layout_.code_first_line) == number(code.get(), "co_firstlineno") &&
               text_agrees(code.get(), layout_.code_file, "co_filename") &&
               text_agrees(code.get(), layout_.code_name, "co_name") &&
               text_agrees(code.get(), layout_.code_qualname, "co_qualname");
    }

    /// A member that is a str: the very object, and its text. One that is not there must not be an attribute either.
    bool text_agrees(void* code, int32_t offset, const char* name) {
        const Reference object(api_, api_.PyObject_GetAttrString(code, name));
        if (!object.get()) api_.PyErr_Clear();
        if (offset < 0 || !object.get()) return offset < 0 && !object.get();
        if (walk_.pointer(code, offset) != object.get()) return false;
        const TrustedMemory header;  // of a str
        const TextPlace at = text_place(layout_, object.get(), header);
        return memory_.is_there(static_cast<const char*>(object.get()) + at.offset, size_t(at.length) * at.width) &&
               python_text(layout_, object.get()) == attribute(api_, code, name);
    }

    /// An attribute that is a number; -2, which no member here can be, when it is not.
    int64_t number(void* object, const char* name) {
        const Reference value(api_, api_.PyObject_GetAttrString(object, name));
        const int64_t found = value.get() ? api_.PyLong_AsLong(value.get()) : -2;
        api_.PyErr_Clear();
        return found;
    }

    const PythonApi& api_;
    const PythonLayout& layout_;
    ProbedMemory memory_;
    FrameWalk<ProbedMemory> walk_;
};

/// One run of scripts/rehearsal.py, and what the functions that it calls need.
struct Rehearsal {
    const PythonApi& api;
    LayoutCheck check;
    bool cells_are_arguments;
    void* globals = nullptr;
    int agreed = 0;
    int called = 0;
};
thread_local Rehearsal* t_rehearsal = nullptr;

void* compare_caller(char owner) {
    Rehearsal& now = *t_rehearsal;
    const void* subject = now.api.PyDict_GetItemString(now.globals, "subject");  // borrowed
    ++now.called;
    now.agreed += now.check.frames_agree(subject, owner) ? 1 : 0;
    return now.api.PyDict_New();  // any object
}

PythonMethod g_check = {"check", [](void*, void*) { return compare_caller(kOwnedByThread); }, kNoArguments, nullptr};
PythonMethod g_check_in_generator = {
    "check_in_generator", [](void*, void*) { return compare_caller(kOwnedByGenerator); }, kNoArguments, nullptr};

void rehearse(Rehearsal& rehearsal) {
    const PythonApi& api = rehearsal.api;
    const Reference globals(api, api.PyDict_New());
    const Reference check(api, api.PyCFunction_NewEx(&g_check, nullptr, nullptr));
    const Reference check_in_generator(api, api.PyCFunction_NewEx(&g_check_in_generator, nullptr, nullptr));
    const Reference cells(api, api.PyBool_FromLong(rehearsal.cells_are_arguments));
    const auto define = [&](const char* name, const Reference& value) {
        return value.get() && api.PyDict_SetItemString(globals.get(), name, value.get()) == 0;
    };
    if (!globals.get() || !define("check", check) || !define("cells_are_arguments", cells) ||
        !define("check_in_generator", check_in_generator))
        return;
    rehearsal.globals = globals.get();
    t_rehearsal = &rehearsal;
    run_script(api, kRehearsalScript, globals.get());
    t_rehearsal = nullptr;
}

}  // namespace

bool layout_agrees(const PythonApi& api, const PythonLayout& layout) {
    const bool pointers = layout.kind == PythonLayout::Kind::Pointer;
    // Among the values behind the locals a byte may look like an owner by chance.
    if (pointers != (layout.owner >= 0) || layout.owner >= layout.locals) return false;
    const InsidePython inside;
    if (!inside) return false;
    {
        const PythonLock lock(api);
        if (!LayoutCheck(api, layout).frames_agree()) return false;
    }
    // Before 3.11 a first argument that an inner function uses is moved out of the locals.
    const auto owned = std::make_shared<PythonLayout>(layout);
    const std::shared_ptr<Rehearsal> rehearsal(new Rehearsal{api, LayoutCheck(api, *owned), pointers});
    const bool done = on_own_python_thread(api, [owned, rehearsal] { rehearse(*rehearsal); });
    return done && rehearsal->agreed == rehearsal->called && rehearsal->called == (pointers ? 3 : 2);
}

}  // namespace numsan
