// The hint's own record: twin of engine/values.py.
#pragma once

#include <cmath>
#include <cstdint>

#include "evidence.hpp"
#include "row.hpp"

namespace swapcal {

struct Record {
    double *sums, *squares;  // per function, and per block
    double *totals;          // rounds, squares, cost of overruling, its squares, values added
    double limit;            // squared standard errors that a clean record may show
    Layout layout;

    // `size`: the largest V that one more outcome may bring.
    bool clean(const Row &row, double size) const {
        // The logarithm is at least 0: only sums that are large without it need it.
        double most = limit;
        bool found = true;
        auto look = [&](double length, double squares) {
            double beyond = length - size;
            beyond = beyond > 0.0 ? beyond : 0.0;
            if (beyond * beyond <= most * squares) return;
            if (most == limit) most = limit * (1.0 + std::log(totals[0] > 1.0 ? totals[0] : 1.0));
            found = found && beyond * beyond <= most * squares;
        };
        if (layout.alone()) {
            for (int64_t k = 0; k < row.n && found; ++k) look(std::fabs(sums[row.index[k]]), squares[row.index[k]]);
        } else {
            layout.active(row, [&](int64_t b, int64_t, int64_t) { look(layout.norm(sums, b), squares[b]); });
        }
        return found;
    }

    bool missed() const { return totals[2] > std::sqrt(totals[3]); }

    void add(const Row &row, double v_hint, bool overruled, double cost) {
        double *__restrict sum = sums, *__restrict square = squares;
        const double *__restrict value = row.value;
        if (layout.alone()) {
            row.each([&](int64_t k, int64_t j) {
                double gain = value[k] * v_hint;
                sum[j] += gain;
                square[j] += gain * gain;
            });
        } else {
            row.each([&](int64_t k, int64_t j) {
                double gain = value[k] * v_hint;
                sum[j] += gain;
                square[layout.block[j]] += gain * gain;
            });
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
