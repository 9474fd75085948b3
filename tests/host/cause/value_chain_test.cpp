// The way of a value: what an op read, back to what it was computed from, and who handed a bad value on.
#include "host/cause/value_chain.h"

#include <gtest/gtest.h>

#include <string>

#include "tests/host/verdict/made_up.h"

namespace numsan {
namespace {

class ValueChain : public testing::Test {
  protected:
    /// One op; the ops are numbered on.
    void op(const OpInfo& info, const MadeUp& input, const MadeUp& output, StackId stack = 4) {
        const TensorView read = input.view();
        const TensorView written = output.returned();
        OpEvent event{};
        event.op = &info;
        event.inputs = &read;
        event.input_count = 1;
        event.outputs = &written;
        event.output_count = 1;
        lineage.at_step(step, OpSeq(++seq));
        lineage.add(event, written, CpuScanner().range(written), OpSeq(seq), stack, 0);
    }
    Birth birth_of(const char* name) const {
        Birth birth;
        birth.kind = kPosInf;
        birth.op = name;
        birth.seq = birth.forward_seq = OpSeq(seq);
        birth.step = step;
        return birth;
    }
    static std::string text(const std::vector<ChainLink>& chain) {
        std::string out;
        for (const ChainLink& link : chain) {
            out += std::string(link.before ? "<" : ">") + link.op + ":" + std::to_string(number(link.seq)) +
                   (link.bad ? "!" : "") + " ";
        }
        return out;
    }

    const OpInfo mul{"aten::mul", "", OpClass::Other, false, 0}, exp{"aten::exp", "", OpClass::Other, false, 1},
        sum{"aten::sum", "", OpClass::Other, false, 2}, relu{"aten::relu", "", OpClass::Other, false, 3};
    Lineage lineage;
    int64_t seq = 0, step = 0;
    MadeUp x{1, 2}, y{80, 90}, bad{kInf, 1}, total{kInf}, other{3, 4}, later{kNan};
};

TEST_F(ValueChain, BackToWhatWasReadAndOnToWhatEscaped) {
    op(mul, x, y);
    op(relu, x, other);
    op(exp, y, bad);
    const Birth birth = birth_of("aten::exp");
    op(relu, other, x);
    op(sum, bad, total);
    op(mul, total, later);
    EXPECT_EQ(text(value_chain(birth, lineage, OpSeq(5), 32, nullptr)), "<aten::mul:1 >aten::sum:5! ")
        << "up to the escape";
    const std::vector<ChainLink> chain = value_chain(birth, lineage, OpSeq(6), 32, nullptr);
    EXPECT_EQ(text(chain), "<aten::mul:1 >aten::sum:5! >aten::mul:6! ");
    EXPECT_EQ(chain[0].absmax, 90);
    EXPECT_EQ(chain[0].absmin, 80);
    EXPECT_FALSE(chain[1].absmax.has_value());
}

TEST_F(ValueChain, HistoryIsOfTheSameOpAtTheSameLine) {
    for (step = 0; step < 3; ++step) {
        y.values = {float(10 * step + 1), 1};
        op(mul, x, y, 4);
        op(mul, x, other, 5);
    }
    step = 2;
    op(exp, y, bad);
    const std::vector<ChainLink> chain = value_chain(birth_of("aten::exp"), lineage, OpSeq(seq), 2, nullptr);
    ASSERT_EQ(text(chain), "<aten::mul:5 ");
    ASSERT_EQ(chain[0].history.size(), 2u) << "no more steps than were asked for";
    EXPECT_EQ(chain[0].history[0].step, 1);
    EXPECT_EQ(chain[0].history[1].absmax, 21);
}

TEST_F(ValueChain, OfABackwardBirthFromTheForwardOpOn) {
    op(mul, x, y);
    op(exp, y, other);
    Birth birth = birth_of("aten::mul");
    birth.node = "ExpBackward0";
    birth.forward_op = "aten::exp";
    birth.forward_seq = OpSeq(2);
    op(relu, x, bad);
    birth.seq = OpSeq(3);
    EXPECT_EQ(text(value_chain(birth, lineage, OpSeq(3), 32, nullptr)), "") << "no forward op is known";
    birth.has_forward = true;
    EXPECT_EQ(text(value_chain(birth, lineage, OpSeq(3), 32, nullptr)), "<aten::mul:1 ");
}

TEST_F(ValueChain, IsBoundedAndOptional) {
    for (int i = 0; i < 20; ++i) op(relu, i % 2 ? y : x, i % 2 ? x : y);
    op(exp, x, bad);
    const Birth birth = birth_of("aten::exp");
    const MadeUp *from = &bad, *to = &total;
    for (int i = 0; i < 30; ++i, std::swap(from, to)) op(mul, *from, *to);
    const std::vector<ChainLink> chain = value_chain(birth, lineage, OpSeq(seq), 32, nullptr);
    EXPECT_EQ(std::count_if(chain.begin(), chain.end(), [](const ChainLink& link) { return link.before; }), 6);
    EXPECT_EQ(chain.size(), 18u);
    EXPECT_TRUE(value_chain(birth, lineage, OpSeq(seq), 0, nullptr).empty()) << "history=0";
    EXPECT_TRUE(value_chain(birth_of("external"), lineage, OpSeq(seq), 32, nullptr).empty());
}

}  // namespace
}  // namespace numsan
