// dump_file: the header of a safetensors file, and where its tensors lie.
#include "host/dump/dump_document.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>

#include "tests/support/builders.h"

namespace numsan {
namespace {

using Json = nlohmann::ordered_json;

HeldValue of(HeldKind kind, const char* name, const char* text = nullptr) {
    HeldValue made;
    made.kind = kind;
    made.name = name;
    made.text = text;
    return made;
}

HeldValue number(const char* name, double value, double imaginary = 0, HeldKind kind = HeldKind::Number) {
    HeldValue made = of(kind, name);
    made.number = value;
    made.imaginary = imaginary;
    return made;
}

constexpr int64_t kSizes[] = {2, 3};
constexpr int64_t kStrides[] = {1, 2};
constexpr int64_t kBytes[] = {5};

HeldValue tensor(const char* name, int32_t index) {
    HeldValue made = of(HeldKind::Tensor, name);
    made.tensor = index;
    made.dtype = "float16";
    made.device = "cpu";
    made.sizes = kSizes;
    made.strides = kStrides;
    made.ndim = 2;
    made.bytes = 12;
    return made;
}

struct Read {
    Json header, dump;
    std::string data;
};

Read read(const DumpFile& file) {
    std::string text;
    for (const FilePart& part : file.parts) {
        text += part.data != nullptr ? std::string(static_cast<const char*>(part.data), part.bytes)
                                     : std::string(part.bytes, '\0');
    }
    uint64_t length = 0;
    for (size_t i = 0; i < 8; ++i) length |= uint64_t(static_cast<unsigned char>(text[i])) << (8 * i);
    EXPECT_EQ((8 + length) % 16, 0u);  // torch reads numbers of complex128 only at multiples of 16 bytes
    Read made{Json::parse(text.substr(8, length)), {}, text.substr(8 + length)};
    made.dump = Json::parse(made.header["__metadata__"]["numsan_dump"].get<std::string>());
    return made;
}

class DumpDocument : public ::testing::Test {
  protected:
    DumpDocument() {
        view.name = "aten::made_up";
        view.overload = "out";
        view.schema = "aten::made_up.out(...) -> ()";
        view.threads = 3;
    }

    Read written(const HeldView* forward = nullptr) {
        view.arguments = arguments.data();
        view.argument_count = static_cast<int32_t>(arguments.size());
        view.results = results.data();
        view.result_count = static_cast<int32_t>(results.size());
        view.tensors = tensors.data();
        view.tensor_count = static_cast<int32_t>(tensors.size());
        return read(dump_file({&view, forward, "SqrtBackward0", 1 << 20}, testing::build_finding(), run));
    }

