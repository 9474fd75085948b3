// What KernelEvents hands over, as text; and a program with two buffers.
#pragma once

#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

#include "host/kernels/kernel_events.h"

namespace numsan {

/// What it is given, as "name(reads) -> writes", buffers by their addresses and numbers.
class SeenEvents final : public KernelEvents::Sink {
  public:
    void op_end(const OpEvent& event) noexcept override {
        std::string text = std::string(ignoring_ ? "ignored " : "") + event.op->name + "(";
        for (int32_t i = 0; i < event.input_count; ++i) text += shown(event.inputs[i]);
        text += ")";
        for (int32_t i = 0; i < event.output_count; ++i) text += " ->" + shown(event.outputs[i]);
        events.push_back(text);
        meant = event.infinite_scalar;
        queue = event.queue;
        device = event.input_count > 0 ? event.inputs[0].device_index : -1;
    }
    void ignore(bool begins) noexcept override { ignoring_ = begins; }

    std::vector<std::string> take() { return std::exchange(events, {}); }

    std::vector<std::string> events;
    bool meant = false;
    DeviceQueue queue{};
    int device = -1;

  private:
    static std::string shown(const TensorView& t) {
        int64_t numbers = 1;
        for (int32_t d = 0; d < t.ndim; ++d) numbers *= t.sizes[d];
        EXPECT_EQ(numbers, t.numel);
        EXPECT_EQ(t.flags & kLater, kLater);
        char text[64];
        std::snprintf(text, sizeof text, " %zx:%lld", reinterpret_cast<size_t>(t.data),
                      static_cast<long long>(t.numel));
        return text;
    }
    bool ignoring_ = false;
};

struct PlainProgram {
    PlainProgram() {
        events.allocated(0x1000, 256, false);
        events.allocated(0x2000, 256, false);
    }
    /// scale(float* to, float const* from, float by)
    void scale(uint64_t to, uint64_t from, float by = 2, const char* symbol = "_Z5scalePfPKff") {
        void* arguments[] = {&to, &from, &by};
        const SeenLaunch launch{symbol, arguments, DeviceQueue{nullptr, -1, true}};
        events.before_launch(launch);
        events.after_launch(launch);
    }
    void run(const char* symbol, uint64_t first) {
        void* arguments[] = {&first, &first, &first};
        const SeenLaunch launch{symbol, arguments, DeviceQueue{nullptr, -1, true}};
        events.before_launch(launch);
        events.after_launch(launch);
    }

    SeenEvents seen;
    KernelEvents events{seen};
};

/// Of PlainProgram::scale(0x1000, 0x2000).
inline const char* const kScaled = "scale<<<>>>( 1000:64 2000:64) -> 1000:64";

}  // namespace numsan
