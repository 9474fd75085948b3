// A recording that was damaged, cut, or is none: what is wrong is said with the byte.
#include "host/record/record_reader.h"

#include <gtest/gtest.h>
#include <sys/resource.h>
#include <unistd.h>

#include <csignal>
#include <cstdio>
#include <fstream>
#include <iterator>

#include "host/record/fields.h"
#include "host/record/record_writer.h"

namespace numsan {
namespace {

class RecordFile : public testing::Test {
  protected:
    const std::string path = testing::TempDir() + "numsan_record_file_" + std::to_string(getpid());

    void TearDown() override { std::remove(path.c_str()); }

    std::string bytes() const {
        std::ifstream in(path, std::ios::binary);
        return {std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
    }
    /// Two blocks with a record each.
    std::string written() const {
        RecordWriter writer;
        EXPECT_FALSE(writer.open(path, 1 << 20).has_value());
        writer.add(RecordKind::ThreadEnd, uint32_t(7));
        writer.flush();
        writer.add(RecordKind::Stopped, std::string("a reason"));
        writer.close();
        return bytes();
    }
    static RecordReader of(const std::string& file) {
        return RecordReader([file](uint64_t offset, size_t count) {
            return offset < file.size() ? file.substr(offset, count) : std::string();
        });
    }
    /// Reads all records; the reason why not, or nothing.
    static std::string problem(const std::string& file, bool* cut = nullptr) {
        try {
            RecordReader reader = of(file);
            while (reader.next()) {
                uint32_t number = 0;
                std::string text;
                if (reader.kind() == RecordKind::ThreadEnd)
                    reader.read(number);
                else
                    reader.read(text);
            }
            if (cut != nullptr) *cut = reader.is_cut();
            return "";
        } catch (const RecordError& error) {
            return error.what();
        }
    }
};

TEST_F(RecordFile, IsReadAsItWasWritten) {
    RecordReader reader = of(written());
    uint32_t number = 0;
    std::string text;
    ASSERT_TRUE(reader.next());
    EXPECT_EQ(reader.kind(), RecordKind::ThreadEnd);
    reader.read(number);
    EXPECT_EQ(number, 7u);
    ASSERT_TRUE(reader.next());
    reader.read(text);
    EXPECT_EQ(text, "a reason");
    EXPECT_FALSE(reader.next());
    EXPECT_FALSE(reader.is_cut());
}

TEST_F(RecordFile, EveryDamagedByteIsNoticed) {
    const std::string file = written();
    for (size_t i = 0; i < file.size(); ++i) {
        std::string damaged = file;
        damaged[i] = static_cast<char>(damaged[i] ^ 0x10);
        bool cut = false;
        const std::string why = problem(damaged, &cut);
        EXPECT_TRUE(cut || why.rfind("byte ", 0) == 0) << "byte " << i << ": " << why;
    }
}

TEST_F(RecordFile, WhatIsWrongComesWithTheByteWhereItsBlockBegins) {
    std::string file = written();
    const size_t second = file.find(kBlockMark, kFileHeader + 1);
    ASSERT_NE(second, file.npos);
    file.back() = static_cast<char>(file.back() ^ 1);
    EXPECT_EQ(problem(file), "byte " + std::to_string(second) +
                                 ": the block that begins here is damaged: its checksum does not agree");
    EXPECT_EQ(problem("numbers of something else"), "byte 0: not a recording of numsan");
    EXPECT_EQ(problem(""), "byte 0: the file ends within its header");
    std::string newer = written();
    newer[kRecordMagic.size()] = 9;
    EXPECT_EQ(problem(newer), "byte 16: a recording of version 9; this numsan reads version 5");
}

TEST_F(RecordFile, AFileThatWasCutIsReadUpToThere) {
    const std::string file = written();
    for (size_t size = kFileHeader; size < file.size(); ++size) {
        bool cut = false;
        EXPECT_EQ(problem(file.substr(0, size), &cut), "") << size;
        const bool whole_blocks = size == kFileHeader || file[size] == kBlockMark;
        EXPECT_TRUE(cut || whole_blocks) << size;
    }
}

TEST_F(RecordFile, ALimitEndsIt) {
    RecordWriter writer;
    ASSERT_FALSE(writer.open(path, 100).has_value());
    std::string text;
    for (int i = 0; i < 500; ++i) text += static_cast<char>(i * 7919 >> 3);
    writer.add(RecordKind::Stopped, text);
    writer.flush();
    EXPECT_NE(writer.failure().find("larger than"), std::string::npos) << writer.failure();
    writer.close();
    EXPECT_LE(bytes().size(), 100u);
    EXPECT_EQ(problem(bytes()), "");
}

TEST_F(RecordFile, AFullDiskEndsItWithoutASignal) {
    RecordWriter writer;
    ASSERT_FALSE(writer.open(path, 1 << 20).has_value());
    rlimit before{};
    ASSERT_EQ(getrlimit(RLIMIT_FSIZE, &before), 0);
    rlimit small = before;
    small.rlim_cur = 20;
    ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &small), 0);
    writer.add(RecordKind::Stopped, std::string("more than three bytes"));
    writer.flush();
    setrlimit(RLIMIT_FSIZE, &before);
    EXPECT_EQ(writer.failure(), "File too large");
}

TEST_F(RecordFile, TwoWritersOfOnePathHaveAFileEach) {
    RecordWriter first, second;
    ASSERT_FALSE(first.open(path + ".rec", 1 << 20).has_value());
    ASSERT_FALSE(second.open(path + ".rec", 1 << 20).has_value());
    EXPECT_EQ(first.path(), path + ".rec");
    EXPECT_EQ(second.path(), path + "-" + std::to_string(getpid()) + ".rec");
    std::remove(first.path().c_str());
    std::remove(second.path().c_str());
}

TEST_F(RecordFile, WhatIsNoFileIsRefused) {
    EXPECT_THROW(RecordReader::of_file("/nowhere/at/all"), RecordError);
    EXPECT_THROW(RecordReader::of_file(testing::TempDir()), RecordError);
}

template <class T>
T there_and_back(const T& value) {
    AddressWriter addresses;
    ByteWriter out(addresses);
    write(out, value);
    AddressList list{0};
    ByteReader in(out.out(), list);
    T read{};
    transfer(in, read);
    EXPECT_TRUE(in.empty());
    return read;
}

TEST(RecordFields, NumbersOfEverySize) {
    for (const int64_t n : {int64_t(0), int64_t(1), int64_t(-1), int64_t(127), int64_t(-128), INT64_MAX, INT64_MIN})
        EXPECT_EQ(there_and_back(n), n);
    for (const uint64_t n : {uint64_t(0), uint64_t(127), uint64_t(128), UINT64_MAX}) EXPECT_EQ(there_and_back(n), n);
}

TEST(RecordFields, ASegmentComesBack) {
    const int64_t sizes[] = {2, 3}, strides[] = {3, 1};
    TensorView view{};
    view.data = view.storage_data = &sizes;
    view.storage = &strides;
    view.impl = &view;
    view.storage_bytes = 24;
    view.numel = 6;
    view.sizes = sizes;
    view.strides = strides;
    view.ndim = 2;
    view.dtype = DType::BFloat16;
    Segment segment;
    segment.thread = 3;
    segment.head = Head::OpEnd;
    segment.leaves_by = Head::Names;
    segment.facts.scalars = {0.5, -1};
    segment.inputs.emplace_back(view);
    TensorAnswer answer;
    answer.place = 1;
    answer.range = Range{5, 1, true};
    segment.answers.tensors.push_back(answer);
    segment.answers.elements[100] = "abcd";
    BirthNote note;
    note.pid = 12;
    std::strcpy(note.op, "aten::log");
    segment.answers.notes = {note, std::nullopt};
    const Segment read = there_and_back(segment);
    EXPECT_EQ(read.thread, 3u);
    EXPECT_EQ(read.leaves_by, Head::Names);
    EXPECT_EQ(read.facts.scalars, segment.facts.scalars);
    ASSERT_EQ(read.inputs.size(), 1u);
    EXPECT_EQ(read.inputs[0].view.strides[0], 3);
    EXPECT_EQ(read.inputs[0].view.impl, &view);
    ASSERT_EQ(read.answers.tensors.size(), 1u);
    EXPECT_EQ(read.answers.tensors[0].tensor.view.data, &sizes);
    EXPECT_TRUE(read.answers.tensors[0].range->suspicious);
    EXPECT_EQ(read.answers.elements.at(100), "abcd");
    ASSERT_EQ(read.answers.notes.size(), 2u);
    EXPECT_STREQ(read.answers.notes[0]->op, "aten::log");
    EXPECT_FALSE(read.answers.notes[1].has_value());
}

TEST(RecordFields, SizesThatDoNotAgreeAreRefused) {
    RecordedView view;
    view.dims = {2, 1};
    view.view.ndim = 1;
    view.point();
    view.view.numel = 3;
    AddressWriter addresses;
    ByteWriter out(addresses);
    write(out, view);
    AddressList list{0};
    ByteReader in(out.out(), list);
    RecordedView read;
    EXPECT_THROW(transfer(in, read), RecordError);
}

}  // namespace
}  // namespace numsan
