// Storages of made-up tensors, for who holds them weakly.
#pragma once

#include <gtest/gtest.h>

#include <map>
#include <set>

#include "host/base/adapter_abi.h"
#include "tests/host/verdict/made_up.h"

namespace numsan {

/// Storages that die when a test says so.
struct Storages {
    static inline std::set<const void*> dead, exchanged;  ///< exchanged: it lives, with other memory
    static inline std::map<const void*, int> watched, pinned;

    static void watch(const void* s) { ++watched[s]; }
    static void unwatch(const void* s) { --watched[s]; }
    static bool pin(const void* s, const void** data, int64_t* bytes) {
        if (dead.count(s) != 0) return false;
        ++pinned[s];
        const TensorView now = static_cast<const MadeUp*>(s)->view();
        *data = exchanged.count(s) != 0 ? nullptr : now.storage_data;
        *bytes = exchanged.count(s) != 0 ? 0 : now.storage_bytes;
        return true;
    }
    static void unpin(const void* s) { --pinned[s]; }

    static inline const AdapterApi kAdapter{
        kAdapterAbi, nullptr, nullptr, "fallback", nullptr, nullptr, {watch, unwatch, pin, unpin}, nullptr};

    static void begin_test() {
        dead.clear();
        exchanged.clear();
    }
    static int held() {
        int all = 0;
        for (const auto* map : {&watched, &pinned}) {
            for (const auto& [storage, count] : *map) {
                EXPECT_GE(count, 0);
                all += count;
            }
        }
        return all;
    }
};

}  // namespace numsan
