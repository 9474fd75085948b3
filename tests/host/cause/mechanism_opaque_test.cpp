// NS115 OPAQUE: a result that no operand explains.
#include <gtest/gtest.h>

#include "host/cause/mechanism.h"
#include "tests/host/verdict/made_up.h"

namespace numsan {
namespace {

std::vector<TensorFact> operands_of(std::initializer_list<float> values) {
    TensorFact operand;
    operand.health = CpuScanner().health(MadeUp(values).view());
    return {operand};
}

MechanismVerdict verdict(const char* op, KindSet kind, const std::vector<TensorFact>& operands, bool backward = false) {
    return mechanism_of({op, kind, backward, DType::Float32, &operands});
}

TEST(MechanismOpaque, TorchsOwnOpThatIsDefinedForItsOperands) {
    const MechanismVerdict found = verdict("aten::mm", kNaN, operands_of({1, -2}));
    EXPECT_EQ(found.mechanism, Mechanism::OPAQUE);
    EXPECT_EQ(found.evidence, std::vector<std::string>{"every operand that was read was finite, the largest 2"});
    EXPECT_EQ(verdict("aten::log", kNaN, operands_of({1, -2})).mechanism, Mechanism::DOM);
    EXPECT_EQ(verdict("aten::mm", kNaN, operands_of({1e30f, -2})).mechanism, Mechanism::OVF);
}

TEST(MechanismOpaque, OpThatTorchDoesNotDefine) {
    const std::string own = "`mine::log` is no operator of torch's: what it computes is its own";
    for (const KindSet kind : {kNaN, kPosInf, kNegInf}) {
        for (const bool backward : {false, true}) {
            const MechanismVerdict found = verdict("mine::log", kind, operands_of({1, -2, 0}), backward);
            EXPECT_EQ(found.mechanism, Mechanism::OPAQUE) << "whatever the operator of torch's with this name does";
            EXPECT_EQ(found.evidence,
                      (std::vector<std::string>{"every operand that was read was finite, the largest 2", own}));
        }
    }
    EXPECT_EQ(verdict("mine::log", kNaN, {}).evidence, std::vector<std::string>{own}) << "nothing was read";
    EXPECT_EQ(verdict("mine::log", kPosInf, operands_of({1e30f})).mechanism, Mechanism::OVF);
    EXPECT_EQ(verdict("mine::log", kNaN, operands_of({1e30f})).mechanism, Mechanism::OPAQUE);
}

}  // namespace
}  // namespace numsan
