// One member of an op over lists.
#pragma once

#include <vector>

#include "host/base/adapter_abi.h"

namespace numsan {

/// An op over lists as the one of its members that output `index` belongs to: the facts of a birth are of that. Lists
/// are as long as what the op writes; another op is itself.
class ListMember {
  public:
    ListMember(const OpEvent& event, int32_t index) : event_(event) {
        const int32_t n = event.output_count;
        if (n < 2 || !is_over_lists(event)) return;
        for (int32_t i = index; i < event.input_count - event.input_count % n; i += n)
            inputs_.push_back(event.inputs[i]);
        event_.inputs = inputs_.data();
        event_.input_count = static_cast<int32_t>(inputs_.size());
        event_.outputs = event.outputs + index;
        event_.output_count = 1;
    }
    ListMember(const ListMember&) = delete;
    ListMember& operator=(const ListMember&) = delete;
    const OpEvent& event() const { return event_; }

  private:
    std::vector<TensorView> inputs_;
    OpEvent event_;
};

}  // namespace numsan
