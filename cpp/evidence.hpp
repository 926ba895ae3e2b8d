// What the bins have gathered: twins of FiniteEvidence, FiniteRecord, LinearEvidence and OracleEvidence.
// `sign(bin, row)` is Phi or a positive multiple of it, whichever is cheaper; `size(bin, sign)` makes Phi of it.
#pragma once

#include <cmath>
#include <cstdint>
#include <limits>

#include "potential.hpp"
#include "row.hpp"

namespace swapcal {

// sum_k a[index_k] value_k, from left to right.
inline double product(const double *a, const Row &row) {
    double total = 0.0;
    for (int64_t k = 0; k < row.n; ++k) total += a[row.index[k]] * row.value[k];
    return total;
}

constexpr int64_t kBlock = 64;
constexpr int64_t kWide = 1024;

#if defined(__GNUC__) || defined(__clang__)
#define SWAPCAL_PREFETCH(address) __builtin_prefetch(address)
#else
#define SWAPCAL_PREFETCH(address) ((void)(address))
#endif

// Twins of bounds.quadratic_drift and quadratic_reserve.
inline double quadratic_drift(double now, double phi, double v, double radius, double pull) {
    double xi = 2.0 * v * phi;
    return 2.0 * v * now - xi + xi * xi / (4.0 * radius) - pull;
}

inline double quadratic_reserve(double phi, double radius) { return 2.0 * std::fabs(phi) + phi * phi / radius; }

template <class Potential>
struct Finite {
    Potential potential;
    double *sums, *spreads, *weights, *counts;
    int64_t n;
    double radius;  // squared norm of the longest context, for the p-norm

    double sign(int64_t bin, const Row &row) const { return product(weights + bin * n, row); }
    double size(int64_t, double sign) const { return sign; }

    // Classes that outgrow the caches: weights that the search will ask for soon.
    void prepare(const int64_t *index, int64_t m, int64_t bin) const {
        if (n < kWide) return;
        for (int64_t k = 0; k < m; ++k) SWAPCAL_PREFETCH(weights + bin * n + index[k]);
    }

    // And the sums that the round at hand will change.
    void prepare(int64_t bin, const Row &row) const {
        if (n < kWide) return;
        for (int64_t k = 0; k < row.n; ++k) {
            SWAPCAL_PREFETCH(sums + bin * n + row.index[k]);
            SWAPCAL_PREFETCH(spreads + bin * n + row.index[k]);
        }
    }

    void record(int64_t bin, const Row &row, double v) {
        double *s = sums + bin * n, *c = spreads + bin * n, *w = weights + bin * n;
        // In blocks that fit into registers' reach: gathered, weighed as a vector, scattered.
        double block_s[kBlock], block_c[kBlock], block_w[kBlock];
        for (int64_t start = 0; start < row.n; start += kBlock) {
            int64_t m = row.n - start < kBlock ? row.n - start : kBlock;
            const int64_t *index = row.index + start;
            for (int64_t k = 0; k < m; ++k) {
                double g = row.value[start + k] * v;
                block_s[k] = s[index[k]] + g;
                block_c[k] = c[index[k]] + potential.spread(g);
            }
            potential.weigh(block_s, block_c, block_w, m);
            for (int64_t k = 0; k < m; ++k) {
                s[index[k]] = block_s[k];
                c[index[k]] = block_c[k];
                w[index[k]] = block_w[k];
            }
        }
        counts[bin] += 1.0;
        if constexpr (Potential::together) potential.row_weights(s, w, n, counts[bin]);
    }

    double level(int64_t bin, const Row &row) const {
        if constexpr (!Potential::exponential) return std::numeric_limits<double>::infinity();
        const double *s = sums + bin * n, *c = spreads + bin * n;
        double largest = 0.0;
        for (int64_t k = 0; k < row.n; ++k) {
            double level = potential.level(s[row.index[k]], c[row.index[k]]);
            largest = level > largest ? level : largest;
        }
        return largest;
    }

    double drift(int64_t bin, double now, double phi, double v) const {
        if constexpr (Potential::exponential) {
            return (now - phi) * v;
        } else {
            double count = counts[bin], norm = count != 0.0 ? potential.norm(sums + bin * n, n) : 0.0;
            return quadratic_drift(now, phi, v, radius, count != 0.0 ? norm * norm / (count * (count + 1.0)) : 0.0);
        }
    }

    double reserve(double phi) const {
        if constexpr (Potential::exponential) {
            return std::fabs(phi);
        } else {
            return quadratic_reserve(phi, radius);
        }
    }
};

struct Linear {
    double *sums, *counts;
    int64_t n;

    void prepare(const int64_t *, int64_t, int64_t) const {}
    void prepare(int64_t, const Row &) const {}

