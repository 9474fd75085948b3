#include "interpose/python/at_exit.h"

#include <dlfcn.h>

#include "interpose/python/api/gate.h"
#include "interpose/python/api/reference.h"

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
    python_access().close(*python_api());
    if (g_last != nullptr) g_last(is_raised());
    python_access().close(
        *python_api());  // a look-up of that may have been given up, and its thread waits for the lock
    void* none = dlsym(RTLD_DEFAULT, "_Py_NoneStruct");
    python_api()->Py_IncRef(none);
    return none;
}

PythonMethod g_method = {"numsan_before_exit", run_last, kNoArguments, nullptr};

int g_status = 0;

/// Python calls it on the main thread, between two bytecodes.
int raise_exit(void*) {
    const PythonApi& api = *python_api();
    const Reference status(api, api.Py_BuildValue("i", g_status));
    api.PyErr_SetObject(*static_cast<void**>(api.PyExc_SystemExit), status.get());
    return -1;
}

}  // namespace

bool exit_python(const PythonApi& api, int status) {
    g_status = status;
    return api.Py_AddPendingCall(raise_exit, nullptr) == 0;
}

bool call_before_python_ends(const PythonApi& api, void (*last)(bool raised)) {
    g_last = last;
    const PythonLock lock(api);
    const Reference function(api, api.PyCFunction_NewEx(&g_method, nullptr, nullptr));
    const Reference module(api, api.PyImport_ImportModule("atexit"));
    if (function.get() == nullptr || module.get() == nullptr) return false;
    const Reference result(api, api.PyObject_CallMethod(module.get(), "register", "O", function.get()));
    return result.get() != nullptr;
}

}  // namespace numsan
