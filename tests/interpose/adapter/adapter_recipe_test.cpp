// Adapters that were made ahead of time: which torch and which numsan they are for.
#include "tests/interpose/runtime/made_up_torch.h"

namespace numsan {
namespace {

using AdapterRecipeTest = WithMadeUpTorch;

/// As the build makes one ahead of time, of the sources that are there now.
fs::path make_prebuilt(const fs::path& torch, const fs::path& numsan) {
    const AdapterRecipe recipe(describe_torch((torch / "lib/libtorch_cpu.so").string()), numsan / "adapter");
    const fs::path adapter = numsan / kPrebuiltFolder / recipe.prebuilt_name();
    fs::create_directories(adapter.parent_path());
    EXPECT_EQ(run_program(recipe.compile_command(adapter.string()), numsan / "log"), 0);
    return adapter;
}

bool used_prebuilt(const AdapterApi* adapter, const AdapterLoadResult& result) {
    return adapter != nullptr && result.prebuilt && !result.built && said.empty();
}
bool compiled_one(const AdapterApi* adapter, const AdapterLoadResult& result) {
    return adapter != nullptr && !result.prebuilt && result.built;
}

TEST_F(AdapterRecipeTest, PrebuiltAdapterNeedsNeitherCompilerNorCache) {
    const fs::path adapter = make_prebuilt(torch(), lib_dir());
    compile_by("exit 1");
    EXPECT_EQ(in_child([&](const AdapterApi* api, const AdapterLoadResult& result) {
                  return used_prebuilt(api, result) && result.adapter_path == adapter;
              }),
              0);
    EXPECT_FALSE(fs::exists(root_ / "cache"));
    EXPECT_EQ(compiled(), 0);
}

TEST_F(AdapterRecipeTest, PrebuiltAdapterIsForOneTorchAndOneNumsan) {
    make_prebuilt(torch(), lib_dir());
    const std::string version = "__version__ = '9.8.7+cpu'\ngit_version = '";
    write(torch() / "version.py", version + "another'\n");
    EXPECT_EQ(in_child(compiled_one), 0) << "a torch of that version whose sources are others";
    write(torch() / "version.py", "__version__ = '9.8.8+cpu'\n");
    EXPECT_EQ(in_child(compiled_one), 0) << "another version of torch";
    write(torch() / "version.py", "__version__ = '9.8.7+cpu'\n");
    EXPECT_EQ(in_child(used_prebuilt), 0);
    write(sources() / "host/base/extra.h", "// new");
    EXPECT_EQ(in_child(compiled_one), 0) << "other sources of the adapter";
}

TEST_F(AdapterRecipeTest, PrebuiltAdapterThatCannotBeLoadedIsPassedOver) {
    const fs::path adapter = make_prebuilt(torch(), lib_dir());
    fs::resize_file(adapter, fs::file_size(adapter) / 2);
    EXPECT_EQ(in_child(compiled_one), 0);
    write(sources() / "interpose/torch/undefined.cpp",
          "int nobody_has_this();\nextern int (*const pointer)();\nint (*const pointer)() = nobody_has_this;\n");
    make_prebuilt(torch(), lib_dir());
    EXPECT_EQ(in_child([](const AdapterApi* api, const AdapterLoadResult& result) {
                  return api == nullptr && !result.prebuilt &&
                         said.size() == 2;  // it is tried, and cannot be loaded either
              }),
              1);
}

}  // namespace
}  // namespace numsan
