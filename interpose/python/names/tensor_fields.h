// What is read of a Python tensor without running Python: a subclass may have properties of its own.
#pragma once

#include "interpose/python/api/reference.h"

namespace numsan {

/// The caller holds the interpreter's lock. As long as this lives, torch hands no reading of a subclass on to
/// __torch_function__ on this thread.
class TensorFields {
  public:
    /// `type`: torch.Tensor, null for none.
    TensorFields(const PythonApi& api, void* type);
    ~TensorFields();
    TensorFields(const TensorFields&) = delete;
    TensorFields& operator=(const TensorFields&) = delete;

    /// Where the tensor's implementation lies (TensorView::impl); null where it does not say.
    const void* impl(void* tensor) const;
    bool is_trained_leaf(void* tensor) const { return flag(is_leaf_, tensor) && flag(requires_grad_, tensor); }

  private:
    /// A property of torch.Tensor's own, and what reads it.
    struct Field {
        Field(const PythonApi& api, void* type, const char* name);

        Reference descriptor;
        void* (*get)(void* descriptor, void* object, void* type) = nullptr;
    };
    bool flag(const Field& field, void* tensor) const;

    const PythonApi& api_;
    Reference guard_;
    Field impl_;
    Field is_leaf_;
    Field requires_grad_;
};

}  // namespace numsan
