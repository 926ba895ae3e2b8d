// What the bins have gathered: twins of FiniteEvidence, BlocksEvidence and LinearEvidence.
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
    row.each([&](int64_t k, int64_t j) { total += a[j] * row.value[k]; });
    return total;
}

// Two such sums at once, which do not wait for each other.
inline void products(const double *a, const double *b, const Row &row, double &in_a, double &in_b) {
    int64_t k = 0;
    double at_a = 0.0, at_b = 0.0;
#if defined(__clang__) || (defined(__GNUC__) && __GNUC__ >= 12)
    // Products lie side by side as rows do; they are turned around, so that each lane adds from left to right.
    typedef double Lanes __attribute__((vector_size(16)));
    typedef double Stored __attribute__((vector_size(16), aligned(8), may_alias));
    Lanes total = {};
    for (; k + 2 <= row.whole; k += 2) {
        Lanes x = *reinterpret_cast<const Stored *>(row.value + k);
        Lanes p = *reinterpret_cast<const Stored *>(a + k) * x, q = *reinterpret_cast<const Stored *>(b + k) * x;
        total += __builtin_shufflevector(p, q, 0, 2);
        total += __builtin_shufflevector(p, q, 1, 3);
    }
    at_a = total[0], at_b = total[1];
#endif
    for (; k < row.n; ++k) {
        int64_t j = row.index[k];
        at_a += a[j] * row.value[k];
        at_b += b[j] * row.value[k];
    }
    in_a = at_a, in_b = at_b;
}

// a[index_k] += value_k v.
inline void add(double *__restrict a, const Row &row, double v) {
    const double *__restrict value = row.value;
    row.each([&](int64_t k, int64_t j) { a[j] += value[k] * v; });
}

