// Where magnitudes lie between the smallest and the largest number of an element type, on a logarithmic line.
#pragma once

#include <optional>
#include <string>

namespace numsan::html {

/// Of one element type, from its smallest to its largest number.
class NumberLine {
  public:
    /// None for a name that is no type's. [MT]
    static std::optional<NumberLine> of(const std::string& dtype);

    double largest() const { return largest_; }
    double smallest_normal() const { return normal_; }
    double smallest() const { return smallest_; }

    /// In percent of the line; a magnitude beyond an end is at that end. `magnitude` is above 0.
    double place(double magnitude) const;

  private:
    NumberLine(double largest, double normal, double smallest)
        : largest_(largest), normal_(normal), smallest_(smallest) {}

    double largest_;
    double normal_;
    double smallest_;
};

/// "12.5%", for a style.
std::string percent(double share);

}  // namespace numsan::html
