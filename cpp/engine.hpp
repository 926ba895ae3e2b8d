// The round: twin of Forecaster._play, ._draw and ._learn. All state is in arrays that Python owns.
#pragma once

#include <cmath>
#include <cstdint>

#include "crossing.hpp"
#include "evidence.hpp"
#include "property.hpp"
#include "randomness.hpp"
#include "reading.hpp"

namespace swapcal {

struct Settings {
    Grid grid;
    Property property;
    uint64_t draw_seed, jitter_seed;  // mixed
    double trust, allowance, noise;
    double jitter;
};

// Twin of ledger.Ledger and pending.Pending.
struct Books {
    double *sums, *rounding;
    int64_t *rounds;   // n_rounds, n_late
    uint8_t *flags;
    int64_t *numbers;  // issued, open
    int64_t n, window;

    // t modulo the window; a division only where the window is not a power of two.
    int64_t place(int64_t t) const { return window & (window - 1) ? t % window : t & (window - 1); }

    int64_t issue() {
        int64_t t = numbers[0], position = place(t);
        numbers[1] += 1 - int64_t(flags[position]);
        flags[position] = 1;
        numbers[0] = t + 1;
        return t;
    }

    void close(int64_t t) {
        flags[place(t)] = 0;
        numbers[1] -= 1;
    }

    bool is_open(int64_t t) const {
        return 0 <= t && t < numbers[0] && t >= numbers[0] - window && flags[place(t)];
    }

    // A round that is issued and closed at once, at the given position of the window.
    int64_t pass(int64_t position) {
        int64_t t = numbers[0];
        numbers[1] -= int64_t(flags[position]);
        flags[position] = 0;
        numbers[0] = t + 1;
        return t;
    }

    void record(int64_t bin, const Row &row, double v, double v_evidence) {
        double *s = sums + bin * n;
        for (int64_t k = 0; k < row.n; ++k) s[row.index[k]] += row.value[k] * v;
        rounding[bin] += std::fabs(v - v_evidence);
        rounds[0] += 1;
    }
};

// V at the forecast, at the evidence point, and at the hint's own bin.
struct Errors {
    double v, v_evidence, v_hint;
};

template <class Evidence, class Record>
struct Engine {
    Settings settings;
    Evidence evidence;
    Record record;
    Books books;

    // Phi of one context as a function of the bin.
    struct PhiOf {
        const Evidence &evidence;
        const Row &row;
        double operator()(int64_t bin) const { return evidence.sign(bin, row); }
        double size(int64_t bin, double sign) const { return evidence.size(bin, sign); }
        void soon(int64_t bin) const { evidence.prepare(row.index, row.n, bin); }
    };

    static double log1(double n) { return 1.0 + std::log(n > 1.0 ? n : 1.0); }

    // Twin of trust._allowed: negative if the evidence against the bin is too high to play it outright.
    double allowed(int64_t bin, const Row &row) const {
        double level = evidence.level(bin, row);
        return level <= settings.allowance * settings.trust * log1(evidence.counts[bin]) ? level : -1.0;
    }

    // Twin of trust.trusted: the bin to play at the hint's word, or -1.
    int64_t trusted(const Row &row, double hint) const {
        const Grid &grid = settings.grid;
        if (!record.sums || settings.trust <= 0.0) return -1;
        int64_t nearest = grid.bin(hint);
        if (record.level(nearest, row) > settings.trust * log1(record.counts[nearest])) return -1;
        double level = allowed(nearest, row);
        if (level < 0.0) return -1;
        double side = grid.midpoint(nearest) - hint;
        if (level > settings.noise && evidence.sign(nearest, row) * side > 0.0) {
            int64_t other = side > 0.0 ? nearest - 1 : nearest + 1;
            bool heals = 0 <= other && other < grid.n &&
                         evidence.sign(other, row) * (grid.midpoint(other) - hint) <= 0.0;
            if (heals && allowed(other, row) >= 0.0) return other;
        }
        return nearest;
    }

    Play play(const Row &row, bool hinted, double hint) const {
        PhiOf phi{evidence, row};
        bool monotone = settings.property.monotone;
        if (!hinted) return bisect(phi, settings.grid, monotone);
        int64_t bin = trusted(row, hint);
        return bin >= 0 ? outright(bin) : bracket(phi, settings.grid, hint, monotone);
    }

    int64_t draw(const Play &play, int64_t t) const {
        return uniform(settings.draw_seed, t) < play.p_lower ? play.lower : play.upper;
    }

    double jittered(double label, int64_t t) const {
        if (settings.jitter == 0.0) return label;
        double moved = label + settings.jitter * (uniform(settings.jitter_seed, t) - 0.5);
        moved = std::max(moved, 2.0 * settings.property.low - moved);
        return std::min(moved, 2.0 * settings.property.high - moved);
    }

    Errors errors(int64_t bin, double evidence_at, double label, int64_t t, bool hinted, double hint) const {
        double value = settings.grid.midpoint(bin), spread = jittered(label, t);
        double v = settings.property.identification(value, spread);
        double v_evidence = evidence_at == value ? v : settings.property.identification(evidence_at, spread);
        double v_hint = 0.0;
        if (hinted && record.sums) {
            double at = settings.grid.midpoint(settings.grid.bin(hint));
            v_hint = settings.property.identification(at, spread);
        }
        return {v, v_evidence, v_hint};
    }

    void learn(const Row &row, int64_t bin, const Errors &e, bool hinted, double hint) {
        evidence.record(bin, row, e.v_evidence);
        books.record(bin, row, e.v, e.v_evidence);
        if (hinted && record.sums) record.record(settings.grid.bin(hint), row, e.v_hint);
    }
};

}  // namespace swapcal
