// The round: twin of engine/round.py, engine/values.py and engine/ledger.py. All state is in arrays that Python owns.
#pragma once

#include <cmath>
#include <cstdint>
#include <limits>

#include "crossing.hpp"
#include "cuts.hpp"
#include "evidence.hpp"
#include "property.hpp"
#include "randomness.hpp"
#include "reading.hpp"
#include "scale.hpp"
#include "share.hpp"

namespace swapcal {

struct Settings {
    Property property;
    Cuts cuts;
    uint64_t draw_seed, jitter_seed;  // mixed
    double trust, noise;
    double jitter;
    bool follows = false;
};

// Twin of ledger.Ledger and pending.Pending.
struct Books {
    enum Drift { kDrift, kReserved, kPeak };
    enum Total { kLuck, kVariance, kLatest, kStart, kSlopes, kSizes, kDistances, kInside, kTotals };
    static constexpr double kMost = 1e300, kSteep = 0.5;

    double *sums, *rounding;
    double *moved_sums, *moved_counts;  // what shares have moved
    double *drift, *totals;
    int64_t *rounds;   // n_rounds, n_late, n_expired
    uint32_t *flags;  // 0, or the mark of a round that waits
    int64_t *numbers;  // issued, open
    int64_t n, size, window;

    // t modulo the number of flags; a division only where that is not a power of two.
    int64_t place(int64_t t) const { return size & (size - 1) ? t % size : t & (size - 1); }

    // Whether the next round would overwrite one that waits, though there may be room for it.
    bool full() const { return size < window && flags[place(numbers[0])]; }

    int64_t issue() {
        int64_t t = numbers[0], position = place(t);
        rounds[2] += flags[position] != 0;
        numbers[1] += flags[position] == 0;
        flags[position] = 1;
        numbers[0] = t + 1;
        return t;
    }

    void mark(int64_t t, uint32_t mark) { flags[place(t)] = mark; }

    void close(int64_t t) {
        flags[place(t)] = 0;
        numbers[1] -= 1;
    }

    bool is_open(int64_t t) const {
        return 0 <= t && t < numbers[0] && t >= numbers[0] - size && flags[place(t)];
    }

    // Of two values at once: neither sum waits for the other.
    void owed(int64_t below, int64_t above, const Row &row, double n_below, double n_above, double &lower, double &upper) const {
        products(rounding + below * n, rounding + above * n, row, lower, upper);
        lower = n_below != 0.0 ? lower / n_below : 0.0;
        upper = n_above != 0.0 ? upper / n_above : 0.0;
    }

    void record(int64_t slot, const Row &row, double v, double v_evidence) {
        double *said = sums + slot * n, *rounded = rounding + slot * n, apart = v - v_evidence;
        if (row.whole) add_both(said, v, rounded, apart, row.value, row.whole);
        for (int64_t k = row.whole; k < row.n; ++k) {
            int64_t j = row.index[k];
            said[j] += row.value[k] * v;
            if (apart != 0.0) rounded[j] += row.value[k] * apart;
        }
        rounds[0] += 1;
    }

    double reach() const { return totals[kDistances] / double(rounds[0] > 1 ? rounds[0] : 1); }

    // One more outcome, whose own property is `point`, moves the property of all.
    void see(const Property &property, double low, double high, double point, double y) {
        double width = high - low, unit = width == 1.0 ? point - low : (point - low) / width, start = totals[kStart];
        bool within = 0.0 < unit && unit < 1.0, first = within && totals[kInside] == 0.0;
        totals[kInside] += within ? 1.0 : 0.0;
        totals[kDistances] = first ? 0.0 : totals[kDistances] + std::fabs(unit - start);
        double reach = first ? 1.0 : totals[kDistances] / double(rounds[0] + 1);
        double below = start - reach > 0.0 ? start - reach : 0.0, above = start + reach < 1.0 ? start + reach : 1.0;
        auto v = [&](double unit) {
            double p = low + width * unit;
            return property.identification(p < high ? p : high, y);
        };
        double secant = above > below ? (v(above) - v(below)) / (above - below) : 0.0, at = v(start);
        double slopes = totals[kSlopes] = first ? secant : totals[kSlopes] + secant;
        double sizes = totals[kSizes] = first ? 0.0 : totals[kSizes] + std::fabs(at);
        double slope = 1.0 + slopes;
        if (totals[kInside] > 0.0 && reach > 0.0) {
            double least = kSteep * sizes / reach;
            slope = slopes > least ? slopes : least;
        }
        double moved = slope > 0.0 ? start - at / slope : start;
        totals[kStart] = first ? unit : moved < 0.0 ? 0.0 : moved > 1.0 ? 1.0 : moved;
    }

