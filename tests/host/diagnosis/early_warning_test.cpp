// What is told of growth, and that a report keeps it.
#include "host/diagnosis/early_warning.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

namespace numsan {
namespace {

EarlyWarning of_a_weight() {
    EarlyWarning one;
    one.of = "parameter";
    one.name = "model.head.weight";
    one.shape = {4, 8};
    one.op = "aten::addmm";
    one.location = Place{"/home/me/model.py", 12, "forward", "return self.head(x)", {}};
    one.dtype = "float16";
    one.step = 60;
    one.size = 512;
    one.limit = 65504;
    one.factor = 1.125;
    one.grown = 24;
    one.steps = 41;
    one.least = 30;
    one.most = 60;
    return one;
}

constexpr char kText[] =
    "early warning: at this rate float16 overflows in about 41 steps (30 to 60)\n"
    "  --> model.py:12 in forward\n"
    "   |  return self.head(x)\n"
    "   = because:  `model.head.weight` is as large as 512 in step 60: it has grown for 24 steps and is 1.12 times as "
    "large "
    "with each\n"
    "   = because:  the largest number of float16 is 65504\n"
    "   = help:     take a smaller learning rate where the optimizer is built, or clip gradients: "
    "`torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)`\n"
    "   = help:     compute this line in float32 or bfloat16, which hold larger numbers\n"
    "   = help:     keep the checkpoint that was written before step 36\n";

TEST(EarlyWarning, SaysWhatGrowsWhereAndWhenItsRangeEnds) {
    TextStyle style;
    style.cwd = "/home/me";
    EXPECT_EQ(render_early_warnings({of_a_weight()}, style), kText);
    EXPECT_EQ(render_early_warnings({}, style), "");
}

TEST(EarlyWarning, NamesWhatItCan) {
    EarlyWarning one = of_a_weight();
    one.of = "gradient";
    one.name.clear();
    const std::string text = render_early_warnings({one, one, one}, {});
    EXPECT_NE(text.find("the gradient of a parameter of 4 x 8 is as large as"), std::string::npos) << text;
    EXPECT_NE(text.find("2 further values grow like that"), std::string::npos) << text;
    one.of = "output";
    EXPECT_NE(render_early_warnings({one}, {}).find("what `aten::addmm` writes is"), std::string::npos);
}

TEST(EarlyWarning, WhatIsReadBackIsWrittenTheSame) {
    const nlohmann::ordered_json document = early_warning_document(of_a_weight());
    EXPECT_EQ(early_warning_document(read_early_warning(document)), document);
    EXPECT_EQ(read_early_warning(nullptr).steps, 0);
    for (const auto& [key, value] : document.items()) {
        nlohmann::ordered_json damaged = document;
        damaged[key] = nlohmann::ordered_json::array({nullptr, -1e300});
        render_early_warnings({read_early_warning(damaged)}, {});
    }
}

}  // namespace
}  // namespace numsan
