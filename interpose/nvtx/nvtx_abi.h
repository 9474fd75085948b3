// What of NVTX's C interface (version 3, nvToolsExt.h and nvtxDetail/nvtxTypes.h) is used. Written down here, as numsan
// is built where there is no toolkit; tests/interpose/nvtx/range_watch_test.cpp compares it with NVTX's own headers.
#pragma once

#include <cstddef>
#include <cstdint>

namespace numsan::nvtx {

inline constexpr int kNoPushPopTracking = -2;  ///< what push and pop return where no tool listens

using RangeId = uint64_t;
using Domain = void*;
using StringHandle = void*;

enum MessageType : int32_t { kAscii = 1, kUnicode = 2, kRegistered = 3 };

struct EventAttributes {
    uint16_t version;
    uint16_t size;
    uint32_t category;
    int32_t color_type;
    uint32_t color;
    int32_t payload_type;
    int32_t reserved;
    uint64_t payload;
    int32_t message_type;
    union {
        const char* ascii;
        const wchar_t* unicode;
        StringHandle registered;
    } message;
};

/// A program has as many copies of NVTX as it has libraries that include its headers. Each hands its own to the
/// library that NVTX_INJECTION64_PATH names, at the first call of any of its functions.
using GetExportTable = const void* (*)(uint32_t table);
inline constexpr uint32_t kCallbacks = 1;  ///< export table

using Function = void (*)();
using FunctionTable = Function**;

struct Callbacks {
    size_t struct_size;
    /// 0: no such module. `table[i]`, `i` below `size`, points to the pointer through which call number i goes.
    int (*functions_of)(int module, FunctionTable* table, unsigned* size);
};

inline constexpr int kCore = 1;   ///< module: calls without a domain
inline constexpr int kCore2 = 5;  ///< module: calls with one

enum CoreCall : unsigned {
    kRangeStartEx = 4,
    kRangeStartA = 5,
    kRangeStartW = 6,
    kRangeEnd = 7,
    kRangePushEx = 8,
    kRangePushA = 9,
    kRangePushW = 10,
    kRangePop = 11,
};

enum Core2Call : unsigned {
    kDomainRangeStartEx = 2,
    kDomainRangeEnd = 3,
    kDomainRangePushEx = 4,
    kDomainRangePop = 5,
    kDomainCreateA = 12,
    kDomainCreateW = 13,
    kDomainRegisterStringA = 10,
    kDomainRegisterStringW = 11,
};

}  // namespace numsan::nvtx
