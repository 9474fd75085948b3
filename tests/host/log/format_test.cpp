// Numbers as text: what C's printf makes in the C locale, in every locale.
#include "host/log/format.h"

#include <gtest/gtest.h>

#include <cfloat>
#include <clocale>
#include <cmath>
#include <cstdio>
#include <limits>
#include <locale>
#include <random>

namespace numsan {
namespace {

std::string printed(const char* format, int digits, double value) {
    char text[512];
    const int length = std::snprintf(text, sizeof text, format, digits, value);
    EXPECT_LT(length, static_cast<int>(sizeof text));
    return text;
}

void expect_as_printf(double value) {
    for (const int digits : {1, 3, 4, 6, 17}) {
        EXPECT_EQ(number(value, digits), printed("%.*g", digits, value));
        EXPECT_EQ(scientific(value, digits), printed("%.*e", digits, value));
    }
    for (const int decimals : {0, 2, 6}) EXPECT_EQ(fixed(value, decimals), printed("%.*f", decimals, value));
}

TEST(Format, SaysWhatPrintfSays) {
    std::mt19937_64 bits(1);
    for (int i = 0; i < 5000; ++i) {
        const uint64_t pattern = bits();
        double value = 0;
        std::memcpy(&value, &pattern, sizeof value);
        if (!std::isnan(value)) expect_as_printf(value);
    }
    for (int exponent = -45; exponent <= 45; ++exponent) {
        for (const double mantissa : {1.0, 1.5, 2.5, 9.9999995, -3.0})
            expect_as_printf(mantissa * std::pow(10, exponent));
    }
    for (const double value : {0.0, -0.0, 0.5, 65504.0, 999999.5, 1e6, DBL_MAX, DBL_MIN, 5e-324, 9007199254740991.0,
                               double(std::numeric_limits<double>::infinity())}) {
        expect_as_printf(value);
        expect_as_printf(-value);
    }
    EXPECT_EQ(number(std::nan(""), 3), "nan");
}

TEST(Format, NoNumberIsCutShort) {
    EXPECT_EQ(fixed(DBL_MAX, 0).size(), 309u);
    EXPECT_EQ(number(-DBL_MAX, 17), "-1.7976931348623157e+308");
    EXPECT_EQ(hex(~uint64_t(0), 16), "ffffffffffffffff");
}

TEST(Format, HexadecimalIsFilledUp) {
    EXPECT_EQ(hex(0xff, 4), "00ff");
    EXPECT_EQ(hex(0, 1), "0");
    EXPECT_EQ(hex(0x123456789, 4), "123456789");
}

struct Comma final : std::numpunct<char> {
    char do_decimal_point() const override { return ','; }
};

TEST(Format, LocaleOfTheProgramMakesNoDifference) {
    const std::string before = std::setlocale(LC_ALL, nullptr);
    const std::locale classic = std::locale::global(std::locale(std::locale::classic(), new Comma));
    EXPECT_EQ(number(0.5, 3), "0.5");
    std::locale::global(classic);
    bool comma = false;
    for (const char* name : {"de_DE.UTF-8", "de_DE.utf8", "fr_FR.UTF-8", "nl_NL.UTF-8"}) {
        comma = comma || std::setlocale(LC_NUMERIC, name) != nullptr;
    }
    const std::string half = number(0.5, 3);
    std::setlocale(LC_ALL, before.c_str());
    EXPECT_EQ(half, "0.5");
    if (!comma) GTEST_SKIP() << "C's locales: none with a decimal comma is installed; the one of C++ was tried";
}

}  // namespace
}  // namespace numsan