    // Phi but for its positive factor 1 / (n_i + 1): enough for its sign. Nothing is what rounding left of nothing.
    double sign(int64_t bin, const Row &row) const {
        double total = product(sums + bin * n, row);
        return std::fabs(total) > 1e-280 ? total : 0.0;
    }

    double size(int64_t bin, double sign) const { return sign / (counts[bin] + 1.0); }

    void record(int64_t bin, const Row &row, double v) {
        double *s = sums + bin * n;
        for (int64_t k = 0; k < row.n; ++k) s[row.index[k]] += row.value[k] * v;
        counts[bin] += 1.0;
    }

    double level(int64_t, const Row &) const { return std::numeric_limits<double>::infinity(); }

    double drift(int64_t bin, double now, double phi, double v) const {
        double count = counts[bin], squares = 0.0;
        const double *s = sums + bin * n;
        for (int64_t j = 0; j < n; ++j) squares += s[j] * s[j];
        return quadratic_drift(now, phi, v, 1.0, count != 0.0 ? squares / (count * (count + 1.0)) : 0.0);
    }

    double reserve(double phi) const { return quadratic_reserve(phi, 1.0); }
};

// Twin of learners.GradientDescent; the state is the clock, then theta.
struct GradientDescent {
    int64_t n;

    double predict(const double *state, const Row &row) const { return product(state + 1, row); }

    void update(double *state, const Row &row, double kappa) const {
        double *theta = state + 1;
        state[0] += 1.0;
        double step = 2.0 / std::sqrt(state[0]) * kappa;
        for (int64_t k = 0; k < row.n; ++k) theta[row.index[k]] += step * row.value[k];
        double squares = 0.0;
        for (int64_t j = 0; j < n; ++j) squares += theta[j] * theta[j];
        double length = std::sqrt(squares);
        if (length > 1.0) {
            for (int64_t j = 0; j < n; ++j) theta[j] /= length;
        }
    }
};

// Twin of learners.MultiplicativeWeights; the state is the clock, then the gains, then the weights.
struct MultiplicativeWeights {
    int64_t n;
    double log_n;

    double predict(const double *state, const Row &row) const { return product(state + n + 1, row); }

    void update(double *state, const Row &row, double kappa) const {
        double *gains = state + 1, *weights = state + n + 1;
        state[0] += 1.0;
        for (int64_t k = 0; k < row.n; ++k) gains[row.index[k]] += row.value[k] * kappa;
        double rate = std::sqrt(log_n / state[0]), largest = gains[0], total = 0.0;
        for (int64_t j = 1; j < n; ++j) largest = gains[j] > largest ? gains[j] : largest;
        for (int64_t j = 0; j < n; ++j) {
            weights[j] = safe_exp(rate * (gains[j] - largest));
            total += weights[j];
        }
        for (int64_t j = 0; j < n; ++j) weights[j] /= total;
    }
};

template <class Learner>
struct Oracle {
    Learner learner;
    double *sums, *states, *counts;
    int64_t n_copies, n_state;  // one copy, or a second that is taught the opposite sign

    void prepare(const int64_t *, int64_t, int64_t) const {}
    void prepare(int64_t, const Row &) const {}

    double answer(const double *state, const Row &row) const {
        double q = learner.predict(state, row);
        return q < -1.0 ? -1.0 : (q > 1.0 ? 1.0 : q);
    }

    double size(int64_t, double sign) const { return sign; }

    double sign(int64_t bin, const Row &row) const {
        double total = 0.0;
        for (int64_t k = 0; k < n_copies; ++k) {
            double s = sums[bin * n_copies + k], sign = k ? -1.0 : 1.0;
            if (s > 0.0) total += s * sign * answer(states + (bin * n_copies + k) * n_state, row);
        }
        return total / (counts[bin] + 1.0);
    }

    void record(int64_t bin, const Row &row, double v) {
        for (int64_t k = 0; k < n_copies; ++k) {
            double *state = states + (bin * n_copies + k) * n_state, sign = k ? -1.0 : 1.0;
            sums[bin * n_copies + k] += sign * answer(state, row) * v;
            learner.update(state, row, sign * v);
        }
        counts[bin] += 1.0;
    }

    double level(int64_t, const Row &) const { return std::numeric_limits<double>::infinity(); }

    double drift(int64_t bin, double now, double phi, double v) const {
        double count = counts[bin], squares = 0.0;
        for (int64_t k = 0; k < n_copies; ++k) {
            double s = sums[bin * n_copies + k];
            s = s > 0.0 ? s : 0.0;
            squares += s * s;
        }
        double pull = count != 0.0 ? squares / (count * (count + 1.0)) : 0.0;
        return quadratic_drift(now, phi, v, double(n_copies), pull);
    }

    double reserve(double phi) const { return quadratic_reserve(phi, double(n_copies)); }
};

}  // namespace swapcal
