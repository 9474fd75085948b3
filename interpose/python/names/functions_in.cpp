#include "interpose/python/names/functions_in.h"

#include <string>

#include "interpose/python/api/reference.h"
#include "interpose/python/layout/layout.h"
#include "interpose/python/names/variables.h"

namespace numsan {
namespace {

constexpr int kMostNested = 4;      ///< classes in classes
constexpr int32_t kObjectType = 8;  ///< ob_type: struct _object, 3.9 to 3.14

/// A copy, the caller's: what a collector runs while it is read may change the mapping itself. Null: there is none.
void* copy_of(const PythonApi& api, void* mapping) {
    Reference copy(api, mapping != nullptr ? api.PyDict_New() : nullptr);
    if (copy.get() != nullptr && api.PyDict_Update(copy.get(), mapping) != 0) copy.reset(nullptr);
    api.PyErr_Clear();
    return copy.release();
}

/// Of a module's or a class's dictionary.
void add(const PythonApi& api, void* mapping, int depth, void* found) {
    const Reference dict(api, copy_of(api, mapping));
    ptrdiff_t at = 0;
    for (void *key = nullptr, *value = nullptr; dict.get() && api.PyDict_Next(dict.get(), &at, &key, &value);) {
        void* const type = const_cast<void*>(read_at<const void*>(value, kObjectType));
        if (type == api.PyFunction_Type) {
            if (api.PyList_Append(found, value) != 0) return;
        } else if (depth < kMostNested && api.PyType_IsSubtype(type, api.PyType_Type) != 0) {
            // asked of `type`: a metaclass may have an answer of its own, which is the program's to run
            const Reference own(api,
                                api.PyObject_CallMethod(api.PyType_Type, "__getattribute__", "Os", value, "__dict__"));
            api.PyErr_Clear();
            add(api, own.get(), depth + 1, found);
        }
    }
}

void* functions_in(void*, void* arguments) {
    const PythonApi& api = *python_api();
    Reference found(api, api.PyList_New(0));
    const std::string file = text_of(api, api.PyTuple_GetItem(arguments, 0));
    const Reference modules(api, copy_of(api, api.PyImport_GetModuleDict()));
    if (found.get() == nullptr || modules.get() == nullptr) return nullptr;
    ptrdiff_t at = 0;
    for (void *key = nullptr, *module = nullptr; api.PyDict_Next(modules.get(), &at, &key, &module);) {
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
