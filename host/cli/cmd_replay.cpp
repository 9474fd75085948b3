// numsan replay: makes the report of a recorded run again, and compares it with the one that the run wrote; a dump is
// passed on.
#include <array>
#include <cstdio>
#include <cstdlib>
#include <fstream>

#include "host/cli/commands.h"
#include "host/record/replay.h"
#include "host/report/atomic_file.h"
#include "host/report/report_difference.h"

namespace numsan::cli {
namespace {

/// Generated code is known by where the run's cache was, not by where this process has one.
void use_environment_of(const RunFacts& facts) {
    // NOLINTBEGIN(concurrency-mt-unsafe): this process has one thread
    if (facts.inductor_cache)
        setenv("TORCHINDUCTOR_CACHE_DIR", facts.inductor_cache->c_str(), 1);
    else
        unsetenv("TORCHINDUCTOR_CACHE_DIR");
    // NOLINTEND(concurrency-mt-unsafe)
}

int judge(const std::string& path, const Replayed& made) {
    const auto say = [&](const std::string& line) { std::printf("%s: %s\n", path.c_str(), line.c_str()); };
    if (made.missing > 0) {
        say(std::to_string(made.missing) + " questions have no answer in the recording, the first at " +
            made.first_missing);
    }
    if (!made.end) {
        complain(path + ": the recording ends before the run did" +
                 (made.why_no_end.empty() ? "" : ": " + made.why_no_end) + "; there is no report to compare with");
        return kUsage;
    }
    const std::vector<std::string> differences = report_differences(made.end->report, made.report);
    if (differences.empty()) {
        say("the same report, of " + std::to_string(made.calls) + " calls");
        return kOk;
    }
    for (const std::string& line : differences) say(line);
    say("the report differs in " + std::to_string(differences.size()) + " places");
    return kDiffers;
}

/// A safetensors file has a length of 8 bytes and then JSON; by its name it is one whatever it holds.
bool is_dump(const std::string& path) {
    if (path.ends_with(".safetensors")) return true;
    std::array<char, 9> start{};
    std::ifstream file(path, std::ios::binary);
    return file.read(start.data(), start.size()) && start[8] == '{';
}

}  // namespace

int replay(const ReplayFlags& flags) {
    if (is_dump(flags.path)) return replay_dump(flags);
    if (flags.trials || !flags.script.empty() || flags.format != "text") {
        complain(flags.path + ": expected a dump for --try, --script and --format, found no safetensors file");
        return kUsage;
    }
    Replayed made;
    try {
        RecordReader reader = RecordReader::of_file(flags.path);
        Replay replay(reader);
        use_environment_of(replay.facts());
        made = replay.play();
    } catch (const RecordError& error) {
        complain(flags.path + ": " + error.what());
        return kUsage;
    }
    if (!flags.output.empty()) {
        if (const auto error = write_atomically(flags.output, made.report)) {
            complain(*error);
            return kUsage;
        }
    }
    return judge(flags.path, made);
}

}  // namespace numsan::cli
