#include "interpose/torch/tensor_view_of.h"

#include <torch/csrc/autograd/function.h>
#include <torch/csrc/autograd/variable.h>

#include <cstring>
#include <exception>
#include <string>
#include <typeinfo>

namespace numsan {
namespace {

using c10::DispatchKey;

const c10::DispatchKeySet kSparse({DispatchKey::Sparse, DispatchKey::SparseCsr});
const c10::DispatchKeySet kTransformed({DispatchKey::Functionalize, DispatchKey::FuncTorchBatched,
                                        DispatchKey::FuncTorchGradWrapper, DispatchKey::Batched});

/// Only those have a name that somebody wrote; to ask for it takes the interpreter's lock.
bool is_python(const torch::autograd::Node& node) { return std::strstr(typeid(node).name(), "PyNode") != nullptr; }

}  // namespace

const char* why_not_viewed(const at::Tensor& tensor) {
    const c10::DispatchKeySet keys = tensor.unsafeGetTensorImpl()->key_set();
    if (keys.has(DispatchKey::Meta)) return "meta";  // fake tensors, too: nothing is computed
    if (keys.has_any(kTransformed)) return "functorch";
    if (keys.has(DispatchKey::NestedTensor)) return "nested";
    if (keys.has(DispatchKey::Python)) return "wrapper";
    if (keys.has_any(kSparse)) return "sparse";
    if (keys.has(DispatchKey::Quantized)) return "quantized";
    if (!keys.has(DispatchKey::CPU) && !keys.has(DispatchKey::CUDA) && !keys.has(DispatchKey::PrivateUse1))
        return "device";
    return "no storage";  // zero tensors, layouts of one backend's own
}

const void* storage_of(const void* impl) {
    const auto* tensor = static_cast<const c10::TensorImpl*>(impl);
    if (tensor->key_set().has_any(kOpaque) || !tensor->has_storage()) return nullptr;
    return tensor->unsafe_storage().unsafeGetStorageImpl();
}

uint32_t kin_of(const void* impl) try {
    const auto borrowed = c10::intrusive_ptr<c10::TensorImpl, c10::UndefinedTensorImpl>::reclaim_copy(
        static_cast<c10::TensorImpl*>(const_cast<void*>(impl)));
    const at::Tensor tensor(borrowed);
    if (!tensor.requires_grad() || tensor.is_leaf()) return 0;
    uint32_t kin = 0;
    if (tensor.is_view() && tensor._base().is_leaf()) kin |= kViewOfParameter;
    const torch::autograd::Node* node = torch::autograd::impl::grad_fn_unsafe(tensor);
    if (node != nullptr && is_python(*node) && node->name().find("CompiledFunction") != std::string::npos)
        kin |= kFromCompiled;
    return kin;
} catch (const std::exception&) {
    return 0;  // a view whose base is gone, a node written in Python whose name cannot be had
}

}  // namespace numsan
