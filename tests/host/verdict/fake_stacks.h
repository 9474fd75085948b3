// Stacks and names that a test sets up beforehand.
#pragma once

#include <atomic>
#include <map>

#include "host/stacks/stack_source.h"

namespace numsan {

/// Set `stacks` and `live` before threads start; `now` is the stack of whoever asks.
class FakeStacks final : public StackSource {
  public:
    std::map<StackId, std::vector<SourceFrame>> stacks;
    LiveNames live;
    std::atomic<StackId> now{1};
    std::atomic<int> look_ups{0};

    StackId capture() noexcept override { return now.load(); }
    bool in_module(StackId id) const noexcept override { return id == 1; }
    std::vector<SourceFrame> resolve(StackId id) const override {
        const auto it = stacks.find(id);
        return it != stacks.end() ? it->second : std::vector<SourceFrame>{};
    }
    LiveNames names(const TensorReader& reader) override {
        ++look_ups;
        LiveNames found = live;
        if (reader.gradient_of == nullptr)
            std::erase_if(found.tensors,
                          [](const auto& item) { return item.second.role == LiveNames::TensorName::Role::Gradient; });
        for (auto& [impl, tensor] : found.tensors) {
            if (reader.storage_of == nullptr) continue;
            if (tensor.role != LiveNames::TensorName::Role::Gradient || reader.gradients_rest)
                tensor.storage = reader.storage_of(impl);
        }
        return found;
    }
};

}  // namespace numsan
