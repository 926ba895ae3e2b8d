// When the grid gets a new value: twin of engine/values.py.
#pragma once

#include <cmath>
#include <cstdint>

#include "crossing.hpp"
#include "record.hpp"
#include "values.hpp"

namespace swapcal {

struct Cuts {
    double first, spend, near, near_start, hinted, pair, floor, end, dear, soonest, wide;
    bool fixed;  // values were given, and none is added

    bool adds(const Values &values, const Record &record, double hint) const {
        if (fixed) return false;
        if (!values.n()) return true;
        double added = record.totals[4], beyond = added - first;
        if (record.totals[0] >= first && added * record.totals[1] > spend * record.totals[0]) return false;
        if (beyond >= 0.0 && beyond * beyond * beyond >= record.totals[0]) return false;
        double unit = values.unit(hint), rest = 1.0 - unit;
        double close = near * (unit < rest ? unit : rest);
        return std::fabs(values.unit(values.value(values.nearest(hint, Values::kHint))) - unit) > close;
    }

    // Twin of values.lacking: adds the value that rounds without a hint need, if there is none.
    void lacking(Values &values, Record &record, double start, double reach, double rounds) const {
        double beyond = record.totals[4] - first;
        if (fixed || (beyond >= 0.0 && beyond * beyond * beyond >= rounds)) return;
        for (Values::Asker asker : {Values::kStart, Values::kBelow, Values::kAbove}) {
            double side = asker == Values::kStart ? 0.0 : asker == Values::kBelow ? -1.0 : 1.0;
            double unit = values.unit(start) + side * reach, x = values.low + (values.high - values.low) * unit;
            double close = side == 0.0 ? near_start * reach : 2.0 * near_start * reach;
            if (0.0 < unit && unit < 1.0 && std::fabs(values.unit(values.value(values.nearest(x, asker))) - unit) > close) {
                values.add(x);
                record.totals[4] += 1.0;
                return;
            }
        }
    }

    // Counts a round that was rounded at `at`, and adds a value in the middle of its gap if that is to be cut.
    void cut(Values &values, double at, Kind kind, double rounding, double noise, double cost, double lost,
             double size) const {
        int64_t rank = values.above(at, kind == kTrusted ? Values::kHint : Values::kCut);
        if (fixed || (rank < values.n() && values.value(rank) == at)) return;
        double *gap = values.gaps + Values::kGap * rank;
        gap[Values::kRounds] += 1.0;
        gap[Values::kRounding] += rounding;
        gap[Values::kNoise] += noise;
        gap[Values::kCost] += cost;
        gap[Values::kLost] += lost;
        double left = rank ? values.value(rank - 1) : values.low;
        double right = rank < values.n() ? values.value(rank) : values.high;
        double a = values.unit(left), b = values.unit(right), width = b - a;
        double total = gap[Values::kRounding], factor = pair;
        if (kind == kLow || kind == kHigh) {
            total = total > end * size ? total - end * size : 0.0;
        } else if (kind == kTrusted) {
            factor = hinted;
            if (gap[Values::kCost] > 0.0) {
                double times = dear * gap[Values::kLost] / gap[Values::kCost], middle = 0.5 * (a + b);
                times = times > soonest ? times : soonest;
                if (times > 1.0 && width > wide * (middle < 1.0 - middle ? middle : 1.0 - middle)) times = 1.0;
                factor = hinted * times;
            }
        }
        if (total * total <= factor * gap[Values::kNoise]) return;
        if (gap[Values::kRounds] * width * width < floor * (0.25 * (a + b) * (2.0 - a - b))) return;
        double middle = 0.5 * (left + right);
        if (left < middle && middle < right) values.add(middle);
    }
};

}  // namespace swapcal
