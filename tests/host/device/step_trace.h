// Training steps as tests/bench/step_trace.py recorded them.
#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <cstdlib>
#include <fstream>
#include <map>
#include <memory>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "host/base/adapter_abi.h"

namespace numsan {

struct StepTrace {
    enum class Kind : uint8_t { Op, Loss, Gradient };
    struct Event {
        Kind kind;
        const OpInfo* op;  ///< of an Op
        std::vector<TensorView> outputs;
        int64_t bytes = 0;
    };
    struct Read {
        int64_t outputs = 0, bytes = 0;
        bool operator==(const Read& o) const { return outputs == o.outputs && bytes == o.bytes; }
    };
    std::vector<Event> events;
    std::map<std::string, Read> read;  ///< by "PLACE TIER"

    explicit StepTrace(const std::string& name) {
        std::ifstream file(std::string(NUMSAN_SOURCE_DIR) + "/tests/host/device/traces/" + name);
        EXPECT_TRUE(file) << name;
        for (std::string line; std::getline(file, line);) {
            std::istringstream words(line);
            std::string kind, first, tier;
            words >> kind;
            if (kind == "read") {
                Read one;
                words >> first >> tier >> one.outputs >> one.bytes;
                read[first + " " + tier] = one;
            } else if (kind == "op") {
                words >> first;
                add(Kind::Op, op(first), words);
            } else if (kind == "loss" || kind == "gradient") {
                add(kind == "loss" ? Kind::Loss : Kind::Gradient, nullptr, words);
            }
        }
    }

  private:
    const OpInfo* op(const std::string& name) {
        const auto [found, is_new] = ops_.try_emplace(name);
        if (is_new) {
            found->second = std::make_unique<OpInfo>(
                OpInfo{found->first.c_str(), "", OpClass::Other, false, static_cast<uint32_t>(ops_.size())});
        }
        return found->second.get();
    }
    void add(Kind kind, const OpInfo* info, std::istringstream& sizes) {
        Event event{kind, info, {}};
        for (std::string word; sizes >> word;) {
            char* end = nullptr;
            TensorView view{};
            const int64_t bytes = std::strtoll(word.c_str(), &end, 10);
            view.dtype = DType::BFloat16;
            view.numel = bytes / 2;
            view.flags = kScannable;
            if (*end == 'p') view.flags |= kWritten | kRequiresGrad | kLeaf, ++end;
            const int64_t count = *end == 'x' ? std::strtoll(end + 1, &end, 10) : 1;
            EXPECT_EQ(*end, '\0') << word;
            event.outputs.insert(event.outputs.end(), static_cast<size_t>(count), view);
            event.bytes += count * bytes;
        }
        events.push_back(std::move(event));
    }

    std::map<std::string, std::unique_ptr<OpInfo>> ops_;
};

}  // namespace numsan
