// Ranges that NVTX's own headers, where there are any, announce to what stands in for an injection library.
#include "interpose/nvtx/ignored_ranges.h"

#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <thread>

#if __has_include(<nvtx3/nvToolsExt.h>)
#include <nvtx3/nvToolsExt.h>
#define HAVE_NVTX 1
#endif

namespace numsan {
namespace {

std::string g_told;

const IgnoredRangeListener g_recorder = {
    [] { g_told += '['; },
    [] { g_told += ']'; },
    [] { g_told += '<'; },
    [] { g_told += '>'; },
};

TEST(IgnoredRanges, CopyThatHasNoCallbacksIsLeftAlone) {
    EXPECT_FALSE(watch_nvtx([](uint32_t) -> const void* { return nullptr; }, g_recorder));
    static const nvtx::Callbacks kSmall = {1, nullptr};
    EXPECT_FALSE(watch_nvtx([](uint32_t) -> const void* { return &kSmall; }, g_recorder));
    static const nvtx::Callbacks kEmpty = {sizeof kEmpty, [](int, nvtx::FunctionTable*, unsigned*) { return 0; }};
    EXPECT_FALSE(watch_nvtx([](uint32_t) -> const void* { return &kEmpty; }, g_recorder));
}

TEST(IgnoredRanges, CopyWithFewerCallsIsNotWrittenPastItsEnd) {
    static nvtx::Function functions[3] = {};
    static nvtx::Function* table[5] = {nullptr, &functions[0], &functions[1], &functions[2], nullptr};
    static const nvtx::Callbacks kOld = {sizeof kOld, [](int module, nvtx::FunctionTable* out, unsigned* size) {
                                             if (module != nvtx::kCore) return 0;
                                             *out = table;
                                             *size = 5;
                                             return 1;
                                         }};
    EXPECT_TRUE(watch_nvtx([](uint32_t) -> const void* { return &kOld; }, g_recorder));
    for (nvtx::Function function : functions) EXPECT_EQ(function, nullptr);
}

#ifdef HAVE_NVTX
#define SAME(ours, theirs)                                                                            \
    static_assert(offsetof(nvtx::EventAttributes, ours) == offsetof(nvtxEventAttributes_t, theirs) && \
                  sizeof(nvtx::EventAttributes::ours) == sizeof(nvtxEventAttributes_t::theirs))
static_assert(sizeof(nvtx::EventAttributes) == NVTX_EVENT_ATTRIB_STRUCT_SIZE);
SAME(version, version);
SAME(size, size);
SAME(message_type, messageType);
SAME(message, message);
static_assert(sizeof(nvtx::Callbacks) == sizeof(NvtxExportTableCallbacks));
static_assert(offsetof(nvtx::Callbacks, functions_of) == offsetof(NvtxExportTableCallbacks, GetModuleFunctionTable));
#define SAME_NUMBER(ours, theirs) static_assert(int(ours) == int(theirs))
SAME_NUMBER(nvtx::kNoPushPopTracking, NVTX_NO_PUSH_POP_TRACKING);
SAME_NUMBER(nvtx::kCallbacks, NVTX_ETID_CALLBACKS);
SAME_NUMBER(nvtx::kAscii, NVTX_MESSAGE_TYPE_ASCII);
SAME_NUMBER(nvtx::kUnicode, NVTX_MESSAGE_TYPE_UNICODE);
SAME_NUMBER(nvtx::kRegistered, NVTX_MESSAGE_TYPE_REGISTERED);
SAME_NUMBER(nvtx::kCore, NVTX_CB_MODULE_CORE);
SAME_NUMBER(nvtx::kCore2, NVTX_CB_MODULE_CORE2);
SAME_NUMBER(nvtx::kRangeStartEx, NVTX_CBID_CORE_RangeStartEx);
SAME_NUMBER(nvtx::kRangeStartA, NVTX_CBID_CORE_RangeStartA);
SAME_NUMBER(nvtx::kRangeStartW, NVTX_CBID_CORE_RangeStartW);
SAME_NUMBER(nvtx::kRangeEnd, NVTX_CBID_CORE_RangeEnd);
SAME_NUMBER(nvtx::kRangePushEx, NVTX_CBID_CORE_RangePushEx);
SAME_NUMBER(nvtx::kRangePushA, NVTX_CBID_CORE_RangePushA);
SAME_NUMBER(nvtx::kRangePushW, NVTX_CBID_CORE_RangePushW);
SAME_NUMBER(nvtx::kRangePop, NVTX_CBID_CORE_RangePop);
SAME_NUMBER(nvtx::kDomainRangeStartEx, NVTX_CBID_CORE2_DomainRangeStartEx);
SAME_NUMBER(nvtx::kDomainRangeEnd, NVTX_CBID_CORE2_DomainRangeEnd);
SAME_NUMBER(nvtx::kDomainRangePushEx, NVTX_CBID_CORE2_DomainRangePushEx);
SAME_NUMBER(nvtx::kDomainRangePop, NVTX_CBID_CORE2_DomainRangePop);
SAME_NUMBER(nvtx::kDomainRegisterStringA, NVTX_CBID_CORE2_DomainRegisterStringA);
SAME_NUMBER(nvtx::kDomainRegisterStringW, NVTX_CBID_CORE2_DomainRegisterStringW);

nvtxEventAttributes_t event(int32_t type) {
    nvtxEventAttributes_t attributes = {};
    attributes.version = NVTX_VERSION;
    attributes.size = NVTX_EVENT_ATTRIB_STRUCT_SIZE;
    attributes.messageType = type;
    return attributes;
}

/// This program's own copy of NVTX, whose first call finds us as a library would be found that is linked in.
class IgnoredRangesOfNvtx : public testing::Test {
  protected:
    void SetUp() override {
        unsetenv("NVTX_INJECTION64_PATH");
        InitializeInjectionNvtx2_fnptr = [](NvtxGetExportTableFunc_t table) {
            return watch_nvtx(table, g_recorder) ? 1 : 0;
        };
        nvtxInitialize(nullptr);
        g_told.clear();
    }
};

TEST_F(IgnoredRangesOfNvtx, PushedRangeOfTheNameIsTold) {
    EXPECT_EQ(nvtxRangePushA("epoch"), NVTX_NO_PUSH_POP_TRACKING);
    EXPECT_EQ(g_told, "");
    EXPECT_EQ(nvtxRangePushA("numsan:ignore"), NVTX_NO_PUSH_POP_TRACKING);
    nvtxRangePushA("inner");
    nvtxRangePushA("numsan:ignore");
    nvtxRangePop();
    nvtxRangePop();
    EXPECT_EQ(g_told, "[");
    EXPECT_EQ(nvtxRangePop(), NVTX_NO_PUSH_POP_TRACKING);
    EXPECT_EQ(g_told, "[]");
    nvtxRangePop();
    nvtxRangePop();  // one too many
    nvtxRangePushW(L"numsan:ignore");
    nvtxRangePop();
    EXPECT_EQ(g_told, "[][]");
    nvtxRangePushA("numsan:ignored");
    nvtxRangePushA(nullptr);
    nvtxRangePop();
    nvtxRangePop();
    nvtxMarkA("numsan:ignore");
    EXPECT_EQ(g_told, "[][]");
}

TEST_F(IgnoredRangesOfNvtx, EveryKindOfMessageIsRead) {
    nvtxEventAttributes_t attributes = event(NVTX_MESSAGE_TYPE_ASCII);
    attributes.message.ascii = "numsan:ignore";
    nvtxRangePushEx(&attributes);
    nvtxRangePop();
    attributes = event(NVTX_MESSAGE_TYPE_UNICODE);
    attributes.message.unicode = L"numsan:ignore";
    nvtxRangePushEx(&attributes);
    nvtxRangePop();
    EXPECT_EQ(g_told, "[][]");
    nvtxDomainHandle_t domain = nvtxDomainCreateA("a library");
    EXPECT_EQ(nvtxDomainRegisterStringA(domain, "forward"), nullptr);
    attributes = event(NVTX_MESSAGE_TYPE_REGISTERED);
    nvtxDomainRangePushEx(domain, &attributes);  // without a string
    nvtxDomainRangePop(domain);
    EXPECT_EQ(g_told, "[][]");
    for (nvtxStringHandle_t name :
         {nvtxDomainRegisterStringA(domain, "numsan:ignore"), nvtxDomainRegisterStringW(domain, L"numsan:ignore")}) {
        attributes.message.registered = name;
        nvtxDomainRangePushEx(domain, &attributes);
        nvtxDomainRangePop(domain);
    }
    EXPECT_EQ(g_told, "[][][][]");
    attributes.size = 8;  // of a version that has no messages
    nvtxRangePushEx(&attributes);
    nvtxRangePushEx(nullptr);
    nvtxRangePop();
    nvtxRangePop();
    EXPECT_EQ(g_told, "[][][][]");
}

TEST_F(IgnoredRangesOfNvtx, StartedRangeIsEverybodysAndMayEndElsewhere) {
    EXPECT_EQ(nvtxRangeStartA("epoch"), 0u);
    nvtxRangeEnd(0);
    const nvtxRangeId_t first = nvtxRangeStartA("numsan:ignore"), second = nvtxRangeStartW(L"numsan:ignore");
    EXPECT_NE(first, 0u);
    EXPECT_NE(first, second);
    EXPECT_EQ(g_told, "<<");
    std::thread([&] { nvtxRangeEnd(first); }).join();
    nvtxRangeEnd(first);
    EXPECT_EQ(g_told, "<<>");
    nvtxDomainRangeEnd(nullptr, second);
    nvtxEventAttributes_t attributes = event(NVTX_MESSAGE_TYPE_ASCII);
    attributes.message.ascii = "numsan:ignore";
    nvtxRangeEnd(nvtxRangeStartEx(&attributes));
    nvtxDomainRangeEnd(nullptr, nvtxDomainRangeStartEx(nullptr, &attributes));
    EXPECT_EQ(g_told, "<<>><><>");
}

TEST_F(IgnoredRangesOfNvtx, MoreStartedRangesThanThereIsRoomForEndWell) {
    nvtxRangeId_t ids[100];
    for (nvtxRangeId_t& id : ids) id = nvtxRangeStartA("numsan:ignore");
    for (nvtxRangeId_t id : ids) nvtxRangeEnd(id);
    EXPECT_EQ(g_told, std::string(64, '<') + std::string(64, '>'));
}

TEST_F(IgnoredRangesOfNvtx, ThreadsHaveRangesOfTheirOwn) {
    nvtxRangePushA("numsan:ignore");
    std::thread([] {
        nvtxRangePop();
        nvtxRangePushA("numsan:ignore");
        EXPECT_EQ(g_told, "[[");
        nvtxRangePop();
    }).join();
    nvtxRangePop();
    EXPECT_EQ(g_told, "[[]]");
}
#else
TEST(IgnoredRangesOfNvtx, NeedsNvtxsHeaders) { GTEST_SKIP() << "nvtx3/nvToolsExt.h was not found"; }
#endif

}  // namespace
}  // namespace numsan