    // What was shown, in the cell of its nearest value, was not what was said.
    void move(int64_t slot, int64_t cell, const Row &row, double v, double v_shown) {
        double *from = moved_sums + slot * n, *to = moved_sums + cell * n;
        for (int64_t k = 0; k < row.n; ++k) from[row.index[k]] -= row.value[k] * v;
        for (int64_t k = 0; k < row.n; ++k) to[row.index[k]] += row.value[k] * v_shown;
        moved_counts[slot] -= 1.0;
        moved_counts[cell] += 1.0;
    }

    void look() {
        double now = drift[kDrift] + drift[kReserved];
        drift[kPeak] = now > drift[kPeak] ? now : drift[kPeak];
    }

    template <class Evidence>
    void draw(const Evidence &evidence, double phi, double other) {
        look();
        vary(1.0);
        if (phi == 0.0) return;
        drift[kReserved] += evidence.reserve(phi);
        double latest = phi * phi / 6.0 + std::fabs(phi * other) / 3.0;
        totals[kLatest] = latest < kMost ? latest : kMost;
    }

    // Count the latest draw, once.
    void vary(double share) {
        double variance = totals[kVariance] + share * totals[kLatest];
        totals[kVariance] = variance < kMost ? variance : kMost;
        totals[kLatest] = 0.0;
    }

    template <class Evidence>
    void unreserve(const Evidence &evidence, double phi) {
        drift[kReserved] = numbers[1] > 1 ? drift[kReserved] - evidence.reserve(phi) : 0.0;
    }
};

// V at the forecast, at the evidence point, at the hint, and at the value nearest to the hint; and the hint's loss.
struct Errors {
    double v, v_evidence, v_hint, v_nearest, lost;
};

// What an update needs to know of the play.
struct Learned {
    int64_t slot;
    double other, evidence_at;
    Kind kind;
    double phi;
    double shown, guided;  // what was shown; the model as the learning hint corrects it, or NaN
};

template <class Evidence>
struct Engine {
    Settings settings;
    Evidence evidence;
    Values values;
    Record record;
    Scale scale;
    Books books;
    Share shares[2];  // of the learning hint over the model, and of the engine over that
    bool protects;

    // Phi of one context as a function of the slot.
    struct PhiOf {
        const Evidence &evidence;
        const Books &books;
        const Row &row;
        bool fixed;
        double operator()(int64_t slot) const { return evidence.sign(slot, row); }
        double size(int64_t slot, double sign) const { return evidence.size(slot, sign); }
        void owed(int64_t below, int64_t above, double &lower, double &upper) const {
            lower = upper = 0.0;
            if (!fixed) books.owed(below, above, row, evidence.counts[below], evidence.counts[above], lower, upper);
        }
    };

    // The label that was learned last, if it lies beyond a range that follows: Python doubles the range before the next
    // round.
    double beyond = std::numeric_limits<double>::quiet_NaN();

    bool crowded() const {
        return !std::isnan(beyond) || (values.full() && !settings.cuts.fixed) || books.full() || scale.full();
    }

    // Twin of Round._show: `guided` and `shown` of a round. A hint is there if it learns, or was given.
    void show(Learned &played, int64_t t, bool hinted, double hint, bool learning, bool based, double base) {
        played.shown = values.by_slot[played.slot];
        played.guided = std::numeric_limits<double>::quiet_NaN();
        if (!protects || !hinted) return;
        if (learning) played.guided = based ? shares[0].show(t, hint, base) : hint;
        played.shown = shares[1].show(t, played.shown, learning ? played.guided : base);
    }

