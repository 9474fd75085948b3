#include "interpose/torch/describe/tensor_view_of.h"

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

/// Only those have a name that a person wrote; to ask for it takes the interpreter's lock.
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

const void* gradient_of(const void* impl) {
    const auto* tensor = static_cast<const c10::TensorImpl*>(impl);
    const auto* meta = static_cast<const torch::autograd::AutogradMeta*>(tensor->autograd_meta());
    if (meta == nullptr || meta->grad_fn_ != nullptr) return nullptr;
    const c10::TensorImpl* gradient = tensor->grad().unsafeGetTensorImpl();
    return gradient != c10::UndefinedTensorImpl::singleton() ? gradient : nullptr;
}

/// Nothing is retained: the last but one reference to a tensor that Python knows takes the interpreter's lock.
uint32_t autograd_facts_of(const void* impl, bool may_wait) try {
    const auto meta_of = [](const c10::TensorImpl& tensor) {
        return static_cast<const torch::autograd::AutogradMeta*>(tensor.autograd_meta());
    };
    const auto* meta = meta_of(*static_cast<const c10::TensorImpl*>(impl));
    if (meta == nullptr) return 0;
    uint32_t autograd_facts = 0;
    if (meta->is_view_) {
        const auto& view = static_cast<const torch::autograd::DifferentiableViewMeta&>(*meta);
        const auto* base =
            view.has_bw_view() ? meta_of(*view.get_backward_view().base_.unsafeGetTensorImpl()) : nullptr;
        if (base != nullptr && base->requires_grad_ && base->grad_fn_ == nullptr) autograd_facts |= kViewOfParameter;
    }
    const torch::autograd::Node* node = meta->grad_fn_.get();
    if (may_wait && node != nullptr && is_python(*node) && node->name().find("CompiledFunction") != std::string::npos)
        autograd_facts |= kFromCompiled;
    return autograd_facts;
} catch (const std::exception&) {
    return 0;  // a view whose base is gone, a node written in Python whose name cannot be had
}

}  // namespace numsan
