// Operands on the host of a device's events, which are judged when the program has gone on.
#include "host/device/host_operands.h"

#include <gtest/gtest.h>
#include <sys/mman.h>

#include <utility>
#include <vector>

#include "tests/host/device/on_device.h"

namespace numsan {
namespace {

TEST(HostOperands, MayBeGoneWhenTheyAreJudged) {
    OnDevice d;
    MadeUp masked{-kInf, 1}, device{-kInf, 1}, x{-1, 2}, y{kNan, 1}, from_host{kNan, 1}, product{kNan, 2};
    d.scanner.held = true;
    d.played.op(kFill, {masked.view()}, {masked.returned()}, 3);
    d.op(kCopy, {masked.view()}, {on_device(device.returned())}, 4);
    d.played.op(kLog, {x.view()}, {y.returned()}, 5);
    d.op(kCopy, {y.view()}, {on_device(from_host.returned())}, 6);
    for (MadeUp* gone : {&masked, &y}) {  // their memory is used again
        gone->values = {1, 1};
        d.played.op(kMul, {x.view()}, {gone->returned()});
    }
    d.op(kMul, {on_device(from_host.view()), on_device(device.view())}, {on_device(product.returned())}, 7);
    d.loss(product);
    d.scanner.held = false;
    const json report = d.finish();
    ASSERT_EQ(report["findings"].size(), 1u) << report["findings"].dump(1);
    EXPECT_EQ(report["findings"][0]["op"], "aten::log");
}

TEST(HostOperands, TakeNothingFromWhatHasTheirAddressNow) {
    OnDevice d;
    MadeUp old{1, 1}, device{1, 1}, x{-1, 2}, y{kNan, 1}, product{kNan, 2};
    const auto at_the_same_address = [&](TensorView view) {
        view.storage = old.view().storage;
        return view;
    };
    d.scanner.held = true;
    d.op(kCopy, {old.view()}, {on_device(device.returned())}, 3);
    d.played.op(kLog, {x.view()}, {at_the_same_address(y.returned())}, 4);
    d.scanner.held = false;
    d.read(device);  // the copy is judged
    d.played.op(kMul, {at_the_same_address(y.view())}, {product.returned()}, 5);
    d.played.loss(product);
    const json report = d.finish();
    ASSERT_EQ(report["findings"].size(), 1u) << report["findings"].dump(1);
    EXPECT_EQ(report["findings"][0]["op"], "aten::log");
}

TEST(HostOperands, ThatNobodyHadWrittenAreKnownOnADevice) {
    OnDevice d;
    MadeUp memory{kNan, 1}, device{kNan, 1}, y{kNan, 2};
    d.scanner.held = true;
    d.played.op(kEmpty, {}, {memory.returned()});
    d.op(kCopy, {memory.view()}, {on_device(device.returned())}, 3);
    memory.values = {1, 1};
    d.played.op(kFill, {memory.view()}, {memory.written()});
    d.op(kMul, {on_device(device.view())}, {on_device(y.returned())}, 4);
    d.loss(y);
    d.scanner.held = false;
    const json report = d.finish();
    ASSERT_EQ(report["findings"].size(), 1u) << report["findings"].dump(1);
    EXPECT_EQ(report["findings"][0]["mechanism"], "UNINIT");
}

/// A batch that was copied and freed: what was not read then must not be read later.
TEST(HostOperands, OfManyMegabytesMayBeGoneWhenTheyAreJudged) {
    OnDevice d;
    std::vector<float> values((3 << 20) / sizeof(float), 1.0F);
    values[7] = kNan;
    const size_t bytes = values.size() * sizeof(float);
    MadeUp copied{std::move(values)}, y{kNan, 2};
    void* const memory = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    ASSERT_NE(memory, MAP_FAILED);
    TensorView batch = copied.view();
    batch.data = batch.storage_data = memory;
    batch.storage = batch.impl = memory;
    d.scanner.held = true;
    d.op(kCopy, {batch}, {on_device(copied.returned())}, 3);
    munmap(memory, bytes);
    d.op(kMul, {on_device(copied.view())}, {on_device(y.returned())}, 4);
    d.loss(y);
    d.scanner.held = false;
    const json report = d.finish();
    ASSERT_EQ(report["findings"].size(), 1u) << report["findings"].dump(1);
    EXPECT_EQ(report["findings"][0]["mechanism"], "DATA");
    EXPECT_EQ(report["findings"][0]["kind"], "nan");
}

/// Its copy is of a narrower type, and overflows: the batch was healthy.
TEST(HostOperands, OfManyMegabytesAreNotBlamedForACast) {
    OnDevice d;
    constexpr size_t kCount = size_t(1) << 19;
    std::vector<double> halves(kCount, 1.0);
    halves[9] = kInf;
    MadeUp batch{std::vector<float>(kCount, 70000.0F)}, y{kNan, 2};
    MadeUpHalf copied{halves};
    d.scanner.held = true;
    d.op(kCopy, {batch.view()}, {on_device(copied.returned())}, 3);
    d.op(kMul, {on_device(copied.view())}, {on_device(y.returned())}, 4);
    d.loss(y);
    d.scanner.held = false;
    const json report = d.finish();
    ASSERT_GE(report["findings"].size(), 1u);
    for (const json& finding : report["findings"]) EXPECT_NE(finding["mechanism"], "DATA") << finding.dump(1);
}

/// Activations that are kept on the host: the way back begins before the copy there is judged.
TEST(HostOperands, AreWhatACopyUnderWayMakesOfThem) {
    OnDevice d;
    MadeUp x{-1, 2}, y{kNan, 1}, host{kNan, 1}, back{kNan, 1}, z{kNan, 2};
    d.scanner.held = true;
    d.played.op(kEmpty, {}, {host.returned()});
    d.op(kLog, {on_device(x.view())}, {on_device(y.returned())}, 3);
    d.op(kCopy, {on_device(y.view())}, {host.written()}, 4);
    d.op(kCopy, {host.view()}, {on_device(back.returned())}, 5);
    d.op(kMul, {on_device(back.view())}, {on_device(z.returned())}, 6);
    d.loss(z);
    d.scanner.held = false;
    const json report = d.finish();
    ASSERT_EQ(report["findings"].size(), 1u) << report["findings"].dump(1);
    EXPECT_EQ(report["findings"][0]["op"], "aten::log");
}

/// The second copy is on its way while the first is judged.
TEST(HostOperands, AreFoundBadOnce) {
    OnDevice d;
    MadeUp batch{kNan, 1}, first{kNan, 1}, second{kNan, 1}, y{kNan, 2}, z{kNan, 2};
    d.scanner.held = true;
    d.op(kCopy, {batch.view()}, {on_device(first.returned())}, 3);
    d.op(kCopy, {batch.view()}, {on_device(second.returned())}, 4);
    d.op(kMul, {on_device(first.view())}, {on_device(y.returned())}, 5);
    d.loss(y);
    d.op(kMul, {on_device(second.view())}, {on_device(z.returned())}, 6);
    d.loss(z);
    d.scanner.held = false;
    const json report = d.finish();
    ASSERT_EQ(report["findings"].size(), 1u) << report["findings"].dump(1);
    EXPECT_EQ(report["findings"][0]["mechanism"], "DATA");
    EXPECT_EQ(report["noted"]["births"], 1);
}

}  // namespace
}  // namespace numsan
