// Why an output that was handed to the CUDA scanner was not looked at.
#pragma once

#include <cstdint>

namespace numsan::gpu {

enum class SkipReason : uint8_t {
#define NUMSAN_SKIP_REASON(id, text, reported) id,
#include "cuda/skip_reasons.def"
#undef NUMSAN_SKIP_REASON
};
inline constexpr const char* kSkipReasons[] = {
#define NUMSAN_SKIP_REASON(id, text, reported) text,
#include "cuda/skip_reasons.def"
#undef NUMSAN_SKIP_REASON
};
inline constexpr int kSkipReasonCount = sizeof(kSkipReasons) / sizeof(kSkipReasons[0]);

}  // namespace numsan::gpu
