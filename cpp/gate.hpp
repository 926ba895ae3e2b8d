// Standing back, and delays that depend on outcomes: twin of engine/gate.py, engine/gate.py and engine/gate.py.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>

#include "property.hpp"

namespace swapcal {

// Losses: c (p - z) V(p, z) with z the property of the outcome alone.
struct Stakes {
    Property property;
    double low, high;  // of the domain
    double share;

    double loss(double p, double z) const { return share * ((p - z) * property.identification_at(p, z)); }

    double worst(double said, double model) const {
        double end = said > model ? low : high;
        return loss(said, end) - loss(model, end);
    }

    // What an outcome says of a round: twin of stakes.RoundCost.
    struct RoundCost {
        double difference, model, v, distance;
    };

    RoundCost outcome(double said, double model, double y) const {
        double z = property.raised(y), cost = loss(model, z);
        return {loss(said, z) - cost, cost, property.identification_at(model, z), std::fabs(z - model)};
    }
};

struct Gate {
    enum Total {
        kPaper, kSpent, kModel, kJudged, kRisk, kSquares, kBlock, kLags, kLagSquares, kKnown, kDistance, kSize,
        kCross, kCrossSquares, kCrossings, kSpread, kTotals
    };
    enum Count { kBegin, kFront, kSince, kMarker, kTried, kBack, kBackSince, kFlagged, kCounts };
    enum Column { kCPaper, kCSpent, kCModel, kCRisk, kCN, kCV, kCG, kCVG, kCGG, kCFirst, kColumns };

    static constexpr int64_t width = 32;  // rounds of a cohort: gate.COHORT

    Stakes stakes;
    bool stand_back;
    double spare, cap, losses, deviations, proof, alarm, material, unsettled;
    int64_t generations, patience, memory;
    double *totals;
    int64_t *counts;
    double *ring;
    int64_t size;  // cohorts for which there is room
    double lag_before = 0.0, log_before = 0.0;  // most delays are alike

    bool open() const { return counts[kBegin] >= 0; }

    bool due(int64_t out, int64_t n_rounds, int64_t n_late) const {
        return !open() && out > 0 && (n_late > 0 || n_rounds < generations * width);
    }

    void note(double said, double model, double y) {
        auto [difference, loss, v, distance] = stakes.outcome(said, model, y);
        totals[kPaper] += difference;
        totals[kBlock] += difference;
        totals[kModel] += loss;
        totals[kDistance] += distance;
        totals[kSize] += std::fabs(v);
        totals[kJudged] += 1.0;
        int64_t judged = int64_t(totals[kJudged]);
        if (judged % width == 0) {
            totals[kSquares] += totals[kBlock] * totals[kBlock];
            totals[kBlock] = 0.0;
        }
        if (judged == memory) {
            for (int k : {kPaper, kModel, kJudged, kSquares, kBlock, kDistance, kSize}) totals[k] *= 0.5;
        }
    }

    void begin(int64_t t) {
        counts[kBegin] = counts[kMarker] = t;
        counts[kFront] = counts[kSince] = t / width;
        counts[kTried] = 0;
    }

    bool full(int64_t issued) const { return open() && issued / width - counts[kFront] >= size; }

    // Enters round t: whether what was said is shown.
    bool show(int64_t t, double said, double model, int64_t waiting) {
        double *c = cohort(t / width), worst = stakes.worst(said, model), risk = risk_of(said, model);
        Room r = room(t, waiting);
        double spent = totals[kSpent], out = totals[kRisk], cost = r.free || spent > 0.0 ? spent : 0.0;
        bool ready = tried(), follow = !stand_back || (ready && cost + out + risk <= r.room);
        if (!follow && counts[kTried] && spent > r.earned) {
            totals[kPaper] = totals[kSquares] = totals[kBlock] = 0.0;
            counts[kSince] = counts[kFront];
            counts[kMarker] = t;
        }
        counts[kTried] = follow || (counts[kTried] && spent <= r.earned);
        bool shut = stand_back && !(ready && cost + out < r.room);
        if (!shut) {
            counts[kBackSince] = -1;
        } else if (counts[kBackSince] < 0) {
            counts[kBackSince] = t;
        }
        c[kCPaper] += worst;
        if (follow) {
            c[kCSpent] += worst;
            c[kCRisk] += risk;
            totals[kRisk] += risk;
        } else if (said != model) {
            counts[kBack] += 1;
        }
        return follow || said == model;
    }

