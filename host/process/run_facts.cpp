#include "host/process/run_facts.h"

#include <sys/random.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>
#include <ctime>
#include <filesystem>
#include <fstream>

#include "host/base/version.h"
#include "host/finding/place_of.h"
#include "host/log/format.h"
#include "host/process/launch.h"
#include "host/process/process_identity.h"

namespace numsan {
namespace {

/// Version 4 of RFC 4122, from the system's entropy: the program's own generators are left alone. Not
/// std::random_device, which throws where there is none.
std::string random_uuid() {
    uint32_t words[4];
    if (getrandom(words, sizeof words, GRND_NONBLOCK) != sizeof words) {
        // A sandbox refuses the call. No other run has these.
        std::timespec now{};
        clock_gettime(CLOCK_REALTIME, &now);
        const uint64_t seconds = static_cast<uint64_t>(now.tv_sec);
        const uint32_t values[4] = {static_cast<uint32_t>(seconds), static_cast<uint32_t>(now.tv_nsec),
                                    static_cast<uint32_t>(getpid()), static_cast<uint32_t>(seconds >> 32)};
        std::memcpy(words, values, sizeof words);
    }
    words[1] = (words[1] & 0xffff0fffu) | 0x00004000u;
    words[2] = (words[2] & 0x3fffffffu) | 0x80000000u;
    return hex(words[0], 8) + "-" + hex(words[1] >> 16, 4) + "-" + hex(words[1] & 0xffffu, 4) + "-" +
           hex(words[2] >> 16, 4) + "-" + hex(words[2] & 0xffffu, 4) + hex(words[3], 8);
}

}  // namespace

std::string now_text() {
    const std::time_t now = std::time(nullptr);
    std::tm parts{};
    gmtime_r(&now, &parts);
    char text[32];
    std::strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%SZ", &parts);
    return text;
}

/// Not by dl_iterate_phdr(): glibc does not give back its lock in a forked child, where another thread had it at the
/// fork, and the child of a thread that forks while this one has it could load no library.
bool runs_generated_kernels() {
    const char* chosen = std::getenv("TORCHINDUCTOR_CACHE_DIR");
    std::error_code none;
    std::string folder;  // as the system shows it
    if (chosen != nullptr && *chosen != '\0') folder = std::filesystem::canonical(chosen, none).string();
    std::ifstream maps("/proc/self/maps");
    for (std::string line; std::getline(maps, line);) {
        const size_t at = line.find('/');
        if (at == std::string::npos || line.find(" r-xp ") == std::string::npos) continue;
        const std::string path = line.substr(at);
        if (is_generated(path) || (!folder.empty() && path.rfind(folder + "/", 0) == 0)) return true;
    }
    return false;
}

RunSummary run_facts(const Options& options) {
    RunSummary run;
    run.version = NUMSAN_VERSION;
    if (NUMSAN_COMMIT[0] != '\0') run.commit = NUMSAN_COMMIT;
    run.run_id = random_uuid();
    std::ifstream command("/proc/self/cmdline", std::ios::binary);
    std::string argument;
    while (std::getline(command, argument, '\0')) run.argv.push_back(argument);
    char text[4096];
    if (getcwd(text, sizeof text) != nullptr) run.cwd = text;
    if (gethostname(text, sizeof text) == 0) {
        text[sizeof text - 1] = '\0';
        run.host = text;
    }
    run.pid = getpid();
    run.process = process_identity();
    run.launch = launch_facts();
    run.started = now_text();
    run.options = non_default(options);
    const char* const names[] = {"full", "sentinel", "boundary", "full", "off"};  // in the order of Tier
    run.tier = names[static_cast<size_t>(options.tier)];
    return run;
}

PathFacts path_facts(const RunSummary& run) { return {run.pid, run.launch.rank, run.host, run.started}; }

}  // namespace numsan
