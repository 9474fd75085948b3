#include "interpose/python/names/variables.h"

#include <sched.h>

#include <algorithm>
#include <iterator>
#include <utility>

#include "interpose/python/api/reference.h"
#include "interpose/python/layout/frame_walk.h"

namespace numsan {
namespace {

constexpr int32_t kSlotBytes = 8;
constexpr int32_t kInterpretersFrame = 24;  ///< f_frame: struct _frame in pycore_frame.h, 3.11 to 3.14
constexpr long kOptimized = 1;              ///< CO_OPTIMIZED: the code of a function
constexpr int kMaxFrames = 512;             ///< of one thread
constexpr int kMostTurns = 10000;
constexpr int kNamesOfSlots = 11;  ///< first version in which code says the names of slots

/// Where `frame`, an object, keeps its slots; null where it is not laid out like that.
const void* laid_out(const PythonLayout& layout, void* frame, void* code) {
    const void* at = layout.kind == PythonLayout::Kind::Object ? frame : pointer_at(frame, kInterpretersFrame);
    return at != nullptr && pointer_at(at, layout.code) == code ? at : nullptr;
}

/// The names of a frame's slots, in their order.
std::vector<std::string> slots_of(const PythonApi& api, void* code) {
    std::vector<std::string> names;
    if (python_minor(api) >= kNamesOfSlots) {
        while (true) {
            const Reference name(api, api.PyObject_CallMethod(code, "_varname_from_oparg", "i", int(names.size())));
            if (name.get() == nullptr) break;
            names.push_back(text_of(api, name.get()));
        }
        api.PyErr_Clear();
        return names;
    }
    for (const char* part : {"co_varnames", "co_cellvars", "co_freevars"}) {
        const Reference tuple(api, api.PyObject_GetAttrString(code, part));
        if (tuple.get() == nullptr) break;
        for (ptrdiff_t i = 0, size = api.PyTuple_Size(tuple.get()); i < size; ++i)
            names.push_back(text_of(api, api.PyTuple_GetItem(tuple.get(), i)));
    }
    api.PyErr_Clear();
    return names;
}

Scope locals(const PythonApi& api, const PythonLayout& layout, const void* at, void* code) {
    const TrustedMemory memory;
    const FrameWalk walk(api, layout, memory);
    const std::vector<std::string> names = slots_of(api, code);
    Scope scope;
    for (size_t i = 0; i < names.size(); ++i) {
        void* const value = const_cast<void*>(walk.variable(at, layout.locals + int32_t(i) * kSlotBytes));
        if (value != nullptr) scope.push_back({names[i], value});
    }
    return scope;
}

/// Whether it is a running function of the script.
bool is_of_script(const PythonApi& api, void* frame, void* code, void* main_globals) {
    const Reference globals(api, api.PyObject_GetAttrString(frame, "f_globals"));
    const Reference flags(api, api.PyObject_GetAttrString(code, "co_flags"));
    const bool optimized = flags.get() != nullptr && (api.PyLong_AsLong(flags.get()) & kOptimized) != 0;
    api.PyErr_Clear();
    return optimized && globals.get() == main_globals && main_globals != nullptr;
}

void add_frames(const PythonApi& api, const PythonLayout& layout, void* thread, void* main_globals, Variables& found) {
    Reference frame(api, api.PyThreadState_GetFrame(thread));
    for (int depth = 0; frame.get() != nullptr && depth < kMaxFrames; ++depth) {
        const Reference code(api, api.PyFrame_GetCode(frame.get()));
        if (const void* at = laid_out(layout, frame.get(), code.get()); at != nullptr) {
            Scope scope = locals(api, layout, at, code.get());
            if (is_of_script(api, frame.get(), code.get(), main_globals)) {
                found.script.push_back(std::move(scope));
            } else {
                for (const Variable& variable : scope) found.elsewhere.push_back(variable.value);
            }
        }
        frame.reset(api.PyFrame_GetBack(frame.get()));
    }
}

/// A thread makes its state without the interpreter's lock, and 3.11 lists one before it has its parts: what is behind
/// it and its frame may be asked for once it points to its frames. That takes no longer than a processor's turn.
bool is_made(const PythonLayout& layout, const void* thread) {
    if (layout.cframe_frame < 0) return true;
    const auto* frames = reinterpret_cast<const uintptr_t*>(static_cast<const char*>(thread) + layout.thread_frame);
    for (int turn = 0; turn < kMostTurns; ++turn, sched_yield()) {
        if (__atomic_load_n(frames, __ATOMIC_ACQUIRE) != 0) return true;
    }
    return false;
}

/// A running method calls its own object so, whatever it is called elsewhere.
void put_selfs_last(std::vector<Scope>& script) {
    Scope selfs;
    for (Scope& scope : script) {
        const auto first = std::stable_partition(scope.begin(), scope.end(),
                                                 [](const Variable& variable) { return variable.name != "self"; });
        selfs.insert(selfs.end(), std::make_move_iterator(first), std::make_move_iterator(scope.end()));
        scope.erase(first, scope.end());
    }
    script.push_back(std::move(selfs));
}

}  // namespace

std::string text_of(const PythonApi& api, void* str) {
    ptrdiff_t size = 0;
    const char* text = api.PyUnicode_AsUTF8AndSize(str, &size);
    std::string copy;
    if (text != nullptr) {
        copy.assign(text, size_t(size));
    } else {  // a lone surrogate, or no str
        api.PyErr_Clear();
        const Reference bytes(api, api.PyUnicode_AsEncodedString(str, "utf-8", "replace"));
        const char* replaced = bytes.get() != nullptr ? api.PyBytes_AsString(bytes.get()) : nullptr;
        if (replaced != nullptr) copy = replaced;
        api.PyErr_Clear();
    }
    std::replace(copy.begin(), copy.end(), '\n', ' ');
    return copy;
}

void* imported(const PythonApi& api, const char* name) {
    void* const modules = api.PyImport_GetModuleDict();
    return modules != nullptr ? api.PyDict_GetItemString(modules, name) : nullptr;
}

void* global_of(const PythonApi& api, const char* module, const char* name) {
    void* const found = imported(api, module);
    void* const globals = found != nullptr ? api.PyModule_GetDict(found) : nullptr;
    api.PyErr_Clear();  // sys.modules may hold what is no module
    return globals != nullptr ? api.PyDict_GetItemString(globals, name) : nullptr;
}

Variables live_variables(const PythonApi& api, const PythonLayout* layout) {
    Variables found;
    void* const main = imported(api, "__main__");
    void* const globals = main != nullptr ? api.PyModule_GetDict(main) : nullptr;
    api.PyErr_Clear();
    Scope& script = found.script.emplace_back();
    ptrdiff_t at = 0;
    for (void *key = nullptr, *value = nullptr; globals != nullptr && api.PyDict_Next(globals, &at, &key, &value);)
        script.push_back({text_of(api, key), value});
    if (layout == nullptr) return found;
    void* const interpreter = api.PyInterpreterState_Main();
    for (void* thread = api.PyInterpreterState_ThreadHead(interpreter); thread != nullptr;
         thread = api.PyThreadState_Next(thread)) {
        if (!is_made(*layout, thread)) break;  // what it hides is not known
        add_frames(api, *layout, thread, globals, found);
    }
    put_selfs_last(found.script);
    return found;
}

}  // namespace numsan
