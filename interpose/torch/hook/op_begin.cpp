#include "interpose/torch/hook/op_begin.h"

#include "interpose/torch/describe/tensor_view_of.h"

namespace numsan {

void OpBegin::announce(const c10::TensorImpl* impl) const {
    if (const void* storage = storage_of(impl)) core_.before_write(storage);
}

}  // namespace numsan
