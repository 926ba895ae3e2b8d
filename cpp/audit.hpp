// The sums of an audit, round after round: twin of audit.sums. Every sum is added to in the order of the rounds.
#pragma once

#include <cmath>
#include <cstdint>
#include <cstring>
#include <vector>

#include "exponential.hpp"
#include "randomness.hpp"

namespace swapcal {

// Per forecast value: rounds, count (their weights), v, vv and, where values share a bin, forecast; null where not. Per
// value and function, n of them in a row: xv and, where intervals are wanted, active, weight, xvxv; null where not.
struct AuditSums {
    double *rounds, *count, *v, *vv, *forecast;
    double *xv, *active, *weight, *xvxv;
    int64_t n;
};

// What comes in: the slot, V, forecast and weight of each round. Without `weights` every round weighs 1.
struct AuditRounds {
    const int64_t *slots;
    const double *errors, *forecasts, *weights;
    int64_t n_rounds;

    double weight(int64_t t) const { return weights ? weights[t] : 1.0; }

    // Adds round t to its value, and returns its weighted error.
    double add_to(const AuditSums &sums, int64_t t) const {
        int64_t slot = slots[t];
        double w = weight(t), error = w * errors[t];
        sums.rounds[slot] += 1.0;
        sums.count[slot] += w;
        sums.v[slot] += error;
        sums.vv[slot] += error * error;
        if (sums.forecast) sums.forecast[slot] += w * forecasts[t];
        return error;
    }
};

// Numbers the distinct values as they first appear: codes[t] is the number of values[t]. 0.0 and -0.0 are one value,
// and come out as 0.0. Sorting would do too, but costs ten times as much where values repeat.
inline std::vector<double> number_values(const double *values, int64_t n, int64_t *codes) {
    std::vector<double> distinct;
    std::vector<int64_t> table(256, -1);  // open addressing; never more than half full
    uint64_t mask = table.size() - 1;
    auto home = [&](double key) {
        uint64_t bits;
        std::memcpy(&bits, &key, sizeof bits);
        return mix64(bits) & mask;
    };
    for (int64_t t = 0; t < n; ++t) {
        double key = values[t] + 0.0;
        uint64_t at = home(key);
        // Bits rather than ==, so that a NaN would be found again and the search would end.
        while (table[at] >= 0 && std::memcmp(&distinct[table[at]], &key, sizeof key) != 0) at = (at + 1) & mask;
        if (table[at] < 0) {
            table[at] = int64_t(distinct.size());
            distinct.push_back(key);
            codes[t] = table[at];
            if (2 * distinct.size() > table.size()) {
                table.assign(2 * table.size(), -1);
                mask = table.size() - 1;
                for (size_t i = 0; i < distinct.size(); ++i) {
                    uint64_t free = home(distinct[i]);
                    while (table[free] >= 0) free = (free + 1) & mask;
                    table[free] = int64_t(i);
                }
            }
        } else {
            codes[t] = table[at];
        }
    }
    return distinct;
}

// How many of the increasing `edges` lie below each value, or are not above it if those equal to it count too. Halving
// without a branch: a processor cannot guess the bin of a forecast.
template <bool Equal>
inline void count_below(const double *edges, int64_t n_edges, const double *values, int64_t n_values, int64_t *bins) {
    for (int64_t t = 0; t < n_values; ++t) {
        double value = values[t];
        int64_t at = 0, n = n_edges;
        while (n > 1) {
            int64_t half = n / 2;
            double edge = edges[at + half - 1];
            at += half & -int64_t(Equal ? edge <= value : edge < value);
            n -= half;
        }
        bins[t] = at + (n == 1 && (Equal ? edges[at] <= value : edges[at] < value));
    }
}

// Whether all of `indices` lie in [0, n).
inline bool all_below(const int64_t *indices, int64_t size, int64_t n) {
    bool sound = true;
    for (int64_t k = 0; k < size; ++k) sound &= uint64_t(indices[k]) < uint64_t(n);
    return sound;
}

// Whether `indptr` rises from 0 and stays within `size` entries.
inline bool rises_within(const int64_t *indptr, int64_t n_rounds, int64_t size) {
    bool sound = indptr[0] == 0 && indptr[n_rounds] <= size;
    for (int64_t t = 0; t < n_rounds; ++t) sound &= indptr[t] <= indptr[t + 1];
    return sound;
}

template <bool Intervals>
inline void add_entry(const AuditSums &sums, int64_t cell, double x, double error, double w) {
    double product = x * error;
    sums.xv[cell] += product;
    if (Intervals) {
        sums.active[cell] += 1.0;
        sums.weight[cell] += w * std::fabs(x);
        sums.xvxv[cell] += product * product;
    }
}

template <bool Intervals>
inline void add_sparse(const AuditSums &sums, const AuditRounds &rounds, const int64_t *indptr, const int64_t *indices,
                       const double *values) {
    for (int64_t t = 0; t < rounds.n_rounds; ++t) {
        double error = rounds.add_to(sums, t), w = rounds.weight(t);
        int64_t first = rounds.slots[t] * sums.n;
        for (int64_t k = indptr[t]; k < indptr[t + 1]; ++k) {
            add_entry<Intervals>(sums, first + indices[k], values[k], error, w);
        }
    }
}

template <bool Intervals>
inline void add_dense(const AuditSums &sums, const AuditRounds &rounds, const double *x) {
    int64_t n = sums.n;
    std::vector<int64_t> positions(n);
    int64_t *position = positions.data();
    for (int64_t t = 0; t < rounds.n_rounds; ++t, x += n) {
        double error = rounds.add_to(sums, t), w = rounds.weight(t);
        // Positions are kept first, without a branch: a processor cannot guess which entries are zero.
        int64_t m = 0;
        for (int64_t j = 0; j < n; ++j) {
            position[m] = j;
            m += x[j] != 0.0;
        }
        int64_t first = rounds.slots[t] * n;
        for (int64_t k = 0; k < m; ++k) {
            add_entry<Intervals>(sums, first + position[k], x[position[k]], error, w);
        }
    }
}

// Index of the first entry that is not finite or outside [-limit, limit]; -1 if there is none.
SWAPCAL_VECTORIZED
static int64_t find_bad(const double *x, int64_t size, double limit) {
    constexpr int64_t kStretch = 512;
    limit = std::fmin(limit, 1.7976931348623157e308);  // so that infinities are bad under any limit
    for (int64_t start = 0; start < size; start += kStretch) {
        int64_t end = start + kStretch < size ? start + kStretch : size;
        // No early way out within a stretch, so that the compiler can compare several entries at once.
        int64_t bad = 0;
        for (int64_t i = start; i < end; ++i) bad += !(std::fabs(x[i]) <= limit);
        for (int64_t i = start; bad && i < end; ++i) {
            if (!(std::fabs(x[i]) <= limit)) return i;
        }
    }
    return -1;
}

}  // namespace swapcal
