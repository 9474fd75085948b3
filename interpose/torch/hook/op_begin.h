// What the core must hear before an op runs: which memory of a device it writes in place, and whether it waits for one.
#pragma once

#include <ATen/core/Tensor.h>
#include <c10/core/Device.h>

#include "host/base/adapter_abi.h"

namespace numsan {

/// Takes an op's arguments, in any order. Costs next to nothing where all of them are on the host.
class OpBegin {
  public:
    explicit OpBegin(const CoreApi& core, const OpInfo& op) : core_(core), to_host_(op.op_class == OpClass::HostRead) {}

    void operand(const at::Tensor& tensor, bool written) {
        const c10::TensorImpl* impl = tensor.unsafeGetTensorImpl();
        const c10::DispatchKeySet keys = impl->key_set();  // a subclass may answer for its device in Python
        if (!keys.has(c10::DispatchKey::CUDA) && !keys.has(c10::DispatchKey::PrivateUse1)) {
            to_host_ = to_host_ || written;
            return;
        }
        on_device_ = true;
        if (written) announce(impl);
    }
    /// An argument that says where the result goes.
    void device(c10::Device device) { to_host_ = to_host_ || device.is_cpu(); }

    void done() const {
        if (on_device_ && to_host_) core_.before_wait();
    }

  private:
    void announce(const c10::TensorImpl* impl) const;

    const CoreApi& core_;
    bool to_host_;
    bool on_device_ = false;
};

}  // namespace numsan
