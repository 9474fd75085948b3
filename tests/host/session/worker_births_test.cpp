// Births in forked workers: what a child leaves, the parent finds; what is nobody's business is not left.
#include "host/session/worker_births.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <functional>
#include <string>
#include <vector>

#include "host/cause/birth.h"
#include "tests/host/verdict/fake_stacks.h"
#include "tests/host/verdict/made_up.h"

namespace numsan {
namespace {

constexpr char kTorch[] = "/env/lib/python3.11/site-packages/torch";
constexpr StackId kInWorker = 2, kInLibrary = 3, kOnlyTorch = 4, kElsewhere = 5, kArrival = 6, kLongPath = 7;

SourceFrame python(const std::string& file, const std::string& function, int line) {
    return {file, function, line, nullptr, false};
}
SourceFrame torch(const std::string& file, const std::string& function) {
    return python(kTorch + ("/" + file), function, 12);
}

/// Runs `play` in a forked child and waits for it; true when it returned true.
bool in_child(const std::function<bool()>& play) {
    const pid_t child = fork();
    if (child == 0) _exit(play() ? 0 : 1);
    int status = 1;
    return child > 0 && waitpid(child, &status, 0) == child && WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

BirthNote note_of(int64_t first_bad, int64_t nan = 3) {
    BirthNote note;
    note.numel = 48;
    note.nan = nan;
    note.first_bad = first_bad;
    return note;
}

class WorkerBirthsTest : public testing::Test {
  protected:
    WorkerBirthsTest() {
        const SourceFrame loop = torch("utils/data/_utils/worker.py", "_worker_loop");
        const SourceFrame fetch = torch("utils/data/_utils/fetch.py", "fetch");
        const SourceFrame train = python("/home/me/train.py", "main", 40);
        stacks.stacks[kInWorker] = {python("/home/me/data.py", "__getitem__", 7), fetch, loop, train};
        stacks.stacks[kInLibrary] = {python("/env/lib/python3.11/site-packages/images/scale.py", "scale", 5),
                                     python("/home/me/data.py", "__getitem__", 8), fetch, loop, train};
        stacks.stacks[kOnlyTorch] = {torch("utils/data/_utils/collate.py", "collate"), fetch, loop, train};
        stacks.stacks[kElsewhere] = {python("/home/me/other.py", "work", 3), train};
        stacks.stacks[kArrival] = {torch("multiprocessing/reductions.py", "rebuild_tensor"), train};
        stacks.stacks[kLongPath] = {python("/home/" + std::string(1000, 'x') + ".py", "__getitem__", 7), loop, train};
        birth.id = 5;
        birth.kind = kNaN;
        birth.op = "aten::div";
        birth.mechanism = Mechanism::DIV0;
        birth.seq = OpSeq{9};
        birth.stack = kInWorker;
    }

    /// A worker that leaves one note.
    void leave(const BirthNote& note) {
        ASSERT_TRUE(in_child([&] {
            table.begin_child();
            if (!table.leaves()) return false;
            table.leave(note, birth);
            BirthNote own = note;
            return !table.find(own, kArrival);  // its own notes are no news to a worker
        }));
    }

    FakeStacks stacks;
    WorkerBirths table{stacks, PlaceFinder(kTorch)};
    Birth birth;
};

TEST_F(WorkerBirthsTest, ParentFindsTheLineInTheWorker) {
    EXPECT_FALSE(table.leaves()) << "the parent leaves nothing";
    table.leave(note_of(2), birth);
    leave(note_of(2));
    BirthNote found = note_of(2);
    ASSERT_TRUE(table.find(found, kArrival));
    EXPECT_STREQ(found.op, "aten::div");
    EXPECT_EQ(found.mechanism, Mechanism::DIV0);
    EXPECT_STREQ(found.file, "/home/me/data.py");
    EXPECT_STREQ(found.function, "__getitem__");
    EXPECT_EQ(found.line, 7);
    EXPECT_EQ(found.birth, 5u);
    EXPECT_EQ(found.seq, OpSeq{9});
    EXPECT_NE(found.pid, getpid());
    EXPECT_FALSE(found.intended || found.inherited);
    found = note_of(2);
    EXPECT_TRUE(table.find(found, kArrival)) << "the next batch may look the same";
}

TEST_F(WorkerBirthsTest, OnlyForATensorThatLooksTheSameAndArrives) {
    BirthNote nothing = note_of(2);
    EXPECT_FALSE(table.find(nothing, kArrival)) << "nothing was left yet";
    leave(note_of(2));
    BirthNote other = note_of(3);
    EXPECT_FALSE(table.find(other, kArrival));
    other = note_of(2, 4);
    EXPECT_FALSE(table.find(other, kArrival));
    other = note_of(2);
    other.dtype = DType::Float64;
    EXPECT_FALSE(table.find(other, kArrival));
    other = note_of(2);
    other.kind = kPosInf;
    EXPECT_FALSE(table.find(other, kArrival));
    other = note_of(2);
    EXPECT_FALSE(table.find(other, kElsewhere)) << "a tensor that came from a file";
    EXPECT_TRUE(table.find(other, kArrival));
}

TEST_F(WorkerBirthsTest, LineOfALibraryCountsAndTorchDoesNot) {
    birth.stack = kInLibrary;
    leave(note_of(1));
    BirthNote found = note_of(1);
    ASSERT_TRUE(table.find(found, kArrival));
    EXPECT_STREQ(found.function, "scale");
    birth.stack = kOnlyTorch;
    leave(note_of(2));
    found = note_of(2);
    EXPECT_FALSE(table.find(found, kArrival)) << "the parent's line is as good";
}

TEST_F(WorkerBirthsTest, NothingIsLeftOutsideAWorkersLoop) {
    birth.stack = kElsewhere;
    leave(note_of(1));
    BirthNote found = note_of(1);
    EXPECT_FALSE(table.find(found, kArrival));
}

TEST_F(WorkerBirthsTest, PathThatDoesNotFitIsNotCutShort) {
    birth.stack = kLongPath;
    leave(note_of(1));
    BirthNote found = note_of(1);
    EXPECT_FALSE(table.find(found, kArrival));
}

TEST_F(WorkerBirthsTest, IntendedInfinityNeedsNoLine) {
    birth.stack = kOnlyTorch;
    birth.intended = true;
    leave(note_of(1));
    BirthNote found = note_of(1);
    ASSERT_TRUE(table.find(found, kArrival));
    EXPECT_TRUE(found.intended);
}

TEST_F(WorkerBirthsTest, BirthBeforeTheForkIsTheParentsOwn) {
    birth.stack = kElsewhere;
    BirthNote note = note_of(1);
    note.inherited = true;
    leave(note);
    BirthNote found = note_of(1);
    ASSERT_TRUE(table.find(found, kArrival));
    EXPECT_TRUE(found.inherited);
    EXPECT_EQ(found.birth, 5u);
}

TEST_F(WorkerBirthsTest, LatestNoteHolds) {
    leave(note_of(1));
    birth.op = "aten::log";
    birth.stack = kInLibrary;
    leave(note_of(1));
    BirthNote found = note_of(1);
    ASSERT_TRUE(table.find(found, kArrival));
    EXPECT_STREQ(found.op, "aten::log");
    EXPECT_EQ(found.line, 5);
}

TEST_F(WorkerBirthsTest, ManyWorkersAtOnceLeaveWholeNotes) {
    const pid_t parent = getpid();
    std::vector<pid_t> workers;
    for (int w = 0; w < 4; ++w) {
        const pid_t child = fork();
        ASSERT_GE(child, 0);
        if (child == 0) {
            table.begin_child();
            for (int64_t i = 0; i < 4000; ++i) {
                birth.id = static_cast<BirthId>(i + 1);
                birth.seq = OpSeq{i % 50};
                table.leave(note_of(i % 50), birth);
            }
            _exit(0);
        }
        workers.push_back(child);
    }
    for (int64_t i = 0; i < 20000; ++i) {
        BirthNote found = note_of(i % 50);
        if (!table.find(found, kArrival)) continue;
        ASSERT_EQ(found.seq, OpSeq{i % 50});
        ASSERT_NE(found.pid, parent);
        ASSERT_STREQ(found.file, "/home/me/data.py");
    }
    for (const pid_t worker : workers) {
        int status = 1;
        ASSERT_EQ(waitpid(worker, &status, 0), worker);
        EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    }
    int whole = 0;
    for (int64_t i = 0; i < 50; ++i) {
        BirthNote found = note_of(i);
        whole += table.find(found, kArrival) ? 1 : 0;
    }
    EXPECT_GE(whole, 45) << "two notes may want one slot, hardly more";
}

// Through the whole analysis: a worker's stream and its parent's, over the same table.

struct Shared {
    FakeStacks stacks;
    WorkerBirths table{stacks, PlaceFinder(kTorch)};
    Stream stream;

    Shared() {
        stacks.stacks[kInWorker] = {python("/home/me/data.py", "__getitem__", 7),
                                    torch("utils/data/_utils/worker.py", "_worker_loop"),
                                    python("/home/me/train.py", "main", 40)};
        stacks.stacks[kArrival] = {torch("multiprocessing/reductions.py", "rebuild_tensor"),
                                   python("/home/me/train.py", "main", 41)};
        stream.context.in_module = false;
        stream.verdict.set_exchange(&table);
    }

    bool in_worker(const std::function<void()>& play) {
        return in_child([&] {
            stream.verdict.lock();
            stream.verdict.forget_pending();
            stream.verdict.unlock();
            table.begin_child();
            stream.context.stack = kInWorker;
            play();
            return true;
        });
    }

    /// The batch arrives and a loss is made of it.
    void arrive(const MadeUp& batch) {
        stream.context.stack = kArrival;
        stream.op("aten::set_", {batch.view()}, {batch.written()});
        stream.context.stack = 1;
        stream.loss(batch);
    }
};

TEST(BirthNote, FindingIsOfTheWorkersLine) {
    Shared s;
    ASSERT_TRUE(s.in_worker([&] {
        MadeUp x{0, 1}, y{0, 1}, z{kNan, 1};
        s.stream.op("aten::div", {x.view(), y.view()}, {z.returned()});
    }));
    MadeUp batch{kNan, 1};
    s.arrive(batch);
    const Birth birth = s.stream.only().birth;
    EXPECT_EQ(birth.op, "aten::div");
    EXPECT_EQ(birth.mechanism, Mechanism::DIV0);
    EXPECT_EQ(birth.phase, Phase::Data);
    ASSERT_TRUE(birth.made_at.has_value());
    EXPECT_EQ(birth.made_at->file, "/home/me/data.py");
    EXPECT_EQ(birth.made_at->line, 7);
    ASSERT_EQ(birth.evidence.size(), 1u);
    EXPECT_EQ(birth.evidence[0].rfind("made in DataLoader worker ", 0), 0u);
    EXPECT_EQ(birth.features.op, "div");
}

TEST(BirthNote, WithoutANoteItArrivedWithTheTensor) {
    Shared s;
    MadeUp batch{kNan, 1};
    s.arrive(batch);
    const Birth birth = s.stream.only().birth;
    EXPECT_EQ(birth.op, "external");
    EXPECT_EQ(birth.mechanism, Mechanism::DATA);
    EXPECT_EQ(birth.phase, Phase::Data);
    EXPECT_FALSE(birth.made_at.has_value());
}

TEST(BirthNote, StepIsThatOfTheFirstUse) {
    Shared s;
    MadeUp batch{kNan, 1}, out{kNan, 1};
    s.stream.context.stack = kArrival;
    s.stream.context.step = 1;
    s.stream.op("aten::set_", {batch.view()}, {batch.written()});
    s.stream.context.step = 4;
    s.stream.op("aten::neg", {batch.view()}, {out.returned()});
    s.stream.context.step = 5;
    s.stream.loss(out);
    const Birth birth = s.stream.only().birth;
    EXPECT_EQ(birth.step, 4) << "a batch may arrive while others are waited for";
    EXPECT_EQ(birth.seq, OpSeq{1});
    EXPECT_EQ(birth.reader, "aten::neg");
}

TEST(BirthNote, MaskThatAWorkerWroteStaysIntended) {
    Shared s;
    ASSERT_TRUE(s.in_worker([&] {
        MadeUp mask{0, -kInf};
        s.stream.infinite_scalar = true;
        s.stream.op("aten::full", {}, {mask.returned()}, OpClass::Constant);
    }));
    MadeUp mask{0, -kInf}, out{0, 1};
    s.stream.context.stack = kArrival;
    s.stream.op("aten::set_", {mask.view()}, {mask.written()});
    s.stream.op("aten::item", {mask.view()}, {}, OpClass::HostRead);
    s.stream.finish();
    EXPECT_TRUE(s.stream.outcome.escaped.empty());
    EXPECT_EQ(s.stream.verdict.counts().births, 0);
}

TEST(BirthNote, BirthBeforeTheForkIsFoundAgain) {
    Shared s;
    MadeUp x{0, 1}, y{0, 1}, z{kNan, 1};
    const BirthId made = s.stream.op("aten::div", {x.view(), y.view()}, {z.returned()});
    ASSERT_NE(made, 0u);
    ASSERT_TRUE(s.in_worker([&] {
        MadeUp batch{1, kNan, 1};
        s.stream.op("aten::stack", {z.view()}, {batch.returned()});
    }));
    MadeUp batch{1, kNan, 1};
    s.arrive(batch);
    EXPECT_EQ(s.stream.only().birth.id, made);
    EXPECT_EQ(s.stream.verdict.counts().births, 1);
}

}  // namespace
}  // namespace numsan
