// When the grid gets a new value: twin of engine/values.py.
#pragma once

#include <cmath>
#include <cstdint>

#include "record.hpp"
#include "values.hpp"

namespace swapcal {

struct Cuts {
    double first, spend, near, hinted, pair, floor;
    bool fixed;  // values were given, and none is added

    bool adds(const Values &values, const Record &record, double hint) const {
        if (fixed) return false;
        if (!values.n()) return true;
        double added = record.totals[4], beyond = added - first;
        if (record.totals[0] >= first && added * record.totals[1] > spend * record.totals[0]) return false;
        if (beyond >= 0.0 && beyond * beyond * beyond >= record.totals[0]) return false;
        double unit = values.unit(hint), rest = 1.0 - unit;
        double close = near * (unit < rest ? unit : rest);
        return std::fabs(values.unit(values.value(values.nearest(hint))) - unit) > close;
    }

    // Counts a round that was rounded at `at`, and adds a value in the middle of its gap if that is to be cut.
    void cut(Values &values, double at, double rounding, double noise, double factor) const {
        int64_t rank = values.above(at);
        if (fixed || (rank < values.n() && values.value(rank) == at)) return;
        double *gap = values.gaps + 3 * rank;
        gap[0] += 1.0;
        gap[1] += rounding;
        gap[2] += noise;
        if (gap[1] * gap[1] <= factor * gap[2]) return;
        double left = rank ? values.value(rank - 1) : values.low;
        double right = rank < values.n() ? values.value(rank) : values.high;
        double a = values.unit(left), b = values.unit(right);
        if (gap[0] * (b - a) * (b - a) < floor * (0.25 * (a + b) * (2.0 - a - b))) return;
        double middle = 0.5 * (left + right);
        if (left < middle && middle < right) values.add(middle);
    }
};

}  // namespace swapcal
