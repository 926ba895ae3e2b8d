// Contexts as they come, as checked rows in the class's own scale: twin of Finite.row, Linear.row and levels.active.
#pragma once

#include <cmath>
#include <cstdint>
#include <cstring>
#include <vector>

#include "exponential.hpp"
#include "grid.hpp"
#include "row.hpp"

namespace swapcal {

// Whether entries of a class with radius 1 are in the unit ball as they are.
inline bool in_ball(const double *values, int64_t n) {
    double squares = 0.0;
    for (int64_t k = 0; k < n; ++k) squares += values[k] * values[k];
    return (1e-200 < squares) & (squares <= 1.0);
}

// Brings the entries into the unit ball: twin of hypotheses.linear.scaled.
inline void scale_into_ball(double *values, int64_t n, double radius) {
    double squares = 0.0;
    for (int64_t k = 0; k < n; ++k) squares += values[k] * values[k];
    if (squares > 1e-200 && squares < 1e200) {
        double length = std::sqrt(squares);
        double divisor = length > radius ? length : radius;
        if (divisor == 1.0) return;
        for (int64_t k = 0; k < n; ++k) values[k] /= divisor;
        return;
    }
    double largest = 0.0;
    for (int64_t k = 0; k < n; ++k) largest = std::fabs(values[k]) > largest ? std::fabs(values[k]) : largest;
    if (largest == 0.0) return;
    squares = 0.0;
    for (int64_t k = 0; k < n; ++k) squares += (values[k] / largest) * (values[k] / largest);
    double length = std::sqrt(squares);
    bool outside = largest * length > radius;
    for (int64_t k = 0; k < n; ++k) values[k] = outside ? values[k] / largest / length : values[k] / radius;
}

// Of n entries, how many are zero; -1 if one is larger than `most`, or no number.
SWAPCAL_VECTORIZED
static int64_t zeros(const double *x, int64_t n, double most) {
    int64_t zeros = 0, allowed = 0;
    for (int64_t j = 0; j < n; ++j) {
        zeros += x[j] == 0.0;
        allowed += std::fabs(x[j]) <= most;
    }
    return allowed == n ? zeros : -1;
}

// The row of the round at hand: where it was given, or in a buffer with room for the entry of a level set.
struct Reader {
    int64_t n_own;    // length of the context
    int64_t n_inputs; // how many of its first positions the learning hint sees
    double radius;    // of the linear class; 0 for values in [-1, 1]
    Grid levels;      // level sets of the hint; none if levels.n is 0
    std::vector<int64_t> index, places;  // `places` has position k at k
    std::vector<double> value;
    const int64_t *at = nullptr;
    const double *entry = nullptr;
    int64_t whole = 0;  // entries that come first in their own places

    Reader(int64_t n, int64_t seen, double r, Grid l)
        : n_own(n), n_inputs(seen), radius(r), levels(l), index(n + 1), places(n + 1), value(n + 1) {
        for (int64_t k = 0; k <= n; ++k) places[k] = k;
    }

    // The largest magnitude that an entry may have.
    double limit() const { return radius > 0.0 ? std::numeric_limits<double>::max() : 1.0; }

    // How many entries of the dense context `x` are not zero; -1 if one is not allowed.
    int64_t dense(const double *x) {
        int64_t empty = zeros(x, n_own, limit());
        if (empty < 0) return -1;
        if (!empty) {
            take(places.data(), x, n_own);
            if (radius > 0.0 && !(radius == 1.0 && in_ball(x, n_own))) {
                std::memcpy(value.data(), x, 8 * n_own);
                entry = value.data();
                scale_into_ball(value.data(), n_own, radius);
            }
            return n_own;
        }
        int64_t m = 0;
        for (int64_t j = 0; j < n_own; ++j) {
            index[m] = j;
            value[m] = x[j];
            m += x[j] != 0.0;
        }
        if (radius > 0.0) scale_into_ball(value.data(), m, radius);
        take(index.data(), value.data(), 0);
        return m;
    }

    // The m entries in the buffer, which were given in any order: sorted, checked, without zeros. Twin of rows._sparse.
    int64_t entries(int64_t m) {
        double most = limit();
        int64_t kept = 0;
        take(index.data(), value.data(), 0);
        for (int64_t k = 0; k < m; ++k) {
            int64_t at = index[k], j = k;
            double x = value[k];
            if (at < 0 || at >= n_own || !(std::fabs(x) <= most)) return -1;
            for (; j > 0 && index[j - 1] > at; --j) index[j] = index[j - 1], value[j] = value[j - 1];
            if (j > 0 && index[j - 1] == at) return -1;
            index[j] = at, value[j] = x;
        }
        for (int64_t k = 0; k < m; ++k) {
            index[kept] = index[k], value[kept] = value[k];
            kept += value[k] != 0.0;
        }
        if (radius > 0.0) scale_into_ball(value.data(), kept, radius);
        return kept;
    }

    // Into the buffer.
    int64_t copy(const int64_t *indices, const double *values, int64_t m) {
        for (int64_t k = 0; k < m; ++k) index[k] = indices[k], value[k] = values[k];
        return m;
    }

    // A row that was read and scaled before.
    int64_t sparse(const int64_t *indices, const double *values, int64_t m) {
        take(indices, values, 0);
        return m;
    }

    // How many of the first m entries the learning hint sees.
    int64_t seen(const int64_t *indices, int64_t m) const {
        while (m > 0 && indices[m - 1] >= n_inputs) --m;
        return m;
    }

    // The context of m entries, with the level set in which the hint lies.
    Row row(int64_t m, bool hinted, double hint) {
        if (!hinted || !levels.n) return {at, entry, m, whole};
        int64_t *positions = whole ? places.data() : index.data();
        if (entry != value.data()) std::memcpy(value.data(), entry, 8 * m);
        if (at != positions) std::memcpy(positions, at, 8 * m);
        positions[m] = n_own + levels.bin(hint);
        value[m] = 1.0;
        return {positions, value.data(), m + 1, whole};
    }

  private:
    void take(const int64_t *indices, const double *values, int64_t in_place) { at = indices, entry = values, whole = in_place; }
};

}  // namespace swapcal
