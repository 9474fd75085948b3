// Floats that ops copy as integers: deepcopy() and Storage.clone() copy the bytes of a storage.
#include "host/birth/copied_bits.h"

#include <gtest/gtest.h>

#include "tests/host/verdict/made_up.h"

namespace numsan {
namespace {

/// The bytes of a tensor's storage, or `bytes` of them, as torch's view of another type has them.
TensorView bytes_in(const MadeUpTensor& tensor, uint32_t flags = 0, const int64_t* bytes = nullptr) {
    TensorView made = tensor.view();
    static constexpr int64_t kOne = 1;
    made.integer = IntegerType::UInt8;
    made.numel = bytes != nullptr ? *bytes : made.storage_bytes;
    made.sizes = bytes != nullptr ? bytes : &tensor.size;
    made.strides = &kOne;
    made.flags = (made.flags & ~uint32_t(kScannable)) | flags;
    return made;
}

/// A buffer that has gone bad, reported once, and another one that is computed with later.
struct Copies {
    Stream s;
    MadeUp weight = MadeUp({1, 1}, kParameter);
    MadeUp x{-1, 1}, bad{kNan, 0}, copy{kNan, 0}, y{kNan, 0};

    Copies() {
        s.op("aten::log", {x.view()}, {bad.returned()});
        use(bad);
    }
    void use(const MadeUp& buffer) {
        s.op("aten::mul", {weight.view(), buffer.view()}, {y.returned()});
        s.loss(y);
    }
    void copy_bytes(const MadeUp& from, const MadeUp& to) {
        s.op("aten::copy_", {bytes_in(to), bytes_in(from)}, {bytes_in(to, kWritten)}, OpClass::Overwriting);
    }
    size_t found() const { return s.outcome.escaped.size(); }
};

TEST(CopiedBits, CopyOfAStorageIsNoBirth) {
    Copies c;
    ASSERT_EQ(c.found(), 1u);
    const int64_t before = c.s.verdict.counts().births;
    c.copy_bytes(c.bad, c.copy);
    EXPECT_TRUE(c.s.verdict.is_sure_of(c.copy.view()));
    c.use(c.copy);
    EXPECT_EQ(c.s.verdict.counts().births, before);
    for (const auto& escape : c.s.outcome.escaped) EXPECT_EQ(escape.birth.mechanism, Mechanism::DOM);
}

TEST(CopiedBits, ResultOfACloneOfBytesIsNoBirth) {
    Copies c;
    const int64_t before = c.s.verdict.counts().births;
    c.s.op("aten::clone", {bytes_in(c.bad)}, {bytes_in(c.copy, kReturned)}, OpClass::Preserving);
    c.use(c.copy);
    EXPECT_EQ(c.s.verdict.counts().births, before);
}

TEST(CopiedBits, WhatComesInPlaceOfABadCopyIsABirthOfItsOwn) {
    Copies c;
    MadeUp data{kNan, 1};
    c.copy_bytes(c.bad, c.copy);
    c.copy_bytes(data, c.copy);  // nothing is known of it
    EXPECT_FALSE(c.s.verdict.knows(c.copy.view()));
    const int64_t before = c.s.verdict.counts().births;
    c.use(c.copy);
    EXPECT_EQ(c.s.verdict.counts().births, before + 1);
}

TEST(CopiedBits, PartOfAStorageMayBeAGoodOne) {
    Copies c;
    MadeUp half{0, 0};
    const int64_t four = 4;
    c.s.op("aten::copy_", {bytes_in(half, 0, &four), bytes_in(c.bad, 0, &four)}, {bytes_in(half, kWritten, &four)},
           OpClass::Overwriting);
    EXPECT_TRUE(c.s.verdict.knows(half.view()));
    EXPECT_FALSE(c.s.verdict.is_sure_of(half.view()));
}

TEST(CopiedBits, StorageThatMovesToItsCopysMemoryStaysBad) {
    Copies c;
    c.copy_bytes(c.bad, c.copy);
    TensorView shared = c.bad.view(), other = c.bad.view();
    shared.data = shared.storage_data = c.copy.values.data();
    other.data = other.storage_data = c.y.values.data();
    EXPECT_TRUE(c.s.verdict.is_sure_of(shared));
    EXPECT_FALSE(c.s.verdict.knows(other)) << "memory of which nothing is known is new";
}

TEST(CopiedBits, ArithmeticOfBitsHandsNothingOn) {
    Copies c;
    c.s.op("aten::bitwise_and", {bytes_in(c.bad)}, {bytes_in(c.copy, kReturned)});
    EXPECT_FALSE(c.s.verdict.knows(c.copy.view()));
}

TEST(CopiedBits, NewMemoryAtTheAddressOfABadOneHandsNothingOn) {
    Copies c;
    c.s.op("aten::empty", {}, {bytes_in(c.bad, kReturned)}, OpClass::Allocation);
    c.copy_bytes(c.bad, c.copy);
    EXPECT_FALSE(c.s.verdict.knows(c.copy.view()));
}

TEST(CopiedBits, OtherTypeOfTheSameNumbersHandsNothingOn) {
    Copies c;
    TensorView wide = bytes_in(c.copy, kReturned);
    wide.integer = IntegerType::Int32;
    c.s.op("aten::_to_copy", {bytes_in(c.bad)}, {wide}, OpClass::Preserving);
    EXPECT_FALSE(c.s.verdict.knows(c.copy.view()));
}

TEST(CopiedBits, MemoryThatWasWrittenAsBytesIsWritten) {
    Stream s;
    MadeUp from{kNan, 1}, to{kNan, 1}, y{kNan, 1};
    s.op("aten::empty", {}, {to.returned()}, OpClass::Allocation);
    s.op("aten::copy_", {bytes_in(to), bytes_in(from)}, {bytes_in(to, kWritten)}, OpClass::Overwriting);
    s.op("aten::add", {to.view()}, {y.returned()});
    s.loss(y);
    ASSERT_EQ(s.outcome.escaped.size(), 1u);
    EXPECT_NE(s.only().birth.mechanism, Mechanism::UNINIT);
}

}  // namespace
}  // namespace numsan
