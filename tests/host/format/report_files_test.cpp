#include "host/format/report_files.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace numsan {
namespace {

namespace fs = std::filesystem;

/// Remembers what it was handed, on whichever thread.
class Names : public ReportSink {
  public:
    void add(const SourceReport& report) override { names[report.number] = report.path; }
    void absorb(ReportSink& other) override { names.merge(dynamic_cast<Names&>(other).names); }

    std::map<size_t, std::string> names;
};

class ReportFiles : public testing::Test {
  protected:
    ReportFiles() : folder_(fs::path(testing::TempDir()) / ("numsan_report_files_" + std::to_string(getpid()))) {
        fs::remove_all(folder_);
        fs::create_directories(folder_);
    }
    ~ReportFiles() override { fs::remove_all(folder_); }

    std::string write(const std::string& name, const std::string& text) const {
        std::ofstream(folder_ / name) << text;
        return (folder_ / name).string();
    }

    ReadReports read(const std::vector<std::string>& given) {
        std::unique_ptr<ReportSink> sink;
        ReadReports made = read_reports(
            given, [] { return std::make_unique<Names>(); }, sink);
        for (const auto& [number, path] : dynamic_cast<Names&>(*sink).names) {
            names_.push_back(fs::path(path).filename().string());
        }
        return made;
    }

    fs::path folder_;
    std::vector<std::string> names_;
};

constexpr char kReport[] =
    R"({"schema":"numsan.report/1","tool":{},"run":{},"coverage":{},"cost":{},"noted":{},"verdict":"clean","findings":[]})";

TEST_F(ReportFiles, NumbersInNamesAreCounted) {
    for (const char* name : {"r10.json", "r9.json", "r09.json", "r1b.json", "r1.json", "a-2-1.json", "a-1-10.json"}) {
        write(name, kReport);
    }
    EXPECT_EQ(read({folder_.string()}).reports, 7u);
    EXPECT_EQ(names_, (std::vector<std::string>{"a-1-10.json", "a-2-1.json", "r1.json", "r1b.json", "r09.json",
                                                "r9.json", "r10.json"}));
}

TEST_F(ReportFiles, EveryOneOfManyIsReadOnce) {
    for (int i = 0; i < 500; ++i) write("r" + std::to_string(i) + ".json", kReport);
    EXPECT_EQ(read({folder_.string(), (folder_ / "r3.json").string()}).reports, 500u);
    ASSERT_EQ(names_.size(), 500u);
    for (int i = 0; i < 500; ++i) EXPECT_EQ(names_[i], "r" + std::to_string(i) + ".json");
}

TEST_F(ReportFiles, AForeignFileIsSkippedInAFolderAndAnErrorByName) {
    write("r.json", kReport);
    const std::string foreign = write("config.json", "{}");
    const ReadReports of_folder = read({folder_.string() + "/"});
    EXPECT_TRUE(of_folder.errors.empty());
    ASSERT_EQ(of_folder.skipped.size(), 1u);
    EXPECT_TRUE(of_folder.skipped[0].starts_with(foreign + ": byte 0: not a numsan report"));
    const ReadReports of_file = read({foreign});
    EXPECT_EQ(of_file.errors, of_folder.skipped);
}

}  // namespace
}  // namespace numsan
