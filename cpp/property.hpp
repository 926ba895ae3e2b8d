// Identification functions V(p, y): twin of the `identification` methods in properties/.
#pragma once

#include <cmath>
#include <cstdint>
#include <string>

namespace swapcal {

enum class PropertyKind { Mean, Moment, Quantile, Expectile, Probability, Python };

// The class of a property by its name; any other is a user's own, whose V is Python code.
inline PropertyKind property_kind(const std::string &name) {
    constexpr const char *names[] = {"Mean", "Moment", "Quantile", "Expectile", "Probability"};
    for (int k = 0; k < 5; ++k) {
        if (name == names[k]) return PropertyKind(k);
    }
    return PropertyKind::Python;
}

// Where V is Python code the kernels are told its values and never come here.
struct Property {
    PropertyKind kind;
    double low, high;   // of the labels
    double width;       // high - low, or the width of the moment's domain
    double level;       // of a quantile or expectile
    int64_t power;      // of a moment
    bool monotone;

    double identification(double p, double y) const {
        return identification_at(p, kind == PropertyKind::Moment ? raised(y) : y);
    }

    // The same with the property of the label alone: its power for a moment, else itself.
    double identification_at(double p, double y) const {
        switch (kind) {
            case PropertyKind::Mean: return width == 1.0 ? p - y : (p - y) / width;
            case PropertyKind::Moment: return (p - y) / width;
            case PropertyKind::Quantile: return (y <= p ? 1.0 : 0.0) - level;
            case PropertyKind::Expectile: return std::fabs((y <= p ? 1.0 : 0.0) - level) * (p - y) / width;
            default: return p - y;
        }
    }

    // Only products, as in properties.moment._power.
    double raised(double y) const {
        double result = 1.0;
        for (int64_t k = power; k;) {
            if (k & 1) result = result * y;
            k >>= 1;
            if (k) y = y * y;
        }
        return result;
    }

    bool valid_label(double y) const {
        return low <= y && y <= high;
    }
};

}  // namespace swapcal
