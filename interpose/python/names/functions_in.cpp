#include "interpose/python/names/functions_in.h"

#include <string>

#include "interpose/python/api/reference.h"
#include "interpose/python/layout/layout.h"
#include "interpose/python/names/variables.h"

namespace numsan {
namespace {

constexpr int kMostNested = 4;      ///< classes in classes
constexpr int32_t kObjectType = 8;  ///< ob_type: struct _object, 3.9 to 3.14

/// Of a module's or a class's dictionary; the lock is held without a break, so that it does not change meanwhile.
void add(const PythonApi& api, void* dict, int depth, void* found) {
    ptrdiff_t at = 0;
    for (void *key = nullptr, *value = nullptr; api.PyDict_Next(dict, &at, &key, &value);) {
        void* const type = const_cast<void*>(read_at<const void*>(value, kObjectType));
        if (type == api.PyFunction_Type) {
            if (api.PyList_Append(found, value) != 0) return;
        } else if (depth < kMostNested && api.PyType_IsSubtype(type, api.PyType_Type) != 0) {
            const Reference proxy(api, api.PyObject_GetAttrString(value, "__dict__"));
            const Reference own(api, proxy.get() != nullptr ? api.PyDict_New() : nullptr);
            if (own.get() != nullptr && api.PyDict_Update(own.get(), proxy.get()) == 0)
                add(api, own.get(), depth + 1, found);
            api.PyErr_Clear();
        }
    }
}

void* functions_in(void*, void* arguments) {
    const PythonApi& api = *python_api();
    Reference found(api, api.PyList_New(0));
    const std::string file = text_of(api, api.PyTuple_GetItem(arguments, 0));
    void* const modules = api.PyImport_GetModuleDict();
    if (found.get() == nullptr || modules == nullptr) return nullptr;
    ptrdiff_t at = 0;
    for (void *key = nullptr, *module = nullptr; api.PyDict_Next(modules, &at, &key, &module);) {
        void* const globals = api.PyModule_GetDict(module);
        api.PyErr_Clear();  // sys.modules may hold what is no module
        void* const its = globals != nullptr ? api.PyDict_GetItemString(globals, "__file__") : nullptr;
        if (its != nullptr && text_of(api, its) == file) add(api, globals, 0, found.get());
    }
    return found.release();
}

PythonMethod g_method = {"functions_in", functions_in, kArgumentTuple, nullptr};

}  // namespace

void* functions_in_function(const PythonApi& api) { return api.PyCFunction_NewEx(&g_method, nullptr, nullptr); }

}  // namespace numsan
