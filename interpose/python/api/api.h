// The part of the CPython API that is used, looked up at run time: no Python header, no link to libpython.
#pragma once

#include <cstddef>
#include <type_traits>

namespace numsan {

struct PythonApi {
// NOLINTBEGIN(bugprone-macro-parentheses): members' names have none, and parameters their own
#define NUMSAN_PYTHON(name, result, parameters) std::add_pointer_t<result parameters> name;
#define NUMSAN_PYTHON_OBJECT(name) void* name;
// NOLINTEND(bugprone-macro-parentheses)
#include "interpose/python/api/api.def"
#undef NUMSAN_PYTHON
#undef NUMSAN_PYTHON_OBJECT
    // May be null.
    int (*is_finalizing)(void);
    void* (*PyFrame_GetVarString)(void*, const char*);  ///< 3.12
    int (*PyGC_Disable)(void);                          ///< 3.10
    int (*PyGC_Enable)(void);                           ///< 3.10
    void* (*current_thread)(void);  ///< the state of the thread that holds the interpreter's lock, or this one's
    const void* runtime;            ///< _PyRuntime; it starts with the debug offsets in 3.13 and later
};

/// CPython's PyMethodDef: part of the stable ABI.
struct PythonMethod {
    const char* name;
    void* (*call)(void* self, void* arguments);
    int flags;
    const char* doc;
};
inline constexpr int kArgumentTuple = 0x0001;  ///< METH_VARARGS
inline constexpr int kNoArguments = 0x0004;    ///< METH_NOARGS

/// The interpreter of this process, or null when there is none (or one older than 3.9). Looked up once it is there.
/// [MT]
const PythonApi* python_api();

/// True while Python code may be run: initialised and not on its way out. [MT]
bool python_usable(const PythonApi& api);

/// Minor version of Python 3; 0 for anything else. [MT]
int python_minor(const PythonApi& api);

/// True for a build without the interpreter's lock. [MT]
bool python_free_threaded(const PythonApi& api);

/// Whether the calling thread holds the interpreter's lock. [MT]
bool holds_python_lock(const PythonApi& api);

/// No collection of garbage begins while this lives. The caller holds the interpreter's lock without a break meanwhile,
/// so nobody can see that the collector is off.
class WithoutCollection {
  public:
    explicit WithoutCollection(const PythonApi& api)
        : api_(api), was_on_(api.PyGC_Disable != nullptr && api.PyGC_Disable() != 0) {}
    ~WithoutCollection() {
        if (was_on_ && api_.PyGC_Enable != nullptr) api_.PyGC_Enable();
    }
    WithoutCollection(const WithoutCollection&) = delete;
    WithoutCollection& operator=(const WithoutCollection&) = delete;

  private:
    const PythonApi& api_;
    const bool was_on_;
};

/// Around a fork, taken last: no PythonLock makes a state for its thread meanwhile.
void lock_thread_states();
void unlock_thread_states();

/// Holds the interpreter's lock and keeps the error indicator as it was. The thread may hold the lock already.
class PythonLock {
  public:
    explicit PythonLock(const PythonApi& api);
    ~PythonLock();
    PythonLock(const PythonLock&) = delete;
    PythonLock& operator=(const PythonLock&) = delete;

  private:
    const PythonApi& api_;
    void* made_ = nullptr;  ///< the thread's state, if it had none
    int state_ = 0;
    void* error_[3];
};

}  // namespace numsan