// The same twice, in one loop where rows are dense.
SWAPCAL_VECTORIZED
static void add_both(double *__restrict a, double v, double *__restrict b, double u, const double *__restrict x, int64_t n) {
    for (int64_t k = 0; k < n; ++k) {
        a[k] += x[k] * v;
        b[k] += x[k] * u;
    }
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
    static constexpr bool scaled = Potential::scaled;
    Potential potential;
    double *sums, *spreads, *weights, *counts;
    double *unit;   // 1 over the size of V by which evidence is weighed
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
        double *__restrict s = sums + bin * n, *__restrict c = spreads + bin * n, *__restrict w = weights + bin * n;
        const double *__restrict value = row.value;
        // In blocks that fit into registers' reach: gathered, weighed as a vector, scattered.
        double block_s[kBlock], block_c[kBlock], block_w[kBlock], in = *unit;
        int64_t first = 0;
        if constexpr (Potential::scaled) {
            first = row.whole;
            if (first) potential.learn(s, c, w, value, v, in, first);
        }
        for (int64_t start = first; start < row.n; start += kBlock) {
            int64_t m = row.n - start < kBlock ? row.n - start : kBlock;
            const int64_t *index = row.index + start;
            for (int64_t k = 0; k < m; ++k) {
                double g = value[start + k] * v, sum = s[index[k]] + g, spread = c[index[k]] + potential.spread(g);
                s[index[k]] = sum;
                c[index[k]] = spread;
                block_s[k] = sum * in;
                block_c[k] = spread * in;
            }
            potential.weigh(block_s, block_c, block_w, m);
            for (int64_t k = 0; k < m; ++k) w[index[k]] = block_w[k];
        }
        counts[bin] += 1.0;
        if constexpr (Potential::together) potential.row_weights(s, w, n, counts[bin]);
    }

    // Weighs all evidence of the first `n_bins` anew, by another size of V.
    void measure(double size, int64_t n_bins) {
        *unit = 1.0 / size;
        double block_s[kBlock], block_c[kBlock];
        for (int64_t start = 0; start < n_bins * n; start += kBlock) {
            int64_t m = n_bins * n - start < kBlock ? n_bins * n - start : kBlock;
            for (int64_t k = 0; k < m; ++k) block_s[k] = sums[start + k] * *unit, block_c[k] = spreads[start + k] * *unit;
            potential.weigh(block_s, block_c, weights + start, m);
        }
    }

    double level(int64_t bin, const Row &row) const {
        if constexpr (!Potential::exponential) return std::numeric_limits<double>::infinity();
        const double *s = sums + bin * n, *c = spreads + bin * n;
        double largest = 0.0;
        for (int64_t k = 0; k < row.n; ++k) {
            double level = potential.level(s[row.index[k]] * *unit, c[row.index[k]] * *unit);
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

// Where the blocks of a class lie: twin of hypotheses/blocks.py. Without blocks each position is one by itself.
struct Layout {
    const int64_t *block, *edges;
    int64_t n_blocks;

    bool alone() const { return block == nullptr; }

    // The length of a block's part of a vector.
    double norm(const double *sums, int64_t b) const {
        double squares = 0.0;
        for (int64_t j = edges[b]; j < edges[b + 1]; ++j) squares += sums[j] * sums[j];
        return std::sqrt(squares);
    }

    // Each active block of a row, with its first entry and the one behind its last.
    template <class Each>
    void active(const Row &row, Each each) const {
        for (int64_t k = 0; k < row.n;) {
            int64_t b = block[row.index[k]], begin = k;
            while (k < row.n && block[row.index[k]] == b) ++k;
            each(b, begin, k);
        }
    }
};

template <class Potential>
struct Blocks {
    static constexpr bool scaled = false;
    Potential potential;
    Layout layout;
    double *sums, *spreads, *norms, *factors, *counts;
    int64_t n;

    void prepare(const int64_t *, int64_t, int64_t) const {}
    void prepare(int64_t, const Row &) const {}

    double sign(int64_t bin, const Row &row) const {
        const double *s = sums + bin * n, *f = factors + bin * layout.n_blocks;
        double total = 0.0;
        for (int64_t k = 0; k < row.n; ++k) total += f[layout.block[row.index[k]]] * (s[row.index[k]] * row.value[k]);
        return total;
    }

    double size(int64_t, double sign) const { return sign; }

    void record(int64_t bin, const Row &row, double v) {
        double *s = sums + bin * n;
        for (int64_t k = 0; k < row.n; ++k) s[row.index[k]] += row.value[k] * v;
        layout.active(row, [&](int64_t b, int64_t begin, int64_t end) {
            int64_t at = bin * layout.n_blocks + b;
            double squares = 0.0, weight = 0.0;
            for (int64_t k = begin; k < end; ++k) squares += row.value[k] * row.value[k];
            spreads[at] += potential.spread(std::sqrt(squares) * v);
            norms[at] = layout.norm(s, b);
            potential.weigh(norms + at, spreads + at, &weight, 1);
            factors[at] = norms[at] != 0.0 ? weight / norms[at] : 0.0;
        });
        counts[bin] += 1.0;
    }

    double level(int64_t bin, const Row &row) const {
        double largest = 0.0;
        layout.active(row, [&](int64_t b, int64_t, int64_t) {
            double level = potential.level(norms[bin * layout.n_blocks + b], spreads[bin * layout.n_blocks + b]);
            largest = level > largest ? level : largest;
        });
        return largest;
    }

    double drift(int64_t, double now, double phi, double v) const { return (now - phi) * v; }
    double reserve(double phi) const { return std::fabs(phi); }
};

// Twin of LinearEvidence.
struct Linear {
    static constexpr bool scaled = false;
    double *sums, *counts;
    int64_t n;

    void prepare(const int64_t *, int64_t, int64_t) const {}
    void prepare(int64_t, const Row &) const {}

    // Phi but for its positive factor 1 / (n_i + 1): enough for its sign. Nothing is what rounding left of nothing.
    static double sign(double total) { return std::fabs(total) > 1e-280 ? total : 0.0; }
    double sign(int64_t bin, const Row &row) const { return sign(product(sums + bin * n, row)); }
    double size(int64_t bin, double sign) const { return sign / (counts[bin] + 1.0); }

    void record(int64_t bin, const Row &row, double v) {
        add(sums + bin * n, row, v);
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

}  // namespace swapcal
