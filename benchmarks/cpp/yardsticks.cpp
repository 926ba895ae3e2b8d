// swapcal_benchmarks._yardsticks, which the engine is measured against: loops with the memory traffic that no engine can avoid, and calls that do nothing.
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>

#include <algorithm>
#include <cstdint>
#include <stdexcept>

namespace nb = nanobind;

namespace {

using Matrix = nb::ndarray<const double, nb::ndim<2>, nb::c_contig, nb::device::cpu>;
using Rows = nb::ndarray<double, nb::ndim<2>, nb::c_contig, nb::device::cpu>;
using Trail = nb::ndarray<const int32_t, nb::ndim<2>, nb::c_contig, nb::device::cpu>;

// From left to right, as the engine and its Python twin must add for their bits to agree.
double in_order(const double *a, const double *x, int64_t n) {
    double sum = 0.0;
    for (int64_t j = 0; j < n; ++j) sum += a[j] * x[j];
    return sum;
}

// In four partial sums, for whoever need not give the same bits everywhere.
double in_any_order(const double *a, const double *x, int64_t n) {
    double s0 = 0.0, s1 = 0.0, s2 = 0.0, s3 = 0.0;
    int64_t j = 0;
    for (; j + 4 <= n; j += 4) {
        s0 += a[j] * x[j], s1 += a[j + 1] * x[j + 1], s2 += a[j + 2] * x[j + 2], s3 += a[j + 3] * x[j + 3];
    }
    for (; j < n; ++j) s0 += a[j] * x[j];
    return (s0 + s1) + (s2 + s3);
}

// The sign keeps the products near zero, as the engine keeps its evidence.
void update(double *row, const double *x, int64_t n, double product) {
    double v = product > 0.0 ? -0.125 : 0.125;
    for (int64_t j = 0; j < n; ++j) row[j] += x[j] * v;
}

void fits(bool holds) {
    if (!holds) throw std::invalid_argument("the arrays of a bare loop differ in length, or name rows that are not there");
}

// For every context: the products with the two outer rows, a bisection on the signs of products down to two neighbors,
// and one row update. No weights, no draw, no books, no checks.
double search(Matrix contexts, Rows rows) {
    int64_t n_rounds = int64_t(contexts.shape(0)), n = int64_t(contexts.shape(1)), n_rows = int64_t(rows.shape(0));
    fits(int64_t(rows.shape(1)) == n && n_rows > 0);
    double total = 0.0;
    for (int64_t t = 0; t < n_rounds; ++t) {
        const double *x = contexts.data() + t * n;
        auto product = [&](int64_t i) { return in_order(rows.data() + i * n, x, n); };
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
        update(rows.data() + left * n, x, n, at_left);
    }
    return total;
}

// As many products, with rows that `trail` names in advance: no product waits for the sign of another, which no
// search can have. The last row of a round is the one that is updated.
template <double (*Product)(const double *, const double *, int64_t)>
double follow(Matrix contexts, Rows rows, Trail trail) {
    int64_t n_rounds = int64_t(contexts.shape(0)), n = int64_t(contexts.shape(1)), steps = int64_t(trail.shape(1));
    fits(int64_t(rows.shape(1)) == n && int64_t(trail.shape(0)) == n_rounds && steps > 0);
    uint32_t highest = 0;
    for (int64_t k = 0; k < n_rounds * steps; ++k) highest = std::max(highest, uint32_t(trail.data()[k]));
    fits(highest < rows.shape(0));
    double total = 0.0;
    for (int64_t t = 0; t < n_rounds; ++t) {
        const double *x = contexts.data() + t * n;
        double last = 0.0;
        for (int64_t k = 0; k < steps; ++k) {
            last = Product(rows.data() + int64_t(trail.data()[t * steps + k]) * n, x, n);
            total += last;
        }
        update(rows.data() + int64_t(trail.data()[(t + 1) * steps - 1]) * n, x, n, last);
    }
    return total;
}

// An object whose methods have the signatures of the engine's and do nothing.
struct Empty {
    nb::object predict(nb::handle, nb::handle, nb::handle) { return nb::none(); }
    bool update(nb::handle, nb::handle) { return true; }
};

}  // namespace

NB_MODULE(_yardsticks, m) {
    m.doc() = "Loops and calls that do what cannot be avoided, and nothing else.";
    m.def("bare_loop", &search, nb::arg("contexts"), nb::arg("rows"));
    m.def("bare_known", &follow<in_order>, nb::arg("contexts"), nb::arg("rows"), nb::arg("trail"));
    m.def("bare_known_any_order", &follow<in_any_order>, nb::arg("contexts"), nb::arg("rows"), nb::arg("trail"));
    nb::class_<Empty>(m, "Empty")
        .def(nb::init<>())
        .def("predict", &Empty::predict, nb::arg("x").none(), nb::arg("hint").none(), nb::arg("features").none())
        .def("update", &Empty::update, nb::arg("forecast").none(), nb::arg("y").none());
}
