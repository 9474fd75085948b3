// Finds the CPython API among the symbols of the process.
#include "interpose/python/api/api.h"

#include <dlfcn.h>

#include <atomic>
#include <cstdlib>
#include <cstring>
#include <mutex>

namespace numsan {
namespace {

template <class Pointer>
bool find(const char* name, Pointer& pointer) {
    pointer = reinterpret_cast<Pointer>(dlsym(RTLD_DEFAULT, name));
    return pointer != nullptr;
}

const PythonApi* look_up() {
    auto* api = new PythonApi{};  // never freed: other threads read it until the process ends
    bool complete = true;
#define NUMSAN_PYTHON(name, result, parameters) complete = complete && find(#name, api->name);
#define NUMSAN_PYTHON_OBJECT(name) complete = complete && find(#name, api->name);
#include "interpose/python/api/api.def"
#undef NUMSAN_PYTHON
#undef NUMSAN_PYTHON_OBJECT
    if (!complete) {
        delete api;
        return nullptr;
    }
    if (!find("Py_IsFinalizing", api->is_finalizing)) find("_Py_IsFinalizing", api->is_finalizing);
    find("PyFrame_GetVarString", api->PyFrame_GetVarString);
    find("PyGC_Disable", api->PyGC_Disable);
    find("PyGC_Enable", api->PyGC_Enable);
    if (!find("PyThreadState_GetUnchecked", api->current_thread))
        find("_PyThreadState_UncheckedGet", api->current_thread);  // up to 3.12
    find("_PyRuntime", api->runtime);
    return api;
}

}  // namespace

const PythonApi* python_api() {
    static std::atomic<const PythonApi*> found{nullptr};
    if (const PythonApi* api = found.load(std::memory_order_acquire)) return api;
    const PythonApi* api = look_up();
    const PythonApi* expected = nullptr;
    if (api && !found.compare_exchange_strong(expected, api)) {
        delete api;
        api = expected;
    }
    return api;
}

bool python_usable(const PythonApi& api) {
    return api.Py_IsInitialized() && !(api.is_finalizing && api.is_finalizing());
}

int python_minor(const PythonApi& api) {
    const char* version = api.Py_GetVersion();
    return std::strncmp(version, "3.", 2) == 0 ? std::atoi(version + 2) : 0;
}

bool python_free_threaded(const PythonApi& api) {
    return std::strstr(api.Py_GetVersion(), "free-threading") != nullptr;
}

bool holds_python_lock(const PythonApi& api) {
    void* const own = api.PyGILState_GetThisThreadState();
    return own != nullptr && api.current_thread != nullptr && api.current_thread() == own;
}

namespace {

std::mutex g_making_state;

/// A state for the calling thread, which has none; null: there is no memory, or a later Python. Up to 3.11 Python adds
/// it to its list without the interpreter's lock, under one that it does not give back in a child which another thread
/// forks meanwhile: the fork waits. From 3.12 on the child makes that lock anew first, and from 3.13 on the thread that
/// forks has it before this mutex.
void* new_thread_state(const PythonApi& api) {
    constexpr int kLastThatNeedsIt = 11;
    if (python_minor(api) > kLastThatNeedsIt) return nullptr;
    const std::lock_guard<std::mutex> lock(g_making_state);
    return api.PyThreadState_New(api.PyInterpreterState_Main());
}

}  // namespace

void lock_thread_states() { g_making_state.lock(); }
void unlock_thread_states() { g_making_state.unlock(); }

PythonLock::PythonLock(const PythonApi& api) : api_(api) {
    if (api_.PyGILState_GetThisThreadState() == nullptr) made_ = new_thread_state(api_);
    if (made_ != nullptr) {
        api_.PyEval_RestoreThread(made_);
    } else {
        state_ = api_.PyGILState_Ensure();
    }
    api_.PyErr_Fetch(&error_[0], &error_[1], &error_[2]);
}

PythonLock::~PythonLock() {
    api_.PyErr_Clear();
    api_.PyErr_Restore(error_[0], error_[1], error_[2]);
    if (made_ == nullptr) {
        api_.PyGILState_Release(state_);
        return;
    }
    api_.PyThreadState_Clear(made_);
    api_.PyThreadState_DeleteCurrent();  // gives the lock back
}

}  // namespace numsan
