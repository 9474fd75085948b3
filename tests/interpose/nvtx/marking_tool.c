/* A tool that has NVTX in the process: writes a line of what it is shown to the file that MARKING_TOOL_LOG names. */
#include <nvtx3/nvToolsExt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void line(const char* kind, const void* domain, const char* text, unsigned category,
                 unsigned long long payload) {
    FILE* log = fopen(getenv("MARKING_TOOL_LOG"), "a");
    if (!log) abort();
    fprintf(log, "%s %s %u %llu %s\n", kind, domain ? (const char*)domain : "-", category, payload, text);
    fclose(log);
}

static nvtxDomainHandle_t create(const char* name) {
    line("domain", NULL, name, 0, 0);
    return (nvtxDomainHandle_t)strdup(name);
}
static void name_category(nvtxDomainHandle_t domain, uint32_t category, const char* name) {
    line("category", domain, name, category, 0);
}
static void mark(nvtxDomainHandle_t domain, const nvtxEventAttributes_t* event) {
    if (event->size != NVTX_EVENT_ATTRIB_STRUCT_SIZE || event->messageType != NVTX_MESSAGE_TYPE_ASCII ||
        event->payloadType != NVTX_PAYLOAD_TYPE_UNSIGNED_INT64)
        abort();
    line("mark", domain, event->message.ascii, event->category, event->payload.ullValue);
}
static int push(const char* name) {
    line("push", NULL, name, 0, 0);
    return 0;
}

__attribute__((visibility("default"))) int InitializeInjectionNvtx2(NvtxGetExportTableFunc_t table) {
    const NvtxExportTableCallbacks* callbacks = (const NvtxExportTableCallbacks*)table(NVTX_ETID_CALLBACKS);
    NvtxFunctionTable core = NULL, core2 = NULL;
    unsigned size = 0;
    if (!callbacks || !callbacks->GetModuleFunctionTable(NVTX_CB_MODULE_CORE, &core, &size)) return 0;
    if (!callbacks->GetModuleFunctionTable(NVTX_CB_MODULE_CORE2, &core2, &size)) return 0;
    *core[NVTX_CBID_CORE_RangePushA] = (NvtxFunctionPointer)push;
    *core2[NVTX_CBID_CORE2_DomainCreateA] = (NvtxFunctionPointer)create;
    *core2[NVTX_CBID_CORE2_DomainNameCategoryA] = (NvtxFunctionPointer)name_category;
    *core2[NVTX_CBID_CORE2_DomainMarkEx] = (NvtxFunctionPointer)mark;
    return 1;
}