    HeldView view{};
    std::vector<HeldValue> arguments, results;
    std::vector<HeldTensor> tensors;
    RunSummary run;
};

TEST_F(DumpDocument, EveryKindOfArgument) {
    HeldValue list = of(HeldKind::List, "dims");
    list.items = 2;
    HeldValue inner = of(HeldKind::List, nullptr);
    inner.items = 1;
    HeldValue whole = of(HeldKind::Integer, nullptr);
    whole.integer = -1;
    HeldValue truth = of(HeldKind::Bool, "keepdim");
    truth.integer = 1;
    arguments = {list,
                 inner,
                 whole,
                 number(nullptr, std::numeric_limits<double>::quiet_NaN()),
                 number("alpha", 1),
                 number("low", -std::numeric_limits<double>::infinity()),
                 number("z", 0.5, -2, HeldKind::Complex),
                 truth,
                 of(HeldKind::None, "out"),
                 of(HeldKind::DType, "dtype", "float16"),
                 of(HeldKind::Generator, "generator", "cpu"),
                 of(HeldKind::LeftOut, "sparse", "sparse")};
    const Json args = written().dump["op"]["args"];
    EXPECT_EQ(args[0].dump(), R"({"name":"dims","kind":"list","items":[{"kind":"list","items":[{"kind":"number",)"
                              R"("value":-1}]},{"kind":"number","value":"nan"}]})");
    EXPECT_EQ(args[1].dump(), R"({"name":"alpha","kind":"number","value":1.0})") << "a float stays one";
    EXPECT_EQ(args[2]["value"], "-inf");
    EXPECT_EQ(args[3].dump(), R"({"name":"z","kind":"number","value":{"re":0.5,"im":-2.0}})");
    EXPECT_EQ(args[4].dump(), R"({"name":"keepdim","kind":"bool","value":true})");
    EXPECT_EQ(args[5].dump(), R"({"name":"out","kind":"none"})");
    EXPECT_EQ(args[6].dump(), R"({"name":"dtype","kind":"dtype","value":"float16"})");
    EXPECT_EQ(args[7]["value"], "cpu");
    EXPECT_EQ(args[8].dump(), R"({"name":"sparse","kind":"left_out","why":"sparse"})");
}

TEST_F(DumpDocument, TensorsLieAtMultiplesOfTheirElements) {
    const uint16_t halves[6] = {1, 2, 3, 4, 5, 6};
    const unsigned char bytes[5] = {9, 8, 7, 6, 5};
    tensors = {{"U8", kBytes, 1, bytes, 5}, {"F16", kSizes, 2, halves, 12}, {"F16", kSizes, 2, nullptr, 12}};
    HeldValue large = tensor("large", -1);
    large.kind = HeldKind::LeftOut;
    large.bytes = 2100000000;
    HeldValue overwritten = tensor("out", 2);
    overwritten.overwritten = true;
    arguments = {tensor("mask", 0), tensor("self", 1), tensor("other", 1), overwritten, large};
    const HeldTensor generator{"U8", kBytes, 1, bytes, 5};
    view.generator = &generator;
    const Read found = written();
    const Json& args = found.dump["op"]["args"];
    EXPECT_EQ(args[1]["tensor"], "arg.1");
    EXPECT_EQ(args[2]["tensor"], "arg.1");
    EXPECT_EQ(args[2]["same_as"], "arg.1");
    EXPECT_FALSE(args[1].contains("same_as"));
    EXPECT_EQ(args[1]["strides"], Json(std::vector<int64_t>{1, 2}));
    EXPECT_EQ(args[3]["overwritten"], true);
    EXPECT_EQ(args[4]["kind"], "left_out");
    EXPECT_EQ(args[4]["why"], "2.1 GB are over dump_limit=1M");
    EXPECT_EQ(found.header["arg.1"]["data_offsets"], Json(std::vector<int64_t>{0, 12}));
    EXPECT_EQ(found.header["arg.2"]["data_offsets"], Json(std::vector<int64_t>{12, 24}));
    EXPECT_EQ(found.header["arg.0"]["data_offsets"], Json(std::vector<int64_t>{24, 29}));
    EXPECT_EQ(found.header["rng.cpu"]["data_offsets"], Json(std::vector<int64_t>{29, 34}));
    EXPECT_EQ(found.header["arg.1"]["dtype"], "F16");
    EXPECT_EQ(found.data.substr(0, 12), std::string(reinterpret_cast<const char*>(halves), 12));
    EXPECT_EQ(found.data.substr(12, 12), std::string(12, '\0'));
    EXPECT_EQ(found.dump["rng"].dump(), R"({"cpu":"rng.cpu"})");
}

TEST_F(DumpDocument, ComplexNumbersThatAreStoredAsBytesLieAtMultiplesOfTheirSize) {
    const int64_t sizes[] = {2, 16};
    const float floats[5] = {1, 2, 3, 4, 5};
    const double numbers[4] = {1, 2, 3, 4};
    tensors = {{"F32", kBytes, 1, floats, 20}, {"F64", kBytes, 1, numbers, 8}, {"U8", sizes, 2, numbers, 32}};
    arguments = {tensor("self", 0), tensor("weight", 1), tensor("other", 2)};
    const Read found = written();
    EXPECT_EQ(found.header["arg.2"]["data_offsets"], Json(std::vector<int64_t>{0, 32}));
    EXPECT_EQ(found.header["arg.1"]["data_offsets"], Json(std::vector<int64_t>{32, 40}));
    EXPECT_EQ(found.header["arg.0"]["data_offsets"], Json(std::vector<int64_t>{40, 60}));
}

TEST_F(DumpDocument, TheForwardHasNamesOfItsOwn) {
    const uint16_t halves[6] = {};
    tensors = {{"F16", kSizes, 2, halves, 12}};
    arguments = {tensor("self", 0)};
    results = arguments;
    const HeldValue of_forward[] = {tensor("self", 0)};
    HeldView forward = view;
    forward.arguments = of_forward;
    forward.argument_count = 1;
    forward.tensors = tensors.data();
    const Read found = written(&forward);
    EXPECT_EQ(found.dump["forward"]["args"][0]["tensor"], "forward.arg.0");
    EXPECT_EQ(found.dump["op"]["results"][0]["tensor"], "result.0");
    EXPECT_TRUE(found.header.contains("forward.arg.0"));
    EXPECT_EQ(found.dump["node"], "SqrtBackward0");
    EXPECT_EQ(found.dump["threads"], 3);
    EXPECT_EQ(found.dump["finding"]["code"], "NS102");
    EXPECT_TRUE(written().dump["forward"].is_null());
}

TEST_F(DumpDocument, BytesAreSaidInPowersOfTen) {
    EXPECT_EQ(bytes_text(999), "999 bytes");
    EXPECT_EQ(bytes_text(1000), "1.0 kB");
    EXPECT_EQ(bytes_text(16384), "16.4 kB");
    EXPECT_EQ(bytes_text(INT64_MAX), "9.2 EB");
}

}  // namespace
}  // namespace numsan
