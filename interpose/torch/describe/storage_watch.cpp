#include "interpose/torch/describe/storage_watch.h"

#include <c10/core/StorageImpl.h>
#include <c10/util/intrusive_ptr.h>

namespace numsan {
namespace {

c10::StorageImpl* impl(const void* storage) { return static_cast<c10::StorageImpl*>(const_cast<void*>(storage)); }

}  // namespace

void watch(const void* storage) { static_cast<void>(c10::raw::intrusive_ptr::make_weak(impl(storage))); }
void unwatch(const void* storage) { c10::raw::weak_intrusive_ptr::decref(impl(storage)); }
bool pin(const void* storage, const void** data, int64_t* bytes) {
    c10::StorageImpl* held = c10::raw::weak_intrusive_ptr::lock(impl(storage));
    if (held == nullptr) return false;
    *data = held->_mutable_data_ptr_no_checks().get();
    *bytes = held->sym_nbytes().maybe_as_int().value_or(0);
    return true;
}
void unpin(const void* storage) { c10::raw::intrusive_ptr::decref(impl(storage)); }

}  // namespace numsan
