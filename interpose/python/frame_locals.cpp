#include "interpose/python/frame_locals.h"

#include "interpose/python/api/reference.h"
#include "interpose/python/frame_walk.h"

namespace numsan {
namespace {

constexpr char kLayout[] = "numsan.layout";
constexpr int32_t kSlotBytes = 8;
constexpr int32_t kInterpretersFrame = 24;  ///< f_frame: struct _frame in pycore_frame.h, 3.11 to 3.14

/// Where `frame`, an object, keeps its slots; null where it is not laid out like that.
const void* laid_out(const PythonApi& api, const PythonLayout& layout, void* frame) {
    const void* at = layout.kind == PythonLayout::Kind::Object ? frame : pointer_at(frame, kInterpretersFrame);
    const Reference code(api, api.PyFrame_GetCode(frame));
    return at != nullptr && pointer_at(at, layout.code) == code.get() ? at : nullptr;
}

void* locals_of(void* capsule, void* arguments) {
    const PythonApi& api = *python_api();
    Reference found(api, api.PyList_New(0));
    const auto* layout = static_cast<const PythonLayout*>(api.PyCapsule_GetPointer(capsule, kLayout));
    void* const frame = api.PyTuple_GetItem(arguments, 0);
    void* const names = api.PyTuple_GetItem(arguments, 1);
    if (found.get() == nullptr || layout == nullptr || frame == nullptr || names == nullptr) return nullptr;
    const TrustedMemory memory;
    const FrameWalk walk(api, *layout, memory);
    for (ptrdiff_t i = 0, count = api.PyTuple_Size(names); i < count; ++i) {
        // Anew for each: up to 3.11 a new object may start a collection, and others may run meanwhile.
        const void* const at = laid_out(api, *layout, frame);
        if (at == nullptr) break;
        void* const slot = const_cast<void*>(walk.variable(at, layout->locals + int32_t(i) * kSlotBytes));
        if (slot == nullptr) continue;
        api.Py_IncRef(slot);
        const Reference value(api, slot);
        const Reference pair(api, api.PyTuple_Pack(2, api.PyTuple_GetItem(names, i), value.get()));
        if (pair.get() == nullptr || api.PyList_Append(found.get(), pair.get()) != 0) return nullptr;
    }
    return found.release();
}

void* no_locals(void*, void*) { return python_api()->PyList_New(0); }

PythonMethod g_method = {"locals_of", locals_of, kArgumentTuple, nullptr};
PythonMethod g_none = {"locals_of", no_locals, kArgumentTuple, nullptr};

}  // namespace

void* frame_locals_function(const PythonApi& api, const PythonLayout* layout) {
    if (layout == nullptr) return api.PyCFunction_NewEx(&g_none, nullptr, nullptr);
    const Reference capsule(api, api.PyCapsule_New(const_cast<PythonLayout*>(layout), kLayout, nullptr));
    return capsule.get() != nullptr ? api.PyCFunction_NewEx(&g_method, capsule.get(), nullptr) : nullptr;
}

}  // namespace numsan