    // Twin of Round._rungs.
    template <class Each>
    void rungs(const Learned &played, bool hinted, double hint, bool based, double base, Each each) {
        if (!protects || !hinted) return;
        bool guided = !std::isnan(played.guided);
        if (guided && based) each(shares[0], hint, base, played.guided);
        if (guided || based) each(shares[1], values.by_slot[played.slot], guided ? played.guided : base, played.shown);
    }

    // A round has no outcome, and will have none.
    void drop(const Learned &played, int64_t t, bool hinted, double hint, bool based, double base) {
        rungs(played, hinted, hint, based, base,
              [&](Share &share, double said, double from, double shown) { share.drop(t, said, from, shown); });
    }

    // What an outcome says of what was shown.
    void score(const Row &row, const Learned &played, const Errors &e, bool hinted, double hint, bool based, double base,
               double label, int64_t t) {
        int64_t lag = books.numbers[0] - 1 - t;
        double within = inside(label);
        if (settings.follows && within != label) beyond = label;
        books.see(settings.property, values.low, values.high, shares[1].losses.point(within), within);
        rungs(played, hinted, hint, based, base, [&](Share &share, double said, double from, double shown) {
            share.learn(t, said, from, shown, label, lag, row);
        });
        if (played.shown == values.by_slot[played.slot]) return;
        double v = settings.property.identification(played.shown, within == label ? jittered(label, t) : label);
        books.move(played.slot, values.slot(values.nearest(played.shown, Values::kOwn)), row, e.v, v);
    }

    bool allowed(int64_t slot, double level, double trust) const {
        double n = evidence.counts[slot];
        return level <= trust || level <= trust * (1.0 + std::log(n > 1.0 ? n : 1.0));  // the logarithm is at least 0
    }

    // Twin of trust.trusted: the slot to play at the hint's word, or -1.
    int64_t trusted(const Row &row, double hint) const {
        double trust = settings.trust;
        if (!record.clean(row, scale.now())) trust = record.missed() ? 0.5 * trust : 0.0;
        if (trust <= 0.0) return -1;
        int64_t rank = values.nearest(hint, Values::kHint), slot = values.slot(rank);
        double level = evidence.level(slot, row);
        if (!allowed(slot, level, trust)) return -1;
        double side = values.value(rank) - hint;
        if (level > settings.noise && evidence.sign(slot, row) * side > 0.0) {
            int64_t other = side > 0.0 ? rank - 1 : rank + 1;
            if (0 <= other && other < values.n()) {
                int64_t beyond = values.slot(other);
                bool heals = evidence.sign(beyond, row) * (values.value(other) - hint) <= 0.0;
                if (heals && allowed(beyond, evidence.level(beyond, row), trust)) return beyond;
            }
        }
        return slot;
    }

    // Twin of State.origin.
    double origin() const {
        double all = values.low + (values.high - values.low) * books.totals[Books::kStart];
        return all < values.high ? all : values.high;
    }

    // A slot of -1: the hint is to become a value itself.
    Play play(const Row &row, bool hinted, double hint) const {
        if (hinted && settings.cuts.adds(values, record, hint)) return outright(-1, kTrusted);
        if (hinted && settings.trust > 0.0) {
            int64_t slot = trusted(row, hint);
            if (slot >= 0) return outright(slot, kTrusted);
        }
        PhiOf phi{evidence, books, row, settings.cuts.fixed};
        int64_t start = hinted ? values.nearest(hint, Values::kHint) : values.nearest(origin(), Values::kStart);
        return search(phi, values, start);
    }

    // Twin of Round.play: makes the values that it needs; there must be room.
    Play settled(const Row &row, bool hinted, double hint) {
        if (!hinted && !values.n()) values.spread(int64_t(settings.cuts.first));
        Play found = play(row, hinted, hint);
        if (found.lower >= 0) return found;
        record.totals[4] += 1.0;
        return outright(values.add(hint), found.kind);
    }

    bool draws_lower(const Play &play, int64_t t) const { return uniform(settings.draw_seed, t) < play.p_lower; }

    // A label, or the end of the range beyond which it lies.
    double inside(double label) const {
        label = label < settings.property.low ? settings.property.low : label;
        return label > settings.property.high ? settings.property.high : label;
    }

