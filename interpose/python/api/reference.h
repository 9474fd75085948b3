// Owned references and attributes through CPython's public API. The interpreter's lock is held for all of it.
#pragma once

#include <cstddef>
#include <string>
#include <utility>

#include "interpose/python/api/api.h"

namespace numsan {

/// A new reference, given up at the end of the scope.
class Reference {
  public:
    Reference(const PythonApi& api, void* object) : api_(api), object_(object) {}
    ~Reference() { api_.Py_DecRef(object_); }  // null is fine
    Reference(const Reference&) = delete;
    Reference& operator=(const Reference&) = delete;
    void* get() const { return object_; }
    /// The reference is the caller's.
    void* release() { return std::exchange(object_, nullptr); }
    void reset(void* object) {
        api_.Py_DecRef(object_);
        object_ = object;
    }

  private:
    const PythonApi& api_;
    void* object_;
};

/// Text of an attribute, by the public API. Clears errors.
inline std::string attribute(const PythonApi& api, void* object, const char* name) {
    const Reference value(api, api.PyObject_GetAttrString(object, name));
    ptrdiff_t size = 0;
    const char* text = value.get() ? api.PyUnicode_AsUTF8AndSize(value.get(), &size) : nullptr;
    if (!text) api.PyErr_Clear();
    return text ? std::string(text, size_t(size)) : std::string();
}

/// Qualified name where code objects have one (3.11), else the plain name.
inline std::string qualified_name(const PythonApi& api, void* code) {
    const std::string name = attribute(api, code, "co_qualname");
    return name.empty() ? attribute(api, code, "co_name") : name;
}

}  // namespace numsan
