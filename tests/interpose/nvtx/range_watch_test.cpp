// Ranges that NVTX's own headers, where there are any, announce to what stands in for an injection library.
#include "interpose/nvtx/range_watch.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#if __has_include(<nvtx3/nvToolsExt.h>)
#include <nvtx3/nvToolsExt.h>
#define HAVE_NVTX 1
#endif

namespace numsan {
namespace {

std::string g_told;

/// Domains by the order in which they were first seen, 0 is none: "push 0 epoch|pop 0|".
std::string number_of(uint64_t domain) {
    static std::vector<uint64_t> seen{0};
    const auto at = std::find(seen.begin(), seen.end(), domain);
    const auto number = at - seen.begin();
    if (at == seen.end()) seen.push_back(domain);
    return std::to_string(number);
}

const RangeListener g_recorder = {
    [](uint64_t domain, const char* name, bool ignored) {
        g_told += (ignored ? "push ignored " : "push ") + number_of(domain) + " " + name + "|";
    },
    [](uint64_t domain) { g_told += "pop " + number_of(domain) + "|"; },
    [](uint64_t id, const char* name, bool ignored) {
        g_told += (ignored ? "start ignored " : "start ") + std::to_string(id != 0) + " " + name + "|";
    },
    [](uint64_t id) { g_told += "stop " + std::to_string(id != 0) + "|"; },
};

std::string told() { return std::exchange(g_told, ""); }

TEST(RangeWatch, CopyThatHasNoCallbacksIsLeftAlone) {
    EXPECT_FALSE(watch_nvtx([](uint32_t) -> const void* { return nullptr; }, g_recorder));
    static const nvtx::Callbacks kSmall = {1, nullptr};
    EXPECT_FALSE(watch_nvtx([](uint32_t) -> const void* { return &kSmall; }, g_recorder));
    static const nvtx::Callbacks kEmpty = {sizeof kEmpty, [](int, nvtx::FunctionTable*, unsigned*) { return 0; }};
    EXPECT_FALSE(watch_nvtx([](uint32_t) -> const void* { return &kEmpty; }, g_recorder));
}

TEST(RangeWatch, CopyWithFewerCallsIsNotWrittenPastItsEnd) {
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
SAME_NUMBER(nvtx::kDomainCreateA, NVTX_CBID_CORE2_DomainCreateA);
SAME_NUMBER(nvtx::kDomainCreateW, NVTX_CBID_CORE2_DomainCreateW);

nvtxEventAttributes_t event(int32_t type) {
    nvtxEventAttributes_t attributes = {};
    attributes.version = NVTX_VERSION;
    attributes.size = NVTX_EVENT_ATTRIB_STRUCT_SIZE;
    attributes.messageType = type;
    return attributes;
}

/// This program's own copy of NVTX, whose first call finds us as a library would be found that is linked in.
class RangeWatchOfNvtx : public testing::Test {
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

TEST_F(RangeWatchOfNvtx, PushedRangesAreTold) {
    EXPECT_EQ(nvtxRangePushA("epoch"), NVTX_NO_PUSH_POP_TRACKING);
    EXPECT_EQ(nvtxRangePushW(L"caf\u00e9 \u6f22 \U0001f600"), NVTX_NO_PUSH_POP_TRACKING);
    nvtxRangePushA(nullptr);
    EXPECT_EQ(nvtxRangePop(), NVTX_NO_PUSH_POP_TRACKING);
    nvtxMarkA("a mark");
    EXPECT_EQ(told(), "push 0 epoch|push 0 caf\xc3\xa9 \xe6\xbc\xa2 \xf0\x9f\x98\x80|push 0 |pop 0|");
}

TEST_F(RangeWatchOfNvtx, EveryKindOfMessageIsRead) {
    nvtxEventAttributes_t attributes = event(NVTX_MESSAGE_TYPE_ASCII);
    attributes.message.ascii = "ascii";
    nvtxRangePushEx(&attributes);
    attributes = event(NVTX_MESSAGE_TYPE_UNICODE);
    attributes.message.unicode = L"unicode";
    nvtxRangePushEx(&attributes);
    EXPECT_EQ(told(), "push 0 ascii|push 0 unicode|");
    attributes.size = 8;  // of a version that has no messages
    nvtxRangePushEx(&attributes);
    nvtxRangePushEx(nullptr);
    EXPECT_EQ(told(), "push 0 |push 0 |");
    attributes = event(NVTX_MESSAGE_TYPE_REGISTERED);
    nvtxRangePushEx(&attributes);  // without a string
    EXPECT_EQ(told(), "push 0 |");
}

TEST_F(RangeWatchOfNvtx, DomainsAndRegisteredStringsHaveTheirNames) {
    const nvtxDomainHandle_t library = nvtxDomainCreateA("a library"), other = nvtxDomainCreateW(L"another");
    EXPECT_NE(library, nullptr);
    EXPECT_NE(library, other);
    EXPECT_EQ(library, nvtxDomainCreateA("a library"));
    nvtxEventAttributes_t attributes = event(NVTX_MESSAGE_TYPE_REGISTERED);
    for (nvtxStringHandle_t name :
         {nvtxDomainRegisterStringA(library, "forward"), nvtxDomainRegisterStringW(library, L"forward"),
          nvtxDomainRegisterStringA(library, "numsan:ignore")}) {
        attributes.message.registered = name;
        nvtxDomainRangePushEx(library, &attributes);
        nvtxDomainRangePop(library);
    }
    EXPECT_EQ(
        told(),
        "push 1 a library:forward|pop 1|push 1 a library:forward|pop 1|push ignored 1 a library:numsan:ignore|pop 1|");
    attributes = event(NVTX_MESSAGE_TYPE_ASCII);
    attributes.message.ascii = "x";
    nvtxDomainRangePushEx(other, &attributes);
    nvtxDomainRangePushEx(nullptr, &attributes);
    nvtxDomainRangePop(other);
    nvtxDomainRangeEnd(other, nvtxDomainRangeStartEx(other, &attributes));
    nvtxDomainDestroy(other);
    EXPECT_EQ(told(), "push 2 another:x|push 0 x|pop 2|start 1 another:x|stop 1|");
}

TEST_F(RangeWatchOfNvtx, IgnoredIsTheNameOfTheRangeAlone) {
    const nvtxDomainHandle_t ours = nvtxDomainCreateA("numsan");
    nvtxEventAttributes_t attributes = event(NVTX_MESSAGE_TYPE_ASCII);
    attributes.message.ascii = "ignore";
    nvtxDomainRangePushEx(ours, &attributes);
    const std::string seen = told();
    EXPECT_TRUE(seen.starts_with("push ") && !seen.starts_with("push ignored ")) << seen;
    nvtxRangePushA("numsan:ignored");
    nvtxRangePushW(L"numsan:ignore");
    EXPECT_EQ(told(), "push 0 numsan:ignored|push ignored 0 numsan:ignore|");
}

TEST_F(RangeWatchOfNvtx, WideNameThatIsNoTextIsShownAsOne) {
    const wchar_t name[] = {L'a', wchar_t(0xd800), wchar_t(0x110000), L'b', 0};
    nvtxRangePushW(name);
    EXPECT_EQ(told(), "push 0 a??b|");
}

TEST_F(RangeWatchOfNvtx, IgnoredStringIsKnownHoweverManyAreRegistered) {
    for (int i = 0; i < 10000; ++i) nvtxDomainRegisterStringA(nullptr, ("string " + std::to_string(i)).c_str());
    nvtxEventAttributes_t attributes = event(NVTX_MESSAGE_TYPE_REGISTERED);
    attributes.message.registered = nvtxDomainRegisterStringA(nullptr, "one more");
    nvtxRangePushEx(&attributes);
    attributes.message.registered = nvtxDomainRegisterStringA(nullptr, "numsan:ignore");
    nvtxRangePushEx(&attributes);
    EXPECT_EQ(told(), "push 0 |push ignored 0 numsan:ignore|");
}

TEST_F(RangeWatchOfNvtx, StartedRangeHasAnIdAndMayEndElsewhere) {
    const nvtxRangeId_t first = nvtxRangeStartA("epoch"), second = nvtxRangeStartW(L"numsan:ignore");
    EXPECT_NE(first, 0u);
    EXPECT_NE(first, second);
    std::thread([&] { nvtxRangeEnd(first); }).join();
    nvtxRangeEnd(0);
    EXPECT_EQ(told(), "start 1 epoch|start ignored 1 numsan:ignore|stop 1|stop 0|");
}

TEST_F(RangeWatchOfNvtx, LongNameIsCutBetweenCharacters) {
    nvtxRangePushA((std::string(255, 'x') + "\xc3\xa9" + std::string(100000, 'y')).c_str());
    EXPECT_EQ(told(), "push 0 " + std::string(255, 'x') + "...|");
    nvtxRangePushW((std::wstring(255, L'x') + std::wstring(100000, L'\u00e9')).c_str());
    EXPECT_EQ(told(), "push 0 " + std::string(255, 'x') + "...|");
    nvtxRangePushA(std::string(256, 'x').c_str());
    EXPECT_EQ(told(), "push 0 " + std::string(256, 'x') + "|");
}
#else
TEST(RangeWatchOfNvtx, NeedsNvtxsHeaders) { GTEST_SKIP() << "nvtx3/nvToolsExt.h was not found"; }
#endif

}  // namespace
}  // namespace numsan
