// The choice of the folder that keeps adapters, by the variables of the environment.
#include "host/options/cache_folder.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <optional>

#include "tests/support/builders.h"

namespace numsan {
namespace {

namespace fs = std::filesystem;
using testing::ScratchFolder;

class CacheFolderTest : public testing::Test {
  protected:
    void SetUp() override {
        for (Kept& kept : kept_) {
            if (const char* value = std::getenv(kept.name)) kept.value = value;
            unsetenv(kept.name);
        }
    }
    void TearDown() override {
        for (const Kept& kept : kept_) {
            unsetenv(kept.name);
            if (kept.value) setenv(kept.name, kept.value->c_str(), 1);
        }
    }
    std::string at(const std::string& name) const { return fs::canonical(scratch_.path()) / name; }
    std::string open_to_all(const std::string& name) const {
        fs::create_directories(at(name));
        chmod(at(name).c_str(), 0777);
        return at(name);
    }

  private:
    struct Kept {
        const char* name;
        std::optional<std::string> value;
    };
    ScratchFolder scratch_;
    Kept kept_[3] = {{"NUMSAN_CACHE", {}}, {"XDG_CACHE_HOME", {}}, {"HOME", {}}};
};

TEST_F(CacheFolderTest, FirstOfThoseThatAreNamed) {
    setenv("HOME", at("home").c_str(), 1);
    EXPECT_EQ(find_cache_folder(Missing::Make).path, at("home/.cache/numsan"));
    setenv("XDG_CACHE_HOME", at("xdg").c_str(), 1);
    EXPECT_EQ(find_cache_folder(Missing::Make).path, at("xdg/numsan"));
    setenv("NUMSAN_CACHE", at("cache").c_str(), 1);
    const CacheFolder cache = find_cache_folder(Missing::Make);
    EXPECT_EQ(cache.path, at("cache"));
    EXPECT_TRUE(cache.rejected.empty() && cache.why.empty());
}

TEST_F(CacheFolderTest, ChosenFolderThatIsNotSafeIsRefused) {
    setenv("HOME", at("home").c_str(), 1);
    const std::string cache = open_to_all("cache");
    setenv("NUMSAN_CACHE", cache.c_str(), 1);
    const CacheFolder found = find_cache_folder(Missing::Make);
    EXPECT_EQ(found.path, "");
    EXPECT_EQ(found.why, cache + " can be written by everybody (mode 0777): no code is loaded from there; chmod go-w " +
                             cache + ", or set NUMSAN_CACHE to a folder that only you can write");
    EXPECT_FALSE(fs::exists(at("home"))) << "nothing stands in for what the user chose";
}

TEST_F(CacheFolderTest, ThePathThatTheUserWroteIsNamed) {
    const std::string shared = open_to_all("shared");
    setenv("NUMSAN_CACHE", (shared + "/cache").c_str(), 1);
    EXPECT_TRUE(
        find_cache_folder(Missing::Make)
            .why.starts_with(shared + "/cache: " + shared + " above it can be written by everybody (mode 0777): "));
}

TEST_F(CacheFolderTest, ChosenFolderThatCannotBeIsPassedOver) {
    std::ofstream(at("file")) << "x";
    setenv("NUMSAN_CACHE", at("file").c_str(), 1);
    setenv("HOME", at("home").c_str(), 1);
    const CacheFolder cache = find_cache_folder(Missing::Make);
    EXPECT_EQ(cache.path, at("home/.cache/numsan"));
    EXPECT_EQ(cache.rejected, (std::vector<std::string>{at("file") + ": Not a directory"}));
}

TEST_F(CacheFolderTest, UnsafeFolderByDefaultIsPassedOver) {
    setenv("XDG_CACHE_HOME", open_to_all("xdg").c_str(), 1);
    setenv("HOME", at("home").c_str(), 1);
    const CacheFolder cache = find_cache_folder(Missing::Make);
    EXPECT_EQ(cache.path, at("home/.cache/numsan"));
    EXPECT_EQ(cache.rejected.size(), 1u);
    EXPECT_EQ(cache.why, "");
}

TEST_F(CacheFolderTest, LastIsAFolderInTmp) {
    const CacheFolder cache = find_cache_folder(Missing::Accept);
    EXPECT_EQ(cache.path, "/tmp/numsan-" + std::to_string(geteuid())) << cache.why;
}

}  // namespace
}  // namespace numsan
