// The adapter loader: what it compiles, keeps, and leaves alone.
#include "tests/interpose/runtime/made_up_torch.h"

namespace numsan {
namespace {

using AdapterLoader = WithMadeUpTorch;

TEST_F(AdapterLoader, BuildsOnceThenUsesTheCache) {
    EXPECT_EQ(in_child([&](const AdapterApi* adapter, const AdapterLoadResult& result) {
                  return adapter && std::string(adapter->hook) == "fallback" && result.built &&
                         result.torch_version == "9.8.7+cpu" &&
                         said_only("building the adapter for torch 9.8.7+cpu (once, about a minute)");
              }),
              0);
    EXPECT_EQ(
        in_child([](const AdapterApi*, const AdapterLoadResult& result) { return !result.built && said.empty(); }), 0);
    std::vector<std::string> left;
    for (const auto& entry : fs::directory_iterator(root_ / "cache")) left.push_back(entry.path().extension().string());
    std::sort(left.begin(), left.end());
    EXPECT_EQ(left, (std::vector<std::string>{".lock", ".so"}));
    EXPECT_EQ(fs::status(root_ / "cache").permissions(), fs::perms::owner_all);
}

TEST_F(AdapterLoader, ManyProcessesBuildOnce) {
    compile_by(real_compiler_);
    std::vector<pid_t> children;
    for (int i = 0; i < 4; ++i) {
        const pid_t child = fork();
        if (child == 0) {
            _exit(in_child([&](const AdapterApi*, const AdapterLoadResult& result) {
                if (result.built) write(root_ / "built" / std::to_string(getpid()), "");
                return true;
            }));
        }
        children.push_back(child);
    }
    for (const pid_t child : children) {
        int status = 0;
        ASSERT_EQ(waitpid(child, &status, 0), child);
        EXPECT_EQ(status, 0);
    }
    EXPECT_EQ(compiled(), 1);
    EXPECT_EQ(std::distance(fs::directory_iterator(root_ / "built"), fs::directory_iterator()), 1);
    int libraries = 0;
    for (const auto& entry : fs::directory_iterator(root_ / "cache")) libraries += entry.path().extension() == ".so";
    EXPECT_EQ(libraries, 1);
}

TEST_F(AdapterLoader, ChangedSourcesAreBuiltAgain) {
    const auto built = [](const AdapterApi*, const AdapterLoadResult& result) { return result.built; };
    EXPECT_EQ(in_child(built), 0);
    write(sources() / "host/base/extra.h", "// new");
    EXPECT_EQ(in_child(built), 0);
}

TEST_F(AdapterLoader, DamagedCacheIsBuiltAgain) {
    std::string path;
    EXPECT_EQ(in_child([](const AdapterApi*, const AdapterLoadResult&) { return true; }), 0);
    for (const auto& entry : fs::directory_iterator(root_ / "cache"))
        if (entry.path().extension() == ".so") fs::resize_file(entry.path(), 100);
    EXPECT_EQ(in_child([](const AdapterApi*, const AdapterLoadResult& result) { return result.built; }), 0);
}

TEST_F(AdapterLoader, WhatCannotBeOpenedStaysUntilAnotherTakesItsPlace) {
    EXPECT_EQ(in_child([](const AdapterApi*, const AdapterLoadResult&) { return true; }), 0);
    fs::path adapter;
    for (const auto& entry : fs::directory_iterator(root_ / "cache"))
        if (entry.path().extension() == ".so") adapter = entry.path();
    fs::resize_file(adapter, 100);
    compile_by("exit 1");
    EXPECT_EQ(in_child([](const AdapterApi*, const AdapterLoadResult&) { return true; }), 1);
    EXPECT_TRUE(fs::exists(adapter)) << "others may be able to open it";
}

TEST_F(AdapterLoader, WhatAKilledBuildLeftIsRemoved) {
    write(root_ / "cxx", "#!/bin/sh\nkill -KILL $PPID\n");  // the compiler ends the run that waits for it
    fs::permissions(root_ / "cxx", fs::perms::owner_all);
    setenv("CXX", (root_ / "cxx").c_str(), 1);
    EXPECT_EQ(in_child([](const AdapterApi*, const AdapterLoadResult&) { return true; }), 100 + SIGKILL);
    unsetenv("CXX");
    const auto temporary = [&] {
        return std::count_if(fs::directory_iterator(root_ / "cache"), fs::directory_iterator(), [](const auto& entry) {
            return entry.path().string().find(kTemporaryMark) != std::string::npos;
        });
    };
    ASSERT_EQ(temporary(), 1);  // its log
    EXPECT_EQ(in_child([](const AdapterApi*, const AdapterLoadResult& result) { return result.built; }), 0);
    EXPECT_EQ(temporary(), 0);
}

TEST_F(AdapterLoader, WhatARunningBuildWritesIsKept) {
    const fs::path file = root_ / "cache/other.so.tmp-1-2.log";
    write(file, "");
    remove_orphans((root_ / "cache").string());
    EXPECT_TRUE(fs::exists(file)) << "nobody can tell whose it is";
    {
        const FileLock lock((root_ / "cache/other.so.lock").string());
        remove_orphans((root_ / "cache").string());
        EXPECT_TRUE(fs::exists(file)) << "its build runs";
    }
    remove_orphans((root_ / "cache").string());
    EXPECT_FALSE(fs::exists(file));
}

TEST_F(AdapterLoader, HostThatIgnoresItsChildren) {
    const auto built = [](const AdapterApi*, const AdapterLoadResult& result) { return result.built; };
    struct sigaction before {};
    struct sigaction ignore {};
    ignore.sa_handler = SIG_IGN;
    const pid_t child = fork();  // so that this process keeps its own way of waiting
    if (child == 0) {
        sigaction(SIGCHLD, &ignore, &before);
        for (const char* file : {"libc10.so", "libtorch_cpu.so"})
            if (!dlopen((torch() / "lib" / file).c_str(), RTLD_NOW | RTLD_LOCAL)) _exit(90);
        const CoreApi core{};
        AdapterLoadResult result;
        const AdapterApi* adapter = load_torch_adapter(core, lib_dir(), say, result);
        _exit(adapter && built(adapter, result) ? 0 : 1);
    }
    int status = 0;
    ASSERT_EQ(waitpid(child, &status, 0), child);
    EXPECT_EQ(status, 0);
}

TEST_F(AdapterLoader, CompileFailureNamesTheLogAndIsNotRepeated) {
    compile_by(real_compiler_);
    write(sources() / "interpose/torch/broken.cpp", "int broken = ;");
    const auto line = [](const AdapterLoadResult& result) {
        return "off: the adapter for torch 9.8.7+cpu does not compile: see " + result.adapter_path + ".log; remove " +
               result.adapter_path + ".failed to try again";
    };
    EXPECT_EQ(in_child([&](const AdapterApi*, const AdapterLoadResult& result) {
                  return said.size() == 2 && said[1] == line(result) && fs::file_size(result.adapter_path + ".log") > 0;
              }),
              1);
    EXPECT_EQ(compiled(), 1);
    std::string marker;
    EXPECT_EQ(in_child([&](const AdapterApi*, const AdapterLoadResult& result) {
                  write(root_ / "marker", result.adapter_path + ".failed");
                  return said_only(line(result));
              }),
              1);
    EXPECT_EQ(compiled(), 1) << "the second process asked the compiler again";
    std::getline(std::ifstream(root_ / "marker"), marker);
    ASSERT_TRUE(fs::remove(marker));
    EXPECT_EQ(in_child([](const AdapterApi*, const AdapterLoadResult&) { return said.size() == 2; }), 1);
    EXPECT_EQ(compiled(), 2) << "what the line says to do has no effect";
}

TEST_F(AdapterLoader, FailureIsForgottenWithAnotherCompilerOrTorch) {
    write(sources() / "interpose/torch/broken.cpp", "int broken = ;");
    const auto fails = [](const AdapterApi*, const AdapterLoadResult&) { return true; };
    compile_by(real_compiler_);
    EXPECT_EQ(in_child(fails), 1);
    EXPECT_EQ(in_child(fails), 1);
    EXPECT_EQ(compiled(), 1);
    compile_by(real_compiler_ + " # newer");
    EXPECT_EQ(in_child(fails), 1);
    EXPECT_EQ(compiled(), 2);
    EXPECT_EQ(in_child(fails), 1);
    EXPECT_EQ(compiled(), 2);
    fs::last_write_time(torch() / "lib/libc10.so", fs::file_time_type::clock::now() + std::chrono::hours(1));
    EXPECT_EQ(in_child(fails), 1);
    EXPECT_EQ(compiled(), 3);
}

TEST_F(AdapterLoader, CompilerThatWasKilledIsAskedAgain) {
    compile_by("kill -KILL $$");
    const auto fails = [](const AdapterApi*, const AdapterLoadResult&) { return true; };
    EXPECT_EQ(in_child(fails), 1);
    EXPECT_EQ(in_child(fails), 1);
    EXPECT_EQ(compiled(), 2);
}

TEST_F(AdapterLoader, AdapterThatCannotBeLoadedIsBuiltOnce) {
    compile_by(real_compiler_);
    write(sources() / "interpose/torch/undefined.cpp",
          "int nobody_has_this();\nextern int (*const pointer)();\nint (*const pointer)() = nobody_has_this;\n");
    const auto fails = [&](const AdapterApi*, const AdapterLoadResult& result) {
        return said.back().find("nobody_has_this") != std::string::npos &&
               said.back().find("; remove " + result.adapter_path + ".failed to try again") != std::string::npos;
    };
    EXPECT_EQ(in_child(fails), 1);
    EXPECT_EQ(in_child([&](const AdapterApi* adapter, const AdapterLoadResult& result) {
                  return said.size() == 1 && fails(adapter, result);
              }),
              1);
    EXPECT_EQ(compiled(), 1);
}

TEST_F(AdapterLoader, AdapterTakesTheStringsThatTorchTakes) {
    write(torch() / "include/ATen/record_function.h",
          "#include <string>\nconstexpr int kHeaderValue = _GLIBCXX_USE_CXX11_ABI ? 6 : 5;\n");
    const auto attached = [](const AdapterApi* adapter, const AdapterLoadResult&) { return adapter != nullptr; };
    EXPECT_EQ(in_child([](const AdapterApi* adapter, const AdapterLoadResult&) { return adapter == nullptr; }), 1)
        << "a torch that does not tell has those of today";
    const std::string check = "_ZN3c106detail14torchCheckFailEPKcS2_jRK";
    const auto torch_with = [&](const std::string& symbol) {
        write(root_ / "a.cpp",
              "int torch_cpu_value() { return 5; }\nvoid check() asm(\"" + symbol + "\");\nvoid check() {}\n");
        make_library(find_cxx_compiler(), "torch_cpu");
        make_library(find_cxx_compiler(), "c10");
    };
    torch_with(check + "Ss");
    EXPECT_EQ(in_child(attached), 0);
    torch_with(check + "NSt7__cxx1112basic_stringIcSt11char_traitsIcESaIcEEE");
    EXPECT_EQ(in_child([](const AdapterApi* adapter, const AdapterLoadResult&) { return adapter == nullptr; }), 1);
    torch_with(check + "NSt3__112basic_stringIcNS3_11char_traitsIcEENS3_9allocatorIcEEEE");
    EXPECT_EQ(in_child([](const AdapterApi*, const AdapterLoadResult&) {
                  return said_only(
                      "off: torch 9.8.7+cpu was built with libc++: the adapter can be built for "
                      "libstdc++ only");
              }),
              1);
}

TEST_F(AdapterLoader, NoCompiler) {
    const std::string path = std::getenv("PATH");
    setenv("PATH", "/nonexistent", 1);
    EXPECT_EQ(in_child([](const AdapterApi*, const AdapterLoadResult&) {
                  return said_only("off: the adapter for torch 9.8.7+cpu needs a C++ compiler");
              }),
              1);
    setenv("PATH", path.c_str(), 1);
}

TEST_F(AdapterLoader, NoHeaders) {
    fs::remove_all(torch() / "include");
    EXPECT_EQ(in_child([](const AdapterApi*, const AdapterLoadResult&) {
                  return said_only("off: torch 9.8.7+cpu has no headers in ");
              }),
              1);
}

TEST_F(AdapterLoader, AdapterThatRefusesSaysWhy) {
    write(torch() / "include/ATen/record_function.h", "constexpr int kHeaderValue = 6;\n");
    EXPECT_EQ(
        in_child([](const AdapterApi*, const AdapterLoadResult& result) { return result.reason == "wrong torch"; }), 1);
}

TEST_F(AdapterLoader, TorchVersions) {
    const std::string library = (torch() / "lib/libtorch_cpu.so").string();
    EXPECT_EQ(describe_torch(library).version, "9.8.7+cpu");
    EXPECT_EQ(describe_torch(library).root, torch().string());
    write(torch() / "version.py", "__version__: str = \"1.2\"\n");
    EXPECT_EQ(describe_torch(library).version, "1.2");
    fs::remove(torch() / "version.py");
    EXPECT_EQ(describe_torch(library).version, "unknown");
    write(torch() / "build-version", "2.11.0+cu130\n");
    EXPECT_EQ(describe_torch(library).version, "2.11.0+cu130");
}

TEST_F(AdapterLoader, FolderThatOthersCanWriteIsRefused) {
    compile_by(real_compiler_);
    fs::create_directories(root_ / "cache");
    fs::permissions(root_ / "cache", fs::perms::all);
    const std::string line = "off: " + (root_ / "cache").string() +
                             " can be written by everybody (mode 0777): no code is loaded from there; chmod go-w " +
                             (root_ / "cache").string() + ", or set NUMSAN_CACHE to a folder that only you can write";
    EXPECT_EQ(
        in_child([&](const AdapterApi*, const AdapterLoadResult&) { return said == std::vector<std::string>{line}; }),
        1);
    EXPECT_EQ(compiled(), 0);
    EXPECT_TRUE(fs::is_empty(root_ / "cache"));
    fs::permissions(root_ / "cache", fs::perms::owner_all);
    EXPECT_EQ(in_child([](const AdapterApi*, const AdapterLoadResult&) { return true; }), 0)
        << "what the line says to do has no effect";
}

TEST_F(AdapterLoader, AdapterThatOthersCanWriteIsRefused) {
    compile_by(real_compiler_);
    EXPECT_EQ(in_child([](const AdapterApi*, const AdapterLoadResult&) { return true; }), 0);
    fs::path adapter;
    for (const auto& entry : fs::directory_iterator(root_ / "cache"))
        if (entry.path().extension() == ".so") adapter = entry.path();
    fs::permissions(adapter, fs::perms::group_write, fs::perm_options::add);
    EXPECT_EQ(in_child([&](const AdapterApi*, const AdapterLoadResult&) {
                  return said_only("off: " + adapter.string() + " can be written by its group (mode 0720)");
              }),
              1);
    fs::rename(adapter, root_ / "elsewhere.so");
    fs::permissions(root_ / "elsewhere.so", fs::perms::owner_all);
    fs::create_symlink(root_ / "elsewhere.so", adapter);
    EXPECT_EQ(in_child([&](const AdapterApi*, const AdapterLoadResult&) {
                  return said_only("off: " + adapter.string() +
                                   " is a link, not a file: no code is loaded from there; remove it");
              }),
              1);
    EXPECT_EQ(compiled(), 1);
    fs::remove(adapter);
    EXPECT_EQ(in_child([](const AdapterApi*, const AdapterLoadResult& result) { return result.built; }), 0);
}

TEST_F(AdapterLoader, CompilerComesFromCxxFirst) {
    write(root_ / "cxx", "#!/bin/sh\n");
    fs::permissions(root_ / "cxx", fs::perms::owner_all);
    const char* before = std::getenv("CXX");
    const std::string kept = before ? before : "";
    setenv("CXX", ((root_ / "cxx").string() + " -m64").c_str(), 1);
    EXPECT_EQ(find_cxx_compiler(), (std::vector<std::string>{(root_ / "cxx").string(), "-m64"}));
    if (before)
        setenv("CXX", kept.c_str(), 1);
    else
        unsetenv("CXX");
}

TEST_F(AdapterLoader, CompilerSpeaksEnglish) {
    setenv("LC_ALL", "de_DE.UTF-8", 1);
    setenv("LANGUAGE", "de", 1);
    EXPECT_EQ(run_program({"/bin/sh", "-c", "echo \"[$LC_ALL$LANGUAGE]\""}, root_ / "log"), 0);
    unsetenv("LC_ALL");
    unsetenv("LANGUAGE");
    std::string line;
    std::getline(std::ifstream(root_ / "log"), line);
    EXPECT_EQ(line, "[C]") << "its messages are read";
}

TEST_F(AdapterLoader, ChildrenAreNotPreloaded) {
    setenv("LD_PRELOAD", "/nonexistent/library.so", 1);
    EXPECT_EQ(run_program({"/bin/sh", "-c", "echo \"[$LD_PRELOAD]\"; exit 6"}, root_ / "log"), 6);
    unsetenv("LD_PRELOAD");
    std::string line;
    std::getline(std::ifstream(root_ / "log"), line);
    EXPECT_EQ(line, "[]");
    EXPECT_EQ(run_program({"/nonexistent/program"}, root_ / "log"), -1);
    EXPECT_EQ(run_program({"/bin/sh", "-c", "kill -KILL $$"}, root_ / "log"), 128 + SIGKILL);
}

TEST(Fnv1a, IsThePublishedFunction) {
    Fnv1a hash;
    EXPECT_EQ(hash.value(), 0xcbf29ce484222325u);
    hash.add("foobar", 6);
    EXPECT_EQ(hash.value(), 0x85944171f73967e8u);
}

}  // namespace
}  // namespace numsan
