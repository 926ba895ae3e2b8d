// Values to bins and bins to values: twin of grid.Grid.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

namespace swapcal {

struct Grid {
    double low, high;
    int64_t n;
    std::vector<double> borders, midpoints;

    Grid(double l, double h, int64_t m) : low(l), high(h), n(m), borders(m + 1), midpoints(m) {
        for (int64_t i = 0; i <= n; ++i) borders[i] = low + (high - low) * (double(i) / double(n));
        for (int64_t i = 0; i < n; ++i) midpoints[i] = low + (high - low) * (double(2 * i + 1) / double(2 * n));
    }

    double border(int64_t i) const { return borders[i]; }
    double midpoint(int64_t i) const { return midpoints[i]; }

    int64_t bin(double value) const {
        double share = std::min(std::max((value - low) / (high - low), 0.0), 1.0);
        int64_t i = std::min(int64_t(share * double(n)), n - 1);
        // The quotient may be rounded across a border, by one bin at most.
        if (i > 0 && value < border(i)) return i - 1;
        return i < n - 1 && value >= border(i + 1) ? i + 1 : i;
    }
};

}  // namespace swapcal
