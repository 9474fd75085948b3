#include "interpose/nvtx/tool_marks.h"

#if __has_include(<nvtx3/nvToolsExt.h>)
#include <nvtx3/nvToolsExt.h>

#include <atomic>
#include <cstdlib>
#include <string_view>

namespace numsan {

bool has_marking_tool() noexcept {
    const char* library = secure_getenv("NVTX_INJECTION64_PATH");
    if (library == nullptr || *library == '\0') return false;
    const std::string_view path(library);
    return path.substr(path.rfind('/') + 1) != "libnumsan.so";
}

void mark_in_tool(const ToolMark& mark) noexcept {
    // No guard, which a fork could find held. Threads that are here at once get the same domain of the tool.
    static constinit std::atomic<nvtxDomainHandle_t> known{nullptr};
    static constinit std::atomic<bool> asked{false}, over{false};
    if (over.load(std::memory_order_acquire)) return;
    nvtxDomainHandle_t domain = known.load(std::memory_order_acquire);
    if (domain == nullptr) {
        domain = nvtxDomainCreateA("numsan");  // null where the tool has no domains
        known.store(domain, std::memory_order_release);
        // The tool is loaded by now, so this runs before its destructors.
        if (!asked.exchange(true, std::memory_order_acq_rel))
            std::atexit([] { over.store(true, std::memory_order_release); });
    }
    nvtxDomainNameCategoryA(domain, mark.category, mark.category_name);
    nvtxEventAttributes_t attributes = {};
    attributes.version = NVTX_VERSION;
    attributes.size = NVTX_EVENT_ATTRIB_STRUCT_SIZE;
    attributes.category = mark.category;
    attributes.payloadType = NVTX_PAYLOAD_TYPE_UNSIGNED_INT64;
    attributes.payload.ullValue = mark.payload;
    attributes.messageType = NVTX_MESSAGE_TYPE_ASCII;
    attributes.message.ascii = mark.message;
    nvtxDomainMarkEx(domain, &attributes);
}

}  // namespace numsan
#else
namespace numsan {

bool has_marking_tool() noexcept { return false; }
void mark_in_tool(const ToolMark&) noexcept {}

}  // namespace numsan
#endif
