// Autograd's nodes and user scopes without a record function that listens in all of the process: while there is one,
// torch copies the list of listeners for each node that it runs, and names each node.
#pragma once

#include <ATen/record_function.h>
#include <torch/csrc/autograd/functions/accumulate_grad.h>

#include "host/base/adapter_abi.h"

namespace numsan {

/// What is called of nodes and user scopes. `begin` and `end` as torch calls a record function's callbacks;
/// `begin_leaf` in the place of both for a node that adds to a leaf's gradient, whose end is CoreApi::node_end.
struct AutogradListener {
    at::RecordFunctionCallback::StartCallback begin;
    at::RecordFunctionCallback::EndCallback end;
    void (*begin_leaf)(const torch::autograd::AccumulateGrad& node, const torch::autograd::variable_list& gradients,
                       const CoreApi& core);
};

/// Where torch asks who listens, it is told of `listener`, for as long as the process lives. False where torch does not
/// ask so that it can be told: its functions are not found, or it is bound to its own. `unreached` is called once if
/// only a backward pass shows that it does not ask; nothing is told from then on.
bool replace_autograd_calls(const CoreApi& core, const AutogradListener& listener, void (*unreached)());

}  // namespace numsan
