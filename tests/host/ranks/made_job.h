// Reports of a made-up job.
#pragma once

#include <deque>
#include <nlohmann/json.hpp>
#include <string>

#include "host/ranks/jobs.h"
#include "host/ranks/rank_reports.h"

namespace numsan {

class MadeJob {
  public:
    using Json = nlohmann::ordered_json;

    /// A report to the end, with the group of all ranks.
    Json& rank(int64_t number, int64_t size) {
        const Json group = {{"name", "0"}, {"description", "default_pg"}, {"rank", number}, {"size", size}};
        return documents_.emplace_back(Json{{"run",
                                             {{"rank", number},
                                              {"world_size", size},
                                              {"id", "id" + std::to_string(number)},
                                              {"job", "none 0 node0 29500"},
                                              {"host", "node0"},
                                              {"pid", 100 + number},
                                              {"argv", {"python", "train.py"}},
                                              {"started", "2026-11-23T10:00:00Z"},
                                              {"ended", "2026-11-23T10:05:00Z"},
                                              {"groups", {group}}}},
                                            {"verdict", "clean"},
                                            {"findings", Json::array()}});
    }

    static Json& finds(Json& report, const std::string& fingerprint, int64_t step, int64_t begun) {
        report["findings"].push_back({{"fingerprint", fingerprint},
                                      {"severity", "error"},
                                      {"mechanism", "SING"},
                                      {"step", step},
                                      {"seq", 10 * step},
                                      {"collectives", {{"0", begun}}}});
        return report["findings"].back();
    }
    static Json operation(int64_t number, int64_t peer = -1, int64_t tag = -1) {
        Json made = {{"op", "c10d::x"}, {"group", "0"}, {"number", number}};
        made["peer"] = peer < 0 ? Json(nullptr) : Json(peer);
        if (tag >= 0) made["tag"] = tag;
        return made;
    }
    static void receives(Json& finding, const Json& operation) {
        finding["mechanism"] = "DATA";
        finding["received"] = operation;
    }
    static void sends(Json& finding, std::initializer_list<Json> operations) {
        finding["sent"] = std::vector<Json>(operations);
    }

    /// As they are read; the paths are r0, r1, ... Valid as long as this object, and once.
    SortedReports sorted() {
        for (const Json& document : documents_) {
            const std::string& path = paths_.emplace_back("r" + std::to_string(paths_.size()));
            reports_.add({paths_.size() - 1, path, "", document});
        }
        return sort_reports(reports_.reports());
    }

  private:
    std::deque<Json> documents_;
    std::deque<std::string> paths_;
    RankReports reports_;
};

}  // namespace numsan
