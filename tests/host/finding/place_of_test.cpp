// Whose file a frame is, and which frame of a stack is the line to look at.
#include "host/finding/place_of.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdio>
#include <filesystem>
#include <fstream>

namespace numsan {
namespace {

SourceFrame frame(const char* file, const char* function = "f", int line = 1, bool native = false) {
    return {file, function, line, nullptr, native};
}

const PlaceFinder kPlaces("/env/lib/python3.11/site-packages/torch");

TEST(PlaceOf, Origin) {
    EXPECT_EQ(kPlaces.origin(frame("/env/lib/python3.11/site-packages/torch/nn/functional.py")), Origin::Torch);
    EXPECT_EQ(kPlaces.origin(frame("/env/lib/python3.11/site-packages/torchvision/ops.py")), Origin::Library);
    EXPECT_EQ(kPlaces.origin(frame("/usr/lib/python3/dist-packages/x.py")), Origin::Library);
    EXPECT_EQ(kPlaces.origin(frame("/usr/lib/python3.11/runpy.py")), Origin::StandardLibrary);
    EXPECT_EQ(kPlaces.origin(frame("<frozen importlib._bootstrap>")), Origin::StandardLibrary);
    EXPECT_EQ(kPlaces.origin(frame("<eval_with_key>.3")), Origin::Torch) << "code that torch.fx wrote";
    EXPECT_EQ(kPlaces.origin(frame("<stdin>")), Origin::User);
    EXPECT_EQ(kPlaces.origin(frame("")), Origin::StandardLibrary);
    EXPECT_EQ(kPlaces.origin(frame("/home/me/train.py")), Origin::User);
    EXPECT_EQ(kPlaces.origin(frame("train.py")), Origin::User);
    EXPECT_EQ(kPlaces.origin(frame("/home/me/lib/python3.c", "f", 1, true)), Origin::User);
    EXPECT_EQ(PlaceFinder("").origin(frame("/x/torch/a.py")), Origin::User) << "without a root nothing is torch's";
}

TEST(PlaceOf, HeadersOfCudasToolkitAreNobodysCode) {
    for (const char* file :
         {"/usr/local/cuda/bin/../targets/x86_64-linux/include/cuda_runtime.h",
          "/usr/local/cuda/targets/sbsa-linux/include/crt/a.h", "/opt/targets/cuda/targets/x86_64-linux/include/x.h"})
        EXPECT_EQ(kPlaces.origin(frame(file, "f", 1, true)), Origin::StandardLibrary) << file;
    EXPECT_EQ(kPlaces.origin(frame("/usr/include/c++/12/vector", "f", 1, true)), Origin::StandardLibrary);
    for (const char* file : {"/home/me/targets/include/a.h", "/home/me/targets/x86/src/include/a.h", "/home/targets/a",
                             "/home/me/proj/targets/h100/include/kernels.cuh", "/home/me/targets/board/include/a.h",
                             "/home/me/targets/x86_64-linux/src/a.h"})
        EXPECT_EQ(kPlaces.origin(frame(file, "f", 1, true)), Origin::User) << file;
}

TEST(PlaceOf, StandardLibraryIsWhereTheInterpreterHasIt) {
    const PlaceFinder places("", "/opt/py/lib/python3.12");
    EXPECT_EQ(places.origin(frame("/opt/py/lib/python3.12/contextlib.py")), Origin::StandardLibrary);
    EXPECT_EQ(places.origin(frame("/opt/py/lib/python3.12/site-packages/x.py")), Origin::Library);
    EXPECT_EQ(places.origin(frame("/opt/py/lib/python3.12-mine/x.py")), Origin::User);
    EXPECT_EQ(places.origin(frame("/data/lib/python3.12/train.py")), Origin::User);
    EXPECT_EQ(places.origin(frame("/opt/py/lib/python3.12/contextlib.py", "f", 1, true)), Origin::User);
}

TEST(PlaceOf, StandardLibraryOfAnInterpreterThatDoesNotSay) {
    const PlaceFinder places("");
    EXPECT_EQ(places.origin(frame("/opt/lib/python3.12/contextlib.py")), Origin::StandardLibrary);
    EXPECT_EQ(places.origin(frame("/opt/lib/python3.14t/contextlib.py")), Origin::StandardLibrary);
    for (const char* file : {"/data/lib/python3-projects/a.py", "/data/lib/python3.x/a.py", "/data/lib/python3.",
                             "/data/lib/python3.12", "/data/lib/python3.12-mine/a.py", "/data/lib/python3./a.py"}) {
        EXPECT_EQ(places.origin(frame(file)), Origin::User) << file;
    }
}

TEST(PlaceOf, EnvironmentBehindALink) {
    namespace fs = std::filesystem;
    const fs::path folder = fs::canonical(testing::TempDir()) / ("numsan_link_" + std::to_string(getpid()));
    for (const char* package : {"torch", "torchvision"}) {
        fs::create_directories(folder / "real/site-packages" / package);
        std::ofstream(folder / "real/site-packages" / package / "a.py") << "x\n";
    }
    fs::create_directory_symlink(folder / "real", folder / "link");
    const PlaceFinder places((folder / "real/site-packages/torch").string());
    const auto origin = [&](const char* file) { return places.origin(frame((folder / file).c_str())); };
    EXPECT_EQ(origin("real/site-packages/torch/a.py"), Origin::Torch);
    EXPECT_EQ(origin("link/site-packages/torch/a.py"), Origin::Torch);
    EXPECT_EQ(origin("link/site-packages/torchvision/a.py"), Origin::Library);
    EXPECT_EQ(origin("link/site-packages/torch/gone.py"), Origin::Library);
    fs::remove_all(folder);
}

TEST(PlaceOf, InnermostFrames) {
    const std::vector<SourceFrame> stack{
        frame("/env/lib/python3.11/site-packages/torch/nn/functional.py", "softmax"),
        frame("/env/lib/python3.11/site-packages/transformers/model.py", "attend"),
        frame("/usr/lib/python3.11/contextlib.py", "inner"),
        frame("/home/me/train.py", "main"),
    };
    ASSERT_NE(kPlaces.innermost(stack), nullptr);
    EXPECT_EQ(kPlaces.innermost(stack)->function, "attend");
    ASSERT_NE(kPlaces.innermost_user(stack), nullptr);
    EXPECT_EQ(kPlaces.innermost_user(stack)->function, "main");
    EXPECT_EQ(kPlaces.innermost(stack, 2)->function, "main");
    EXPECT_EQ(kPlaces.innermost(stack, 0, 1), nullptr);
    EXPECT_EQ(kPlaces.innermost_user(stack, 0, 3), nullptr);
    EXPECT_EQ(kPlaces.innermost({}), nullptr);
    EXPECT_EQ(kPlaces.innermost(stack, 9), nullptr);
}

TEST(PlaceOf, BackwardEntry) {
    EXPECT_EQ(PlaceFinder::backward_entry({}), 0u);
    EXPECT_EQ(PlaceFinder::backward_entry({frame("a.py", "f")}), 1u);
    EXPECT_EQ(PlaceFinder::backward_entry({frame("a.py", "backward"), frame("g.py", "_engine_run_backward")}), 1u);
}

TEST(PlaceOf, CountsEqualLinesOfAFunction) {
    const std::string path = testing::TempDir() + "numsan_same_" + std::to_string(getpid()) + ".py";
    std::ofstream(path) << "def f(x):\n  x = log(x)\n  x = log(x)\nclass A:\n  def g(self, x):\n    x = log(x)\n"
                           "  async def h(\n      x):\n    x = log(x)\n    y = 1\n    x = log(x)\n";
    const PlaceFinder finder("");
    const auto above = [&](int line, const char* function) {
        return finder.same_lines_above({path, line, function, source_line(path, line), {}});
    };
    EXPECT_EQ(above(2, "f"), 0);
    EXPECT_EQ(above(3, "f"), 1);
    EXPECT_EQ(above(6, "A.g"), 0);
    EXPECT_EQ(above(9, "A.h"), 0);
    EXPECT_EQ(above(11, "A.h"), 1);
    EXPECT_EQ(above(11, "<lambda>"), 4) << "a function without a def of its own";
    EXPECT_EQ(finder.same_lines_above({path, 3, "f", {}, {}}), 0);
    EXPECT_EQ(finder.same_lines_above({"/nowhere/at/all.py", 3, "f", "x", {}}), 0);
    std::remove(path.c_str());
}

TEST(PlaceOf, LinesThatLieInNoFileAreLearned) {
    PlaceFinder finder("");
    finder.learn({{{{"/tmp/ipykernel_1/2.py", 3}, "f"}, {"def f(x):\n    x = log(x)\n    x = log(x)", 7}},
                  {{{"<string>", 1}, "<module>"}, {"log(x)"}}});
    const Place cell = finder.place({"/tmp/ipykernel_1/2.py", "f", 3});
    EXPECT_EQ(cell.code, "x = log(x)");
    EXPECT_EQ(cell.cell, 7);
    EXPECT_EQ(finder.same_lines_above(cell), 1);
    EXPECT_EQ(finder.place({"/tmp/ipykernel_1/2.py", "g", 3}).code, std::nullopt) << "of another function";
    const Place command = finder.place({"<string>", "<module>", 1});
    EXPECT_EQ(command.code, "log(x)");
    EXPECT_EQ(command.cell, std::nullopt);
    EXPECT_EQ(finder.place({"<string>", "<module>", 2}).code, std::nullopt);
}

TEST(PlaceOf, ReadsTheLine) {
    const std::string path = testing::TempDir() + "numsan_place_" + std::to_string(getpid()) + ".py";
    std::ofstream(path) << "first\n\t  y = log(x)  \r\n\nlast";
    EXPECT_EQ(source_line(path, 1), "first");
    EXPECT_EQ(source_line(path, 2), "y = log(x)");
    EXPECT_EQ(source_line(path, 3), std::nullopt);
    EXPECT_EQ(source_line(path, 4), "last");
    EXPECT_EQ(source_line(path, 5), std::nullopt);
    EXPECT_EQ(source_line(path, 0), std::nullopt);
    EXPECT_EQ(source_line(path, -1), std::nullopt);
    EXPECT_EQ(source_line("/nowhere/at/all.py", 1), std::nullopt);
    EXPECT_EQ(source_lines(path, 2, 9), (std::vector<std::string>{"\t  y = log(x)", "", "last"}));
    EXPECT_TRUE(source_lines("/nowhere/at/all.py", 1, 9).empty());
    const Place place = PlaceFinder("").place({path, "forward", 2, nullptr, false});
    EXPECT_EQ(place.file, path);
    EXPECT_EQ(place.line, 2);
    EXPECT_EQ(place.function, "forward");
    EXPECT_EQ(place.code, "y = log(x)");
    std::remove(path.c_str());
}

}  // namespace
}  // namespace numsan
