// Rounds of recorded streams whose outcomes are out: twin of engine/pending.py and of the loop in engine/schedule.py.
#pragma once

#include <cstdint>
#include <cstring>
#include <limits>

#include "engine.hpp"
#include "regression.hpp"

namespace swapcal {

struct Waiting {
    enum Whole { kRoundOf, kSlotOf, kKindOf, kLengthOf, kWholes };
    enum Number { kOtherOf, kPointOf, kPhiOf, kShownOf, kHintOf, kBaseOf, kGuidedOf, kLabelOf, kDueOf, kNumbers };

    int64_t *whole;
    double *numbers;
    uint8_t *scores;
    double *features;
    int64_t *indices;
    double *entries;
    int64_t *free, *counts;  // a stack of free lines, and how many there are
    int64_t width, n_scores, n_features, n_lines;

    bool room(int64_t n_entries) const { return counts[0] > 0 && n_entries <= width; }

    int64_t add(const Row &row, const Learned &played, int64_t t, bool hinted, double hint, bool based, double base,
                const Regression *model, const double *extra, double label, double due) {
        constexpr double none = std::numeric_limits<double>::quiet_NaN();
        int64_t line = free[--counts[0]];
        int64_t *w = whole + line * kWholes;
        w[kRoundOf] = t, w[kSlotOf] = played.slot, w[kKindOf] = played.kind, w[kLengthOf] = row.n;
        double *x = numbers + line * kNumbers;
        x[kOtherOf] = played.other, x[kPointOf] = played.evidence_at, x[kPhiOf] = played.phi;
        x[kShownOf] = played.shown, x[kGuidedOf] = played.guided;
        x[kHintOf] = hinted ? hint : none, x[kBaseOf] = based ? base : none;
        x[kLabelOf] = label, x[kDueOf] = due;
        if (model) {
            for (int64_t k = 0; k < model->n_experts; ++k) {
                uint16_t score = Regression::score(model->combined - model->units[k]);
                std::memcpy(scores + line * n_scores + 2 * k, &score, 2);
            }
        }
        if (n_features) std::memcpy(features + line * n_features, extra, 8 * n_features);
        if (row.n) {
            std::memcpy(indices + line * width, row.index, 8 * row.n);
            std::memcpy(entries + line * width, row.value, 8 * row.n);
        }
        return line;
    }

    void prefetch(int64_t line) const {
        SWAPCAL_PREFETCH(whole + line * kWholes);
        SWAPCAL_PREFETCH(numbers + line * kNumbers);
        SWAPCAL_PREFETCH(indices + line * width);
        SWAPCAL_PREFETCH(entries + line * width);
        if (n_scores) SWAPCAL_PREFETCH(scores + line * n_scores);
    }

    Row row(int64_t line) const {
        const int64_t *index = indices + line * width, n = whole[line * kWholes + kLengthOf];
        // Positions increase: where one is in its own place, so are all before it. Behind them may be that of a level set.
        int64_t in_place = n && index[n - 1] == n - 1 ? n : n > 1 && index[n - 2] == n - 2 ? n - 1 : 0;
        return {index, entries + line * width, n, in_place};
    }

    Learned played(int64_t line) const {
        const int64_t *w = whole + line * kWholes;
        const double *x = numbers + line * kNumbers;
        return {w[kSlotOf], x[kOtherOf], x[kPointOf], Kind(w[kKindOf]), x[kPhiOf], x[kShownOf],
                x[kGuidedOf]};
    }

    void release(int64_t line) {
        whole[line * kWholes + kRoundOf] = -1;
        free[counts[0]++] = line;
    }
};

// What is learned before which row, and what behind the last one: twin of arrivals.Arrivals.
struct Arrivals {
    static constexpr uint8_t kNotYet = 2;  // in `late`: the outcome is missing, and waited for

    const int64_t *codes, *ends;
    const uint8_t *late;
    const double *due;
    int64_t n_codes;
};

}  // namespace swapcal
