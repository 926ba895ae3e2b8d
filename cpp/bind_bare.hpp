// What the engine is measured against: loops with the memory traffic that no engine can avoid, and calls that do nothing.
#pragma once

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>

#include "evidence.hpp"

namespace swapcal {

namespace nb = nanobind;

// For every context: the products with the two outer rows, a bisection on their signs down to two neighbors, and one
// row update. No weights, no draw, no books, no checks.
inline double bare_loop(nb::ndarray<const double, nb::ndim<2>, nb::c_contig, nb::device::cpu> contexts,
                        nb::ndarray<double, nb::ndim<2>, nb::c_contig, nb::device::cpu> rows) {
    int64_t n_rounds = int64_t(contexts.shape(0)), n = int64_t(contexts.shape(1)), n_rows = int64_t(rows.shape(0));
    double total = 0.0;
    for (int64_t t = 0; t < n_rounds; ++t) {
        const double *x = contexts.data() + t * n;
        auto product = [&](int64_t i) {
            const double *row = rows.data() + i * n;
            double sum = 0.0;
            for (int64_t j = 0; j < n; ++j) sum += row[j] * x[j];
            return sum;
        };
        int64_t left = 0, right = n_rows - 1;
        double at_left = product(left), at_right = product(right);
        while (right - left > 1) {
            int64_t middle = (left + right) / 2;
            double at_middle = product(middle);
            if ((at_middle > 0.0) == (at_left > 0.0)) {
                left = middle, at_left = at_middle;
            } else {
                right = middle, at_right = at_middle;
            }
        }
        total += at_right;
        // The sign keeps the products near zero, as the engine keeps its evidence.
        double v = at_left > 0.0 ? -0.125 : 0.125;
        double *row = rows.data() + left * n;
        for (int64_t j = 0; j < n; ++j) row[j] += x[j] * v;
    }
    return total;
}

// An object whose methods have the signatures of the engine's and do nothing.
struct Empty {
    nb::object predict(nb::handle, nb::handle) { return nb::none(); }
    bool update(nb::handle, nb::handle) { return true; }
};

inline void bind_bare(nb::module_ &m) {
    m.def("bare_loop", &bare_loop);
    nb::class_<Empty>(m, "Empty")
        .def(nb::init<>())
        .def("predict", &Empty::predict, nb::arg("x").none(), nb::arg("hint").none())
        .def("update", &Empty::update, nb::arg("forecast").none(), nb::arg("y").none());
}

}  // namespace swapcal
