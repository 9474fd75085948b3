// The tensors of an argument or a result that is an IValue.
#pragma once

#include <ATen/core/Tensor.h>
#include <ATen/core/ivalue.h>

#include <optional>

namespace numsan {

/// Lists of lists, which collectives take. Plain lists of numbers are not looked into.
template <class Visit>
void for_each_nested_tensor(const c10::IValue& value, Visit&& visit);

template <class Visit>
void for_each_tensor(const c10::IValue& value, Visit&& visit) {
    if (value.isTensor()) {
        const at::Tensor& tensor = value.toTensor();
        if (tensor.defined()) visit(tensor);
    } else if (value.isTensorList()) {
        for (const at::Tensor& tensor : value.toTensorVector()) {
            if (tensor.defined()) visit(tensor);
        }
    } else if (value.isOptionalTensorList()) {
        for (const std::optional<at::Tensor>& tensor : value.toOptionalTensorVector()) {
            if (tensor.has_value() && tensor->defined()) visit(*tensor);
        }
    } else if (value.isList() && !value.isIntList() && !value.isDoubleList() && !value.isBoolList()) {
        for_each_nested_tensor(value, visit);
    }
}

template <class Visit>
void for_each_nested_tensor(const c10::IValue& value, Visit&& visit) {
    for (const c10::IValue& element : value.toListRef()) {
        if (element.isTensor() || element.isList()) for_each_tensor(element, visit);
    }
}

}  // namespace numsan
