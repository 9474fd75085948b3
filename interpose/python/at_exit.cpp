#include "interpose/python/at_exit.h"

#include <dlfcn.h>

#include <initializer_list>

#include "interpose/python/gate.h"

namespace numsan {
namespace {

void (*g_last)() = nullptr;

/// CPython's PyMethodDef: part of the stable ABI.
struct MethodDef {
    const char* name;
    void* (*method)(void*, void*);
    int flags;
    const char* doc;
};
constexpr int kNoArguments = 0x0004;  // METH_NOARGS

void* run_last(void*, void*) {
    python_gate().close(*python_api());
    if (g_last != nullptr) g_last();
    void* none = dlsym(RTLD_DEFAULT, "_Py_NoneStruct");
    python_api()->Py_IncRef(none);
    return none;
}

MethodDef g_method = {"numsan_before_exit", run_last, kNoArguments, nullptr};

}  // namespace

bool call_before_python_ends(const PythonApi& api, void (*last)()) {
    using NewFunction = void* (*)(void*, void*, void*);
    using Import = void* (*)(const char*);
    using CallMethod = void* (*)(void*, const char*, const char*, ...);
    const auto new_function = reinterpret_cast<NewFunction>(dlsym(RTLD_DEFAULT, "PyCFunction_NewEx"));
    const auto import = reinterpret_cast<Import>(dlsym(RTLD_DEFAULT, "PyImport_ImportModule"));
    const auto call_method = reinterpret_cast<CallMethod>(dlsym(RTLD_DEFAULT, "PyObject_CallMethod"));
    if (new_function == nullptr || import == nullptr || call_method == nullptr) return false;
    g_last = last;
    const PythonLock lock(api);
    void* function = new_function(&g_method, nullptr, nullptr);
    void* module = import("atexit");
    void* result = function != nullptr && module != nullptr ? call_method(module, "register", "O", function) : nullptr;
    for (void* object : {function, module, result}) {
        if (object != nullptr) api.Py_DecRef(object);
    }
    if (result == nullptr) api.PyErr_Clear();
    return result != nullptr;
}

}  // namespace numsan
