// What is recorded makes the same report again; what cannot be recorded says so.
#include <sys/wait.h>
#include <unistd.h>
#include <zlib.h>

#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <string>
#include <thread>

#include "tests/host/event/storages.h"
#include "tests/host/record/recorded.h"
#include "tests/support/builders.h"

namespace numsan {
namespace {

TEST(Recorder, AReplayMakesTheSameReport) {
    RecordedRun run;
    run.core->scope_begin("Optimizer.step#SGD.step");
    run.core->scope_end("Optimizer.step#SGD.step");
    run.log_of_negative();
    EXPECT_EQ(RecordedRun::recorder->finish(0), 0);
    const json found = run.same_findings();
    ASSERT_EQ(found.size(), 1u);
    EXPECT_EQ(found[0]["op"], "aten::log");
    EXPECT_EQ(found[0]["step"], 1);
    EXPECT_EQ(found[0]["rank"], 3);
    EXPECT_EQ(found[0]["location"]["line"], 3);
}

TEST(Recorder, AHealthyRunStaysHealthy) {
    RecordedRun run("tier=full", "3.11.2");
    MadeUp x{1}, y{2};
    for (int i = 0; i < 1000; ++i) run.op(kMul, {x.view(), y.view()}, {y.written()});
    RecordedRun::recorder->finish(0);
    EXPECT_EQ(run.same_findings().size(), 0u);
}

TEST(Recorder, NamesAreThoseOfTheRun) {
    RecordedRun run;
    MadeUp parameter({1}, kParameter), gradient{kNan}, bad{kNan}, x{-1};
    run.stacks.live.tensors[&parameter] = {"head.weight", LiveNames::TensorName::Role::Parameter, &parameter, nullptr};
    run.op(kLog, {x.view()}, {bad.returned()});
    run.loss(bad);
    const TensorView inputs[] = {parameter.view(), bad.view()};
    parameter.values[0] = kNan;
    run.op(kAdd, {inputs[0], inputs[1]}, {parameter.written()});
    RecordedRun::recorder->finish(0);
    const json found = run.same_findings();
    ASSERT_EQ(found.size(), 1u);
    ASSERT_EQ(found[0]["contaminated"].size(), 1u);
    EXPECT_EQ(found[0]["contaminated"][0]["name"], "head.weight");
}

TEST(Recorder, LinesThatLieInNoFileAreInTheFile) {
    RecordedRun run;
    MadeUp bad{kNan}, x{-1};
    run.op(kLog, {x.view()}, {bad.returned()});
    run.stacks.live.sources[{{"/home/me/model.py", 3}, "forward"}] = {"\n\ny = log(x)", 4};
    run.loss(bad);
    RecordedRun::recorder->finish(0);
    const json found = run.same_findings();
    ASSERT_EQ(found.size(), 1u);
    EXPECT_EQ(found[0]["location"]["code"], "y = log(x)");
    EXPECT_EQ(found[0]["location"]["cell"], 4);
}

TEST(Recorder, ANumberThatIsReadFromMemoryIsInTheFile) {
    RecordedRun run;
    double number = std::nan("");
    TensorView wrapped{};
    wrapped.data = wrapped.storage_data = &number;
    wrapped.storage = wrapped.impl = &number;
    wrapped.storage_bytes = 8;
    wrapped.numel = 1;
    wrapped.dtype = DType::Float64;
    wrapped.flags = kNumber | kScannable;
    MadeUp x{1}, y{kNan};
    run.op(kMul, {x.view(), wrapped}, {y.returned()});
    run.loss(y);
    RecordedRun::recorder->finish(0);
    number = 1;  // nothing is read from there
    const json found = run.same_findings();
    ASSERT_EQ(found.size(), 1u);
    EXPECT_NE(found[0]["evidence"].dump().find("is nan"), std::string::npos) << found[0]["evidence"];
}

TEST(Recorder, ThreadsKeepTheirOwnScopes) {
    RecordedRun run;
    std::atomic<int> turn{0};
    std::thread other([&] {
        run.core->scope_begin("numsan:ignore");
        turn = 1;
        while (turn != 2) std::this_thread::yield();
        MadeUp x{-1}, y{kNan};
        run.op(kLog, {x.view()}, {y.returned()});
        run.loss(y);
        run.core->scope_end("numsan:ignore");
    });
    while (turn != 1) std::this_thread::yield();
    run.log_of_negative();
    turn = 2;
    other.join();
    RecordedRun::recorder->finish(0);
    EXPECT_EQ(run.same_findings().size(), 1u);
}

TEST(Recorder, RangesOfTheProgramAreRecorded) {
    RecordedRun run;
    RecordedRun::recorder->range({RangeEvent::Kind::Start, true, 9, "numsan:ignore"});
    run.log_of_negative();
    RecordedRun::recorder->range({RangeEvent::Kind::Stop, false, 9, ""});
    RecordedRun::recorder->range({RangeEvent::Kind::Push, false, 0xfeed, "library:attn"});
    run.log_of_negative();
    RecordedRun::recorder->range({RangeEvent::Kind::Pop, false, 0xfeed, ""});
    RecordedRun::recorder->finish(0);
    const json found = run.same_findings();
    ASSERT_EQ(found.size(), 1u);
    EXPECT_EQ(found[0]["stack"].back()["kind"], "nvtx");
    EXPECT_EQ(found[0]["stack"].back()["function"], "library:attn");
}

/// NUMSAN_UPDATE_GOLDEN=1 writes one of another version anew, and what is damaged, cut or taken out of it.
TEST(Recorder, RecordingThatTheFuzzerStartsFromIsOfThisVersion) {
    const std::string folder = NUMSAN_SOURCE_DIR "/tests/fuzz/corpus/recording/";
    std::ifstream kept(folder + "header", std::ios::binary);
    kept.seekg(kFileHeader - 1);
    const int version = kept.get();
    if (std::getenv("NUMSAN_UPDATE_GOLDEN") != nullptr && version != kRecordVersion) {
        RunSummary facts;
        facts.version = "0.1.0";
        facts.run_id = "00000000-0000-4000-8000-000000000000";
        facts.argv = {"python", "train.py"};
        facts.cwd = "/home/me";
        facts.host = "box";
        facts.started = "2026-11-29T00:00:00Z";
        RecordedRun run("tier=full", "3.11.7", facts);
        run.core->scope_begin("Optimizer.step#SGD.step");
        run.core->scope_end("Optimizer.step#SGD.step");
        RecordedRun::recorder->range({RangeEvent::Kind::Push, false, 7, "library:attn"});
        run.log_of_negative();
        RecordedRun::recorder->range({RangeEvent::Kind::Pop, false, 7, ""});
        run.stacks.live.modules[&run] = "model.head";
        RecordedRun::recorder->finish(0);
        const std::string whole = run.bytes();
        std::string damaged = whole;
        damaged[damaged.size() / 2] ^= 1;
        const auto write = [&](const char* name, const std::string& bytes) {
            std::ofstream(folder + name, std::ios::binary) << bytes;
        };
        write("whole_run", whole);
        write("damaged", damaged);
        write("cut", whole.substr(0, whole.size() - 5));
        write("header", whole.substr(0, kFileHeader));
        std::string plain;
        for (size_t at = kFileHeader; at + kBlockHeader < whole.size();) {
            uint32_t sizes[2];
            std::memcpy(sizes, &whole[at + 1], sizeof sizes);
            std::string records(sizes[1], '\0');
            uLongf length = sizes[1];
            ASSERT_EQ(uncompress(reinterpret_cast<Bytef*>(records.data()), &length,
                                 reinterpret_cast<const Bytef*>(&whole[at + kBlockHeader]), sizes[0]),
                      Z_OK);
            plain += records;
            at += kBlockHeader + sizes[0];
        }
        write("records", plain);
    }
    RecordReader reader = RecordReader::of_file(folder + "whole_run");
    const Replayed made = Replay(reader).play();
    ASSERT_TRUE(made.end.has_value()) << made.why_no_end;
    EXPECT_EQ(made.missing, 0) << made.first_missing;
    const json found = json::parse(made.report)["findings"];
    ASSERT_EQ(found.size(), 1u);
    EXPECT_EQ(found[0]["stack"].back()["function"], "library:attn");
}

TEST(Recorder, ManyThreadsAtOnceHaveOneOrder) {
    RecordedRun run;
    std::vector<std::thread> threads;
    for (int t = 0; t < 8; ++t) {
        threads.emplace_back([&, t] {
            MadeUp x{1}, y{2}, bad{kNan}, minus{-1};
            for (int i = 0; i < 200; ++i) run.op(kMul, {x.view(), y.view()}, {y.written()});
            if (t == 3) run.op(kLog, {minus.view()}, {bad.returned()});
            if (t == 3) run.loss(bad);
        });
    }
    for (std::thread& thread : threads) thread.join();
    RecordedRun::recorder->finish(0);
    EXPECT_EQ(run.same_findings().size(), 1u);
}

/// Asked of an operand while its thread waits: another thread's op comes meanwhile.
RecordedRun* g_run = nullptr;
uint32_t kin_of_a_view(const void*, bool) {
    std::thread([] {
        MadeUp x{1}, y{2};
        g_run->op(kMul, {x.view()}, {y.returned()});
    }).join();
    return kViewOfParameter;
}

TEST(Recorder, OtherThreadsHaveTheirTurnWhileTheProgramIsAsked) {
    RecordedRun run;
    g_run = &run;
    MadeUp view({0}, kRequiresGrad), bad{kInf}, one{1};
    run.op(kDiv, {one.view(), view.view()}, {bad.returned()}, ~uint64_t(0), kin_of_a_view);
    run.loss(bad);
    RecordedRun::recorder->finish(0);
    EXPECT_EQ(run.same_findings().size(), 1u);
    EXPECT_EQ(json::parse(run.replay().report)["coverage"]["ops"], 3);
}

TEST(Recorder, ALookBackFindsInTheReplayWhatItFound) {
    Storages::begin_test();
    RecordedRun run("tier=sentinel");
    RecordedRun::recorder->use(Storages::kAdapter);
    constexpr size_t kLarge = 8192;
    std::vector<float> values(kLarge, 1);
    values[0] = -1;
    MadeUp x{values};
    values[0] = kNan;
    MadeUp y{values}, loss{kNan};
    const OpInfo mean{"aten::mean", "", OpClass::Other, false, 6};
    run.op(kLog, {x.view()}, {y.returned()});
    run.op(mean, {y.view()}, {loss.returned()});
    run.loss(loss);
    RecordedRun::recorder->finish(0);
    const json found = run.same_findings();
    ASSERT_EQ(found.size(), 1u);
    EXPECT_EQ(found[0]["op"], "aten::log");
}

TEST(Recorder, AnAllowListIsInTheFile) {
    const std::string allow = testing::TempDir() + "numsan_record_allow_" + std::to_string(getpid());
    std::ofstream(allow) << "op:aten::log\n";
    RecordedRun run("allow=" + allow);
    run.log_of_negative();
    RecordedRun::recorder->finish(0);
    std::remove(allow.c_str());
    EXPECT_EQ(run.same_findings().size(), 0u);
    EXPECT_EQ(json::parse(run.replay().report)["suppressed"][0]["count"], 1);
}

TEST(Recorder, ARunThatHaltsHasItsEnd) {
    RecordedRun run("halt=1");
    const pid_t child = fork();
    if (child == 0) {
        run.log_of_negative();
        _exit(0);
    }
    int status = 0;
    ASSERT_EQ(waitpid(child, &status, 0), child);
    ASSERT_TRUE(WIFEXITED(status));
    EXPECT_EQ(WEXITSTATUS(status), 66);
    const json found = run.same_findings();
    ASSERT_EQ(found.size(), 1u);
    EXPECT_EQ(run.replay().end->status, 66);
}

TEST(Recorder, AForkedChildWritesNothing) {
    RecordedRun run;
    run.log_of_negative();
    RecordedRun::recorder->before_fork();
    const pid_t child = fork();
    if (child == 0) {
        RecordedRun::recorder->after_fork_in_child();
        run.log_of_negative();
        RecordedRun::recorder->finish(0);
        _exit(0);
    }
    RecordedRun::recorder->after_fork_in_parent();
    int status = 0;
    ASSERT_EQ(waitpid(child, &status, 0), child);
    EXPECT_EQ(status, 0);
    RecordedRun::recorder->finish(0);
    EXPECT_EQ(run.same_findings().size(), 1u);
    EXPECT_EQ(json::parse(run.replay().report)["coverage"]["ops"], 2);
}

TEST(Recorder, AProcessThatWasKilledLeavesItsBeginning) {
    RecordedRun run;
    run.log_of_negative();
    const std::string whole = [&] {
        RecordedRun::recorder->finish(0);
        return run.bytes();
    }();
    run.write(whole.substr(0, whole.size() - 1));
    const Replayed made = run.replay();
    EXPECT_FALSE(made.end.has_value());
    EXPECT_NE(made.why_no_end.find("byte "), std::string::npos) << made.why_no_end;
}

DeviceScanner* a_device_scanner(const OpEvent&, std::string&) {
    return reinterpret_cast<DeviceScanner*>(8);  // never called: see below
}

TEST(Recorder, TheFirstOperationOnADeviceEndsIt) {
    RecordedRun run;
    run.log_of_negative();
    const MakeDeviceScanner make = RecordedRun::recorder->over(a_device_scanner);
    static MakeDeviceScanner kept;
    kept = make;
    static const CoreApi kDevice{kAdapterAbi,
                                 [](const OpEvent* event) {
                                     std::string why;
                                     EXPECT_NE(kept(*event, why), nullptr);
                                 },
                                 nullptr,
                                 nullptr,
                                 nullptr,
                                 nullptr,
                                 nullptr,
                                 nullptr,
                                 nullptr,
                                 nullptr,
                                 nullptr};
    run.core = &RecordedRun::recorder->over(kDevice);
    MadeUp x{1};
    run.op(kMul, {x.view()}, {x.written()});
    RecordedRun::recorder->finish(0);
    const Replayed made = run.replay();
    EXPECT_FALSE(made.end.has_value());
    EXPECT_NE(made.why_no_end.find("device"), std::string::npos) << made.why_no_end;
    EXPECT_EQ(json::parse(made.report)["findings"].size(), 1u);
    EXPECT_NE(RecordedRun::session->reporter().json().find("the recording ends before the run"), std::string::npos);
}

TEST(Recorder, WhatCannotBeWrittenIsSaidAtOnce) {
    RecordedRun run(":record=/nowhere/at/all");  // the last of equal keys wins: see the constructor
    EXPECT_NE(RecordedRun::recorder, nullptr);
    Options options;
    std::string why;
    RunSummary facts;
    facts.cwd = "/tmp";
    options.record = "/nowhere/at/all";
    EXPECT_EQ(Recorder::start(options, facts, why), nullptr);
    EXPECT_NE(why.find("/nowhere/at/all"), std::string::npos) << why;
    options.record = "/dev/null";
    EXPECT_EQ(Recorder::start(options, facts, why), nullptr);
    EXPECT_NE(why.find("no regular file"), std::string::npos) << why;
}

TEST(Recorder, LinksAreNotFollowed) {
    const testing::ScratchFolder scratch;
    std::ofstream(scratch.file("theirs")) << "kept";
    std::filesystem::create_symlink(scratch.file("theirs"), scratch.file("link"));
    Options options;
    options.record = scratch.file("link");
    RunSummary facts;
    facts.cwd = "/tmp";
    std::string why;
    EXPECT_EQ(Recorder::start(options, facts, why), nullptr);
    EXPECT_NE(why.find("link"), std::string::npos) << why;
    std::string text;
    std::ifstream(scratch.file("theirs")) >> text;
    EXPECT_EQ(text, "kept");
}

}  // namespace
}  // namespace numsan