    double jittered(double label, int64_t t) const {
        label = inside(label);
        if (settings.jitter == 0.0) return label;
        double moved = label + settings.jitter * (uniform(settings.jitter_seed, t) - 0.5);
        moved = std::max(moved, 2.0 * settings.property.low - moved);
        return std::min(moved, 2.0 * settings.property.high - moved);
    }

    Errors errors(const Learned &played, double label, int64_t t, bool hinted, double hint) const {
        const Property &property = settings.property;
        double value = values.by_slot[played.slot], spread = jittered(label, t);
        double v = property.identification(value, spread);
        double v_evidence = property.identification(played.evidence_at, spread);
        if (played.kind == kLow) v_evidence = v_evidence < 0.0 ? v_evidence : 0.0;
        if (played.kind == kHigh) v_evidence = v_evidence > 0.0 ? v_evidence : 0.0;
        if (!hinted) return {v, v_evidence, 0.0, 0.0, 0.0};
        double nearest = values.value(values.nearest(hint, Values::kHint)), v_hint = property.identification(hint, spread);
        double v_nearest = nearest == hint ? v_hint : property.identification(nearest, spread);
        const Losses &losses = shares[1].losses;
        return {v, v_evidence, v_hint, v_nearest, losses.share * ((hint - losses.point(spread)) * v_hint)};
    }

    // `now`: no outcome was learned since the draw, so that Phi is what it was there. `latest`: no forecast was made.
    void learn(const Row &row, const Learned &played, const Errors &e, int64_t t, bool hinted, double hint, bool now, bool latest) {
        int64_t slot = played.slot;
        double value = values.by_slot[slot], size = std::fabs(e.v_evidence), unit = 1.0, drawn = 1.0;
        if (hinted && std::fabs(e.v_hint) > size) size = std::fabs(e.v_hint);
        bool doubled = scale.cover(size, books.numbers[0], books.rounds[0] == 0);
        if constexpr (Evidence::scaled) {
            if (doubled) evidence.measure(scale.now(), values.n());
            double then = scale.at(t);
            unit = 1.0 / scale.now();
            drawn = size > then ? 0.0 : 1.0 / then;
        }
        bool known = now && !doubled && (played.kind == kPair || played.kind == kZero);
        double phi = known ? played.phi : evidence.size(slot, evidence.sign(slot, row));
        books.drift[Books::kDrift] += evidence.drift(slot, phi, played.phi * (drawn / unit), e.v_evidence * unit);
        books.unreserve(evidence, played.phi);
        books.look();
        double v_drawn = e.v_evidence * drawn;
        books.totals[Books::kLuck] += played.phi * v_drawn;
        if (latest) books.vary(v_drawn * v_drawn);
        evidence.record(slot, row, e.v_evidence);
        books.record(slot, row, e.v, e.v_evidence);
        bool marked = false;
        double at = 0.0, rounding = std::fabs(e.v - e.v_evidence), noise = e.v_evidence, paid = 0.0, lost = 0.0;
        if (played.kind == kPair) {
            marked = true;
            at = 0.5 * (value + played.other);
            bool healed = (played.evidence_at == value) | (played.evidence_at == played.other);
            rounding = healed ? 0.0 : rounding;
        } else if (played.kind == kLow || played.kind == kHigh) {
            marked = true;
            at = 0.5 * (value + played.evidence_at);
        }
        if (hinted) {
            bool overruled = played.kind != kTrusted;
            double cost = overruled ? 0.5 * (value - hint) * (e.v + e.v_hint) : 0.0;
            if (!overruled) {
                marked = true;
                at = hint, rounding = std::fabs(e.v_nearest - e.v_hint), noise = e.v_hint, lost = e.lost;
                paid = 0.5 * (std::fabs(values.value(values.nearest(hint, Values::kHint)) - hint) * rounding);
            }
            record.add(row, e.v_hint, overruled, cost);
        } else {
            settings.cuts.lacking(values, record, origin(), books.reach(), double(books.rounds[0]));
        }
        if (marked) settings.cuts.cut(values, at, played.kind, rounding, noise * noise, paid, lost, scale.now());
    }
};

}  // namespace swapcal
