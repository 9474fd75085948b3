#include "host/process/launch.h"

#include <cstdlib>
#include <cstring>
#include <sstream>

namespace numsan {
namespace {

struct Launcher {
    const char* name;
    const char* mark;
    const char* rank;
    const char* world_size;
    const char* local_rank;
    const char* job;
};

constexpr Launcher kLaunchers[] = {
#define NUMSAN_LAUNCHER(name, mark, rank, world_size, local_rank, job) {name, mark, rank, world_size, local_rank, job},
#include "host/process/launchers.def"
#undef NUMSAN_LAUNCHER
};

std::optional<int> number_in(const char* text) {
    if (text == nullptr) return std::nullopt;
    char* end = nullptr;
    const long value = std::strtol(text, &end, 10);
    const bool fits = end != text && *end == '\0' && value >= 0 && value < (1 << 30);
    return fits ? std::optional(static_cast<int>(value)) : std::nullopt;
}

/// Not only those of torch.distributed, as srun does. Where it has started one, that may start ranks and number them.
bool starts_any_program(const Launcher& launcher) { return std::strcmp(launcher.rank, "RANK") != 0; }

/// "none 0 node1 29500"; nothing where none of the variables is set.
std::optional<std::string> job_of(const Launcher& launcher, GetVariable get) {
    std::istringstream names(launcher.job);
    std::string job;
    for (std::string name; names >> name;) {
        const char* const value = get(name.c_str());
        if (value != nullptr && *value != '\0') job += (job.empty() ? "" : " ") + std::string(value);
    }
    return job.empty() ? std::nullopt : std::optional(job);
}

}  // namespace

LaunchFacts launch_facts(GetVariable get) {
    LaunchFacts facts;
    for (const Launcher& launcher : kLaunchers) {
        if (get(launcher.mark) == nullptr) continue;
        const std::optional<int> rank = number_in(get(launcher.rank));
        const std::optional<int> world_size = number_in(get(launcher.world_size));
        if (!rank || (world_size == 1 && starts_any_program(launcher))) continue;
        facts.rank = rank;
        facts.world_size = world_size;
        facts.local_rank = number_in(get(launcher.local_rank));
        facts.launcher = launcher.name;
        facts.job = job_of(launcher, get);
        break;
    }
    return facts;
}

LaunchFacts launch_facts() {
    return launch_facts([](const char* name) -> const char* { return std::getenv(name); });
}

}  // namespace numsan
