// The hint's own record: twin of engine/values.py.
#pragma once

#include <cmath>
#include <cstdint>

#include "row.hpp"

namespace swapcal {

struct Record {
    double *sums, *squares;  // per function
    double *totals;          // rounds, squares, cost of overruling, its squares, values added
    double limit;            // squared standard errors that a clean record may show

    bool clean(const Row &row) const {
        // The logarithm is at least 0: only sums that are large without it need it.
        double most = limit;
        for (int64_t k = 0; k < row.n; ++k) {
            double beyond = std::fabs(sums[row.index[k]]) - 1.0;
            beyond = beyond > 0.0 ? beyond : 0.0;
            if (beyond * beyond <= most * squares[row.index[k]]) continue;
            if (most == limit) most = limit * (1.0 + std::log(totals[0] > 1.0 ? totals[0] : 1.0));
            if (!(beyond * beyond <= most * squares[row.index[k]])) return false;
        }
        return true;
    }

    bool missed() const { return totals[2] > std::sqrt(totals[3]); }

    void add(const Row &row, double v_hint, bool overruled, double cost) {
        for (int64_t k = 0; k < row.n; ++k) {
            double gain = row.value[k] * v_hint;
            sums[row.index[k]] += gain;
            squares[row.index[k]] += gain * gain;
        }
        totals[0] += 1.0;
        totals[1] += v_hint * v_hint;
        if (overruled) {
            totals[2] += cost;
            totals[3] += cost * cost;
        }
    }
};

}  // namespace swapcal
