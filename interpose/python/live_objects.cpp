#include "interpose/python/live_objects.h"

#include "interpose/python/api/reference.h"

namespace numsan {
namespace {

constexpr int kOldestGeneration = 2;

/// Whether the type of `object` is in the tuple `types` or derives from one there. Runs no Python.
bool is_one_of(const PythonApi& api, void* object, void* types) {
    const Reference type(api, api.PyObject_Type(object));
    for (ptrdiff_t i = 0, size = api.PyTuple_Size(types); i < size; ++i) {
        if (api.PyType_IsSubtype(type.get(), api.PyTuple_GetItem(types, i)) != 0) return true;
    }
    return false;
}

/// Appends those of one generation to `found`. Between the first line and the last no other thread can run.
bool append(const PythonApi& api, void* collector, int generation, void* types, void* found) {
    const Reference all(api, api.PyObject_CallMethod(collector, "get_objects", "i", generation));
    if (all.get() == nullptr) return false;
    for (ptrdiff_t i = 0, size = api.PyList_Size(all.get()); i < size; ++i) {
        void* const object = api.PyList_GetItem(all.get(), i);  // borrowed
        if (is_one_of(api, object, types) && api.PyList_Append(found, object) != 0) return false;
    }
    return true;
}

void* alive(void* collector, void* types) {
    const PythonApi& api = *python_api();
    Reference found(api, api.PyList_New(0));
    if (found.get() == nullptr) return nullptr;
    if (!python_free_threaded(api)) {
        for (int generation = kOldestGeneration; generation >= 0; --generation) {
            if (!append(api, collector, generation, types, found.get())) return nullptr;
        }
    }
    return found.release();
}

PythonMethod g_method = {"alive", alive, kArgumentTuple, nullptr};

}  // namespace

void* live_objects_function(const PythonApi& api) {
    const Reference collector(api, api.PyImport_ImportModule("gc"));
    return collector.get() != nullptr ? api.PyCFunction_NewEx(&g_method, collector.get(), nullptr) : nullptr;
}

}  // namespace numsan