    void learn(int64_t t, double said, double model, double y, bool followed, int64_t lag) {
        if (!holds(t)) return;
        auto [difference, loss, v, distance] = stakes.outcome(said, model, y);
        double change = difference - stakes.worst(said, model), late = double(lag);
        totals[kDistance] += distance;
        totals[kSize] += std::fabs(v);
        totals[kLags] += late;
        totals[kLagSquares] += late * late;
        totals[kKnown] += 1.0;
        int64_t number = t / width;
        if (number < counts[kFront]) {
            totals[kModel] += loss;
            totals[kJudged] += 1.0;
            if (followed) totals[kSpent] += change;
            if (number >= counts[kSince]) totals[kPaper] += change;
            return;
        }
        double *c = cohort(number);
        c[kCPaper] += change;
        c[kCModel] += loss;
        if (followed) c[kCSpent] += change;
        if (late != lag_before) lag_before = late, log_before = std::log(1.0 + late);
        double g = log_before;
        if (c[kCN] == 0.0) c[kCFirst] = g;
        g -= c[kCFirst];
        c[kCN] += 1.0;
        c[kCV] += v;
        c[kCG] += g;
        c[kCVG] += v * g;
        c[kCGG] += g * g;
    }

    void drop(int64_t t, double said, double model, bool followed) {
        if (!holds(t)) return;
        double *c = cohort(t / width), worst = stakes.worst(said, model);
        c[kCPaper] -= worst;
        if (followed) c[kCSpent] -= worst;
    }

    void judge(int64_t t) {
        if (!open() || totals[kKnown] == 0.0 || double((counts[kFront] + 1) * width) > double(t)) return;
        double wait = age();
        while (double((counts[kFront] + 1) * width) + wait <= double(t)) {
            double *c = cohort(counts[kFront]);
            totals[kPaper] += c[kCPaper];
            totals[kSpent] += c[kCSpent];
            totals[kModel] += c[kCModel];
            totals[kJudged] += c[kCN];
            totals[kRisk] -= c[kCRisk];
            totals[kBlock] += c[kCPaper];
            if (depends(c) && counts[kFlagged] < 0) counts[kFlagged] = t;
            for (int k = 0; k < kColumns; ++k) c[k] = 0.0;
            counts[kFront] += 1;
            if (counts[kFront] * width > counts[kMarker]) {
                totals[kSquares] += totals[kBlock] * totals[kBlock];
                totals[kBlock] = 0.0;
                counts[kMarker] = t;
            }
        }
    }

  private:
    struct Room {
        double room, earned;
        bool free;  // something may be spent without proof
    };

    bool holds(int64_t t) const { return 0 <= counts[kBegin] && counts[kBegin] <= t; }

    // A division only where the room is not a power of two.
    double *cohort(int64_t number) const {
        return ring + (size & (size - 1) ? number % size : number & (size - 1)) * kColumns;
    }

    bool tried() const {
        return (counts[kFront] > counts[kBegin] / width || totals[kJudged] > 0.0) && totals[kDistance] > 0.0;
    }

    double risk_of(double said, double model) const {
        double size = totals[kSize], distance = totals[kDistance];
        return distance > 0.0 ? 0.5 * (size / distance) * ((said - model) * (said - model)) : 0.0;
    }

    bool settled(int64_t t, int64_t out) const {
        int64_t made = counts[kFront] * width;
        int64_t judged = made - counts[kBegin], rest = t + 1 - made;
        int64_t times = counts[kFlagged] < 0 ? generations : patience;
        return judged >= times * rest && double(out - rest) <= unsettled * double(judged);
    }

    Room room(int64_t t, int64_t out) const {
        double loss = totals[kModel], block = totals[kBlock];
        double mean = losses * (loss / (totals[kJudged] > 1.0 ? totals[kJudged] : 1.0));
        bool open = settled(t, out);
        double free = open ? spare * loss + mean : 0.0;
        double shown = -totals[kPaper] - proof * std::sqrt(totals[kSquares] + block * block);
        double earned = free + (shown > 0.0 ? shown : 0.0), most = cap * loss + mean;
        return {earned < most ? earned : most, earned, open};
    }

    double age() const {
        double n = totals[kKnown], lags = totals[kLags], spread = n * totals[kLagSquares] - lags * lags;
        return (lags + deviations * std::sqrt(spread > 0.0 ? spread : 0.0)) / (n > 1.0 ? n : 1.0);
    }

    bool depends(const double *c) {
        double n = c[kCN];
        if (n < 2.0) return false;
        double spread = c[kCGG] - c[kCG] * c[kCG] / n;
        if (!(spread > material * n)) return false;
        double x = c[kCVG] - c[kCV] * c[kCG] / n;
        totals[kCross] += x;
        totals[kCrossSquares] += x * x;
        totals[kCrossings] += x != 0.0 ? 1.0 : 0.0;
        totals[kSpread] += spread;
        double cross = totals[kCross], squares = totals[kCrossSquares];
        if (squares <= 0.0) return false;
        double rho = squares / totals[kCrossings];
        return cross * cross / (2.0 * (squares + rho)) - 0.5 * std::log((squares + rho) / rho) > alarm;
    }
};

}  // namespace swapcal
