#include "interpose/nvtx/tool_marks.h"

#if __has_include(<nvtx3/nvToolsExt.h>)
#include <nvtx3/nvToolsExt.h>

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
    static const nvtxDomainHandle_t domain = nvtxDomainCreateA("numsan");
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
