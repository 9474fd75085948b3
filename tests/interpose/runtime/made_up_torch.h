// A torch and an adapter of a few lines each, made in a temporary folder, and the loader run in a child on them.
#pragma once

#include "interpose/runtime/adapter_loader.h"

#include <dlfcn.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <optional>
#include <string>
#include <vector>

#include "host/options/cache_folder.h"
#include "interpose/adapter/adapter_cache.h"
#include "interpose/adapter/compiler.h"

namespace numsan {
namespace fs = std::filesystem;

inline std::vector<std::string> said;
inline void say(const char* line) { said.emplace_back(line); }

inline void write(const fs::path& path, const std::string& text) {
    fs::create_directories(path.parent_path());
    std::ofstream(path) << text;
}

inline constexpr const char* kAdapter = R"(
#include "host/base/adapter_abi.h"
#include <ATen/record_function.h>
int torch_cpu_value();
static const numsan::AdapterApi api = {numsan::kAdapterAbi, nullptr, nullptr, "fallback", nullptr};
extern "C" __attribute__((visibility("default")))
const numsan::AdapterApi* numsan_torch_attach(const numsan::CoreApi* core, const char** why) {
    if (torch_cpu_value() == kHeaderValue) return &api;
    *why = "wrong torch";
    return nullptr;
})";

/// Every test runs in a child of its own folder, as a library cannot be unmapped again once an adapter is linked to it.
class WithMadeUpTorch : public testing::Test {
  protected:
    void SetUp() override {
        const std::vector<std::string> compiler = find_cxx_compiler();
        ASSERT_FALSE(compiler.empty()) << "the tests need a C++ compiler at run time";
        char pattern[] = "/tmp/numsan-loader-XXXXXX";
        ASSERT_NE(mkdtemp(pattern), nullptr);
        root_ = pattern;
        write(torch() / "version.py",
              "from typing import Optional\n\n__all__ = ['__version__', 'debug']\n__version__ = '9.8.7+cpu'\n");
        write(torch() / "include/ATen/record_function.h", "#pragma once\nconstexpr int kHeaderValue = 5;\n");
        write(root_ / "a.cpp", "int torch_cpu_value() { return 5; }");
        real_compiler_ = "exec";
        for (const std::string& word : compiler) real_compiler_ += " " + word;
        real_compiler_ += " \"$@\"";
        make_library(compiler, "torch_cpu");
        make_library(compiler, "c10");
        write(root_ / "numsan/adapter/interpose/torch/adapter.cpp", kAdapter);
        fs::create_directories(sources() / "host");
        fs::copy(fs::path(NUMSAN_SOURCE_DIR) / "host/base", sources() / "host/base");
        said.clear();
        const char* cxx = std::getenv("CXX");
        if (cxx != nullptr) cxx_ = cxx;
        setenv("NUMSAN_CACHE", (root_ / "cache").c_str(), 1);
    }
    void TearDown() override {
        unsetenv("NUMSAN_CACHE");
        if (cxx_)
            setenv("CXX", cxx_->c_str(), 1);
        else
            unsetenv("CXX");
        fs::remove_all(root_);
    }

    void make_library(std::vector<std::string> command, const std::string& name) {
        fs::create_directories(torch() / "lib");
        const std::string file = "lib" + name + ".so";
        for (const std::string& word :
             {std::string("-shared"), std::string("-fPIC"), "-Wl,-soname," + file, (root_ / "a.cpp").string(),
              std::string("-o"), (torch() / "lib" / file).string()})
            command.push_back(word);
        ASSERT_EQ(run_program(command, root_ / "log"), 0);
    }

    fs::path torch() const { return root_ / "site/torch"; }
    fs::path sources() const { return root_ / "numsan/adapter"; }
    std::string lib_dir() const { return (root_ / "numsan").string(); }

    /// Loads torch and the adapter in a forked child and returns its exit status: 0 attached, 1 not. `check` runs there
    /// too.
    template <typename Check>
    int in_child(Check check) {
        const pid_t child = fork();
        if (child == 0) {
            for (const char* file : {"libc10.so", "libtorch_cpu.so"})
                if (!dlopen((torch() / "lib" / file).c_str(), RTLD_NOW | RTLD_LOCAL)) _exit(90);
            const CoreApi core{};
            AdapterLoadResult result;
            const AdapterApi* adapter = load_torch_adapter(core, lib_dir(), say, result);
            if ((adapter == nullptr) == result.reason.empty()) _exit(91);
            _exit(check(adapter, result) ? (adapter ? 0 : 1) : 92);
        }
        int status = 0;
        while (waitpid(child, &status, 0) < 0) {
        }
        return WIFEXITED(status) ? WEXITSTATUS(status) : 100 + WTERMSIG(status);
    }

    /// A compiler that notes each call and then does as `rest` of a shell script says; `$@` is what it was given.
    void compile_by(const std::string& rest) {
        write(root_ / "cxx", "#!/bin/sh\necho >> " + (root_ / "compiled").string() + "\n" + rest + "\n");
        fs::permissions(root_ / "cxx", fs::perms::owner_all);
        setenv("CXX", (root_ / "cxx").c_str(), 1);
    }
    int64_t compiled() const {
        std::ifstream in(root_ / "compiled");
        return std::count(std::istreambuf_iterator<char>(in), {}, '\n');
    }

    static bool said_only(const std::string& start) { return said.size() == 1 && said[0].rfind(start, 0) == 0; }

    fs::path root_;
    std::optional<std::string> cxx_;
    std::string real_compiler_;  ///< as a line of a shell script
};

}  // namespace numsan
