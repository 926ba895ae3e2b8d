// The order in which late outcomes of a stream are learned: twin of arrivals.planned.
#pragma once

#include <cstdint>
#include <vector>

namespace swapcal {

struct Plan {
    std::vector<int64_t> codes, ends;
    std::vector<uint8_t> late;
};

// `arrive`: before which row each outcome is learned, those of the lines first; n_rows and more: not here. One pass
// counts, one places, so that what arrives together stays in order.
inline Plan planned(const int64_t *arrive, const int64_t *lines, int64_t n_lines, int64_t n_rows) {
    Plan plan{{}, std::vector<int64_t>(n_rows + 1, 0), std::vector<uint8_t>(n_rows, 1)};
    std::vector<int64_t> counts(n_rows + 1, 0);
    const int64_t *own = arrive + n_lines;
    for (int64_t k = 0; k < n_lines + n_rows; ++k) counts[arrive[k] < n_rows ? arrive[k] : n_rows] += 1;
    // A row that is alone in being learned before the next one is learned at once.
    for (int64_t i = 0; i + 1 < n_rows; ++i) plan.late[i] = !(own[i] == i + 1 && counts[i + 1] == 1);
    for (int64_t i = 0; i + 1 < n_rows; ++i) counts[i + 1] = plan.late[i] ? counts[i + 1] : 0;
    for (int64_t i = 0; i < n_rows; ++i) plan.ends[i + 1] = plan.ends[i] + counts[i];
    plan.codes.resize(plan.ends[n_rows]);
    for (int64_t i = 0; i < n_rows; ++i) counts[i] = plan.ends[i];
    for (int64_t k = 0; k < n_lines; ++k) {
        if (arrive[k] < n_rows) plan.codes[counts[arrive[k]]++] = -1 - lines[k];
    }
    for (int64_t i = 0; i < n_rows; ++i) {
        if (plan.late[i] && own[i] < n_rows) plan.codes[counts[own[i]]++] = i;
    }
    return plan;
}

}  // namespace swapcal
