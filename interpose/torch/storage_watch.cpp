#include "interpose/torch/storage_watch.h"

#include <c10/core/StorageImpl.h>
#include <c10/util/intrusive_ptr.h>

namespace numsan {
namespace {

c10::StorageImpl* impl(const void* storage) { return static_cast<c10::StorageImpl*>(const_cast<void*>(storage)); }

}  // namespace

void watch(const void* storage) { static_cast<void>(c10::raw::intrusive_ptr::make_weak(impl(storage))); }
void unwatch(const void* storage) { c10::raw::weak_intrusive_ptr::decref(impl(storage)); }
bool borrow(const void* storage) { return c10::raw::weak_intrusive_ptr::lock(impl(storage)) != nullptr; }
void give_back(const void* storage) { c10::raw::intrusive_ptr::decref(impl(storage)); }

}  // namespace numsan
