// What a merge keeps of one report: which process it is of, and of its findings what orders and joins them.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "host/format/report_files.h"

namespace numsan {

/// A process group as one of its ranks knows it.
struct RankGroup {
    std::string name;
    std::string ranks;  ///< of the job: see rank_list(); empty: not known
    int64_t rank = -1;  ///< of this process among them
    int64_t size = 0;
};

/// A collective operation that a value went with, by numbers that the other side has, too.
struct RankOperation {
    static constexpr uint32_t kNoGroup = ~0U;

    uint32_t group = kNoGroup;  ///< place in RankReport::groups
    int32_t peer = -1;          ///< the one other rank of the group; -1: all, or it is not known
    uint64_t number = 0;        ///< 0: not known
    int64_t tag = -1;           ///< of a send or a receive; -1: it is of the whole group

    bool between_two() const { return tag >= 0; }
};

/// One finding of one report.
struct RankFinding {
    std::string key;      ///< the same in all reports: see finding_key()
    size_t position = 0;  ///< in the report
    int severity = 0;     ///< see severity_rank()
    int64_t step = 0;
    int64_t seq = 0;
    /// Operations that had begun before the birth, by the place of their group; none: not known.
    std::optional<std::vector<std::pair<uint32_t, uint64_t>>> begun;
    bool is_foreign = false;  ///< no op of this process made the value: it came with `received`
    RankOperation received;
    std::vector<RankOperation> sent;
};

/// Owns all it has.
struct RankReport {
    size_t number = 0;  ///< in the order of the files
    std::string path;
    std::string id;  ///< of the run: a process and its forked children have the same
    std::string host;
    std::string program;
    std::string launcher;
    std::string job;
    std::string started;  ///< RFC 3339; empty where it does not say
    std::string ended;
    std::string report_when;  ///< the option, where it is not the default
    int64_t pid = 0;
    std::optional<int64_t> rank;
    std::optional<int64_t> world_size;
    std::optional<int64_t> exit_status;
    bool incomplete = false;
    std::vector<RankGroup> groups;
    std::vector<RankFinding> findings;

    bool has_ended() const { return !ended.empty(); }
    /// Null: this rank has called no operation of it.
    const RankGroup* group_called(const std::string& name) const;
};

/// Of a document that may be damaged. [MT]
RankReport rank_report(const SourceReport& report);

}  // namespace numsan
