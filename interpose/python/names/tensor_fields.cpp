#include "interpose/python/names/tensor_fields.h"

#include "interpose/python/layout/layout.h"
#include "interpose/python/names/variables.h"

namespace numsan {
namespace {

constexpr int kGetSlot = 54;        ///< Py_tp_descr_get in typeslots.h
constexpr int32_t kObjectType = 8;  ///< ob_type: struct _object, 3.9 to 3.14

/// torch._C.DisableTorchFunctionSubclass(), entered; null where it is not there.
void* enter_guard(const PythonApi& api) {
    void* const torch = imported(api, "torch._C");
    void* const guard =
        torch != nullptr ? api.PyObject_CallMethod(torch, "DisableTorchFunctionSubclass", nullptr) : nullptr;
    if (guard != nullptr) {
        const Reference entered(api, api.PyObject_CallMethod(guard, "__enter__", nullptr));
    }
    api.PyErr_Clear();
    return guard;
}

}  // namespace

TensorFields::TensorFields(const PythonApi& api, void* type)
    : api_(api),
      guard_(api, type != nullptr ? enter_guard(api) : nullptr),
      impl_(api, type, "_cdata"),
      is_leaf_(api, type, "is_leaf"),
      requires_grad_(api, type, "requires_grad") {}

TensorFields::~TensorFields() {
    if (guard_.get() == nullptr) return;
    const Reference none(api_, api_.Py_BuildValue(""));
    const Reference left(api_,
                         api_.PyObject_CallMethod(guard_.get(), "__exit__", "OOO", none.get(), none.get(), none.get()));
    api_.PyErr_Clear();
}

TensorFields::Field::Field(const PythonApi& api, void* type, const char* name)
    : descriptor(api, type != nullptr ? api.PyObject_GetAttrString(type, name) : nullptr) {
    api.PyErr_Clear();
    if (descriptor.get() == nullptr) return;
    void* const its = const_cast<void*>(read_at<const void*>(descriptor.get(), kObjectType));
    get = reinterpret_cast<decltype(get)>(api.PyType_GetSlot(its, kGetSlot));
}

const void* TensorFields::impl(void* tensor) const {
    if (impl_.get == nullptr) return nullptr;
    const Reference number(api_, impl_.get(impl_.descriptor.get(), tensor, nullptr));
    const void* const at = number.get() != nullptr ? api_.PyLong_AsVoidPtr(number.get()) : nullptr;
    if (at == nullptr) api_.PyErr_Clear();
    return at;
}

bool TensorFields::flag(const Field& field, void* tensor) const {
    if (field.get == nullptr) return false;
    const Reference value(api_, field.get(field.descriptor.get(), tensor, nullptr));
    const bool set = value.get() != nullptr && api_.PyObject_IsTrue(value.get()) == 1;
    if (!set) api_.PyErr_Clear();
    return set;
}

}  // namespace numsan
