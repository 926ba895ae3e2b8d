// Values to bins and bins to values: twin of grid.Grid.
#pragma once

#include <algorithm>
#include <cstdint>

namespace swapcal {

struct Grid {
    double low, high;
    int64_t n;

    double border(int64_t i) const { return low + (high - low) * (double(i) / double(n)); }

    double midpoint(int64_t i) const { return low + (high - low) * (double(2 * i + 1) / double(2 * n)); }

    int64_t bin(double value) const {
        double share = std::min(std::max((value - low) / (high - low), 0.0), 1.0);
        int64_t i = std::min(int64_t(share * double(n)), n - 1);
        // The quotient may be rounded across a border, by one bin at most.
        if (i > 0 && value < border(i)) return i - 1;
        return i < n - 1 && value >= border(i + 1) ? i + 1 : i;
    }
};

}  // namespace swapcal
