// Any shape and stride: permuted, sliced, expanded. What lies between the elements is NaN, or not to be read at all.
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstdint>
#include <random>
#include <vector>

#include "tests/cuda/compare.h"
#include "tests/cuda/patterns.h"

namespace numsan::gpu {
namespace {

class Strided : public testing::TestWithParam<DType> {};
INSTANTIATE_TEST_SUITE_P(All, Strided, testing::ValuesIn(all_types()), type_name);

/// A random tensor over its own memory, NaN wherever no element lies.
struct RandomTensor {
    std::vector<int64_t> sizes, strides;
    std::unique_ptr<Lanes> lanes;
    std::vector<int64_t> places;  // first lane of each distinct element
    int64_t offset = 0;           // elements before the first

    RandomTensor(DType dtype, std::mt19937_64& random) {
        const DTypeInfo& t = info(dtype);
        const int ndim = int(random() % 9);
        std::vector<int> order(static_cast<size_t>(ndim));
        std::iota(order.begin(), order.end(), 0);
        std::shuffle(order.begin(), order.end(), random);
        sizes.resize(size_t(ndim));
        strides.resize(size_t(ndim));
        const int64_t budget = ndim <= 2 ? 90 : ndim <= 4 ? 9 : 4;
        const bool gaps = random() % 4 != 0;
        int64_t step = random() % 3 == 0 && gaps ? 1 + int64_t(random() % 4) : 1;
        for (const int d : order) {
            sizes[size_t(d)] = 1 + int64_t(random() % uint64_t(budget));
            const bool expanded = random() % 8 == 0;
            strides[size_t(d)] = expanded ? 0 : step;
            if (!expanded) step *= sizes[size_t(d)];
            if (gaps && random() % 3 == 0) step += 1 + int64_t(random() % 8);
        }
        offset = int64_t(random() % 20);
        places.push_back(offset);
        for (int d = 0; d < ndim; ++d) {
            if (strides[size_t(d)] == 0) continue;
            const size_t before = places.size();
            for (int64_t i = 1; i < sizes[size_t(d)]; ++i) {
                for (size_t j = 0; j < before; ++j) places.push_back(places[j] + i * strides[size_t(d)]);
            }
        }
        const int64_t last = *std::max_element(places.begin(), places.end());
        lanes = std::make_unique<Lanes>(dtype, (last + 1) * t.lanes);
        lanes->fill(nan_of(t));
        for (const int64_t place : places) {
            for (int lane = 0; lane < t.lanes; ++lane) lanes->set(place * t.lanes + lane, finite(t, random));
        }
    }
};

TEST_P(Strided, RandomShapesBetweenNaNs) {
    const DTypeInfo& t = info(GetParam());
    std::mt19937_64 random(uint64_t(GetParam()) + 5);
    for (int round = 0; round < 300; ++round) {
        RandomTensor r(GetParam(), random);
        const Shaped tensor(r.lanes->data() + r.offset * t.element_bytes(), GetParam(), r.sizes, r.strides);
        const Grid grid{1 + uint32_t(random() % 7), 1, uint32_t(round)};
        ASSERT_EQ(scan_and_compare(tensor.view, grid), "") << round;
        for (int bad = 0; bad < 3; ++bad) {
            const int64_t place = r.places[random() % r.places.size()];
            r.lanes->set(place * t.lanes + int64_t(random() % t.lanes), edges(t)[random() % edges(t).size()]);
        }
        ASSERT_EQ(scan_and_compare(tensor.view, grid), "") << round;
    }
}

// Whatever a load's size, of which a run of memory between gaps is three: one value that counts, in each lane of it.
TEST_P(Strided, LoadsOfEverySize) {
    const DTypeInfo& t = info(GetParam());
    const uint64_t usual = t.has_zero() ? one(t) | 1 : 101;
    for (int64_t load = t.lane_bytes; load <= 16; load *= 2) {
        const int64_t element = t.element_bytes(), unit = std::max(load, element), rows = 150;
        const int64_t offset = load == 16 ? 0 : load, run = 3 * unit / element, pitch = 5 * unit / element;
        Lanes lanes(GetParam(), (offset + rows * 5 * unit) / t.lane_bytes);
        lanes.fill(nan_of(t));
        const auto place = [&](int64_t row, int64_t lane) { return (offset + row * 5 * unit) / t.lane_bytes + lane; };
        for (int64_t row = 0; row < rows; ++row) {
            for (int64_t lane = 0; lane < run * t.lanes; ++lane) lanes.set(place(row, lane), usual);
        }
        const Shaped tensor(lanes.data() + offset, GetParam(), {rows, run}, {pitch, 1});
        ScanItem item{};
        ScanDim dims[kMaxScanDims];
        ASSERT_EQ(describe(tensor.view, item, dims), Admission::Added);
        ASSERT_EQ(1 << item.unit_log2, load);
        ASSERT_EQ(scan_and_compare(tensor.view), "") << load;
        for (int64_t lane = 0; lane < unit / t.lane_bytes; ++lane) {
            const int64_t changed = place(rows - 1 - lane, lane);
            for (const uint64_t value : {nan_of(t), uint64_t(t.has_zero() ? 1 : 0), usual + 1}) {
                lanes.set(changed, value);
                ASSERT_EQ(scan_and_compare(tensor.view), "") << load << ' ' << lane << ' ' << value;
            }
            lanes.set(changed, usual);
        }
    }
}

// Each has its own part of the table's dimensions, as an output and as an input of a bad one.
TEST_P(Strided, SeveralOfOneBatch) {
    const DTypeInfo& t = info(GetParam());
    std::mt19937_64 random(uint64_t(GetParam()) + 6);
    for (uint32_t round = 1; round <= 8; ++round) {
        constexpr uint32_t kTensors = 5;
        std::vector<std::unique_ptr<RandomTensor>> tensors;
        std::vector<Shaped> shaped;
        std::vector<TensorView> views;
        for (uint32_t i = 0; i < kTensors; ++i) {
            tensors.push_back(std::make_unique<RandomTensor>(GetParam(), random));
            RandomTensor& r = *tensors.back();
            r.lanes->set(r.places[random() % r.places.size()] * t.lanes, nan_of(t));
            shaped.emplace_back(r.lanes->data() + r.offset * t.element_bytes(), GetParam(), r.sizes, r.strides);
        }
        for (const Shaped& one : shaped) views.push_back(one.view);
        Words words(64, 8, kTensors);
        HitReader reader(words.ring(), words.capacity());
        BatchFiller filler;
        filler.begin(words.header());
        const InputItems inputs = filler.add_inputs(views.data(), int(kTensors));
        ASSERT_EQ(inputs.count, kTensors);
        for (uint32_t i = 0; i < kTensors; ++i)
            ASSERT_EQ(filler.add(views[i], i, i, 0, i == round % kTensors ? inputs : InputItems{}), Admission::Added);
        ASSERT_TRUE(filler.close());
        run(filler, Grid{3, 1, round});
        EXPECT_TRUE(words.at_rest());
        uint32_t of_outputs = 0, of_inputs = 0;
        for (const HitSlot& hit : words.take(reader)) {
            const bool output = hit.role == HitRole::Output;
            ++(output ? of_outputs : of_inputs);
            const TensorView& view = views[output ? hit.slot : hit.argument];
            EXPECT_EQ(difference(to_health(hit), reference_scan(view).health), "") << round << ' ' << output;
            if (!output) continue;
            EXPECT_EQ(difference(words.results[hit.slot], &hit, view), "") << round << ' ' << hit.slot;
        }
        EXPECT_EQ(of_outputs, kTensors);
        EXPECT_EQ(of_inputs, kTensors);
    }
}

/// Pages of which some may not be touched.
class Pages {
  public:
    explicit Pages(size_t count) : size_(size_t(sysconf(_SC_PAGESIZE))), count_(count) {
        void* p = mmap(nullptr, size_ * count, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        base_ = p == MAP_FAILED ? nullptr : static_cast<unsigned char*>(p);
    }
    ~Pages() { munmap(base_, size_ * count_); }
    Pages(const Pages&) = delete;
    Pages& operator=(const Pages&) = delete;
    unsigned char* at(size_t page) { return base_ + page * size_; }
    size_t size() const { return size_; }
    void forbid(size_t page) { ASSERT_EQ(mprotect(at(page), size_, PROT_NONE), 0); }

  private:
    size_t size_, count_;
    unsigned char* base_;
};

TEST_P(Strided, GapsAreNeverRead) {
    const DTypeInfo& t = info(GetParam());
    Pages pages(7);
    for (const size_t gap : {0, 2, 4, 6}) pages.forbid(gap);
    const int64_t row = int64_t(pages.size()) / t.element_bytes();
    EXPECT_EQ(scan_and_compare(Shaped(pages.at(1), GetParam(), {3, row}, {2 * row, 1}).view, Grid{3, 1, 9}), "");
    EXPECT_EQ(scan_and_compare(Shaped(pages.at(1), GetParam(), {row, 3}, {1, 2 * row}).view, Grid{3, 1, 9}), "");
}

TEST_P(Strided, NothingBeforeOrAfterIsRead) {
    const DTypeInfo& t = info(GetParam());
    Pages pages(3);
    pages.forbid(0);
    pages.forbid(2);
    for (int64_t n = 1; n < 40; ++n) {
        const int64_t bytes = n * t.element_bytes();
        EXPECT_EQ(scan_and_compare(Shaped(pages.at(1), GetParam(), n).view), "") << n;
        EXPECT_EQ(scan_and_compare(Shaped(pages.at(2) - bytes, GetParam(), n).view), "") << n;
    }
}

TEST(StridedLarge, ManyChunksWithGaps) {
    std::mt19937_64 random(3);
    const DTypeInfo& t = info(DType::BFloat16);
    for (const int64_t columns : {256, 250, 33}) {
        Lanes lanes(DType::BFloat16, 700 * 300);
        lanes.fill(nan_of(t));
        for (int64_t r = 0; r < 700; ++r) {
            for (int64_t c = 0; c < columns; ++c) lanes.set(r * 300 + c, finite(t, random));
        }
        const Shaped tensor(lanes.data(), DType::BFloat16, {700, columns}, {300, 1});
        EXPECT_EQ(scan_and_compare(tensor.view, Grid{6, 1, 2}), "");
        lanes.set(431 * 300 + columns - 1, nan_of(t));
        EXPECT_EQ(scan_and_compare(tensor.view, Grid{6, 1, 2}), "");
    }
}

}  // namespace
}  // namespace numsan::gpu
