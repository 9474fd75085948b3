#include "interpose/python/at_exit.h"

#include <dlfcn.h>

#include <initializer_list>

#include "interpose/python/gate.h"

namespace numsan {
namespace {

void (*g_last)(bool raised) = nullptr;

/// Python keeps what it has printed last of exceptions that nothing caught; what sys.exit() raises is none.
bool is_raised() {
    using GetObject = void* (*)(const char*);
    const auto get = reinterpret_cast<GetObject>(dlsym(RTLD_DEFAULT, "PySys_GetObject"));
    return get != nullptr && get("last_type") != nullptr;
}

void* run_last(void*, void*) {
    python_gate().close(*python_api());
    if (g_last != nullptr) g_last(is_raised());
    void* none = dlsym(RTLD_DEFAULT, "_Py_NoneStruct");
    python_api()->Py_IncRef(none);
    return none;
}

PythonMethod g_method = {"numsan_before_exit", run_last, kNoArguments, nullptr};

}  // namespace

bool call_before_python_ends(const PythonApi& api, void (*last)(bool raised)) {
    using Import = void* (*)(const char*);
    using CallMethod = void* (*)(void*, const char*, const char*, ...);
    const auto import = reinterpret_cast<Import>(dlsym(RTLD_DEFAULT, "PyImport_ImportModule"));
    const auto call_method = reinterpret_cast<CallMethod>(dlsym(RTLD_DEFAULT, "PyObject_CallMethod"));
    if (import == nullptr || call_method == nullptr) return false;
    g_last = last;
    const PythonLock lock(api);
    void* function = api.PyCFunction_NewEx(&g_method, nullptr, nullptr);
    void* module = import("atexit");
    void* result = function != nullptr && module != nullptr ? call_method(module, "register", "O", function) : nullptr;
    for (void* object : {function, module, result}) {
        if (object != nullptr) api.Py_DecRef(object);
    }
    if (result == nullptr) api.PyErr_Clear();
    return result != nullptr;
}

}  // namespace numsan
