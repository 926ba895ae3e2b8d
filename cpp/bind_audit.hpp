// Python's view of the audit's kernels. Sums come as a mapping from names to arrays, which are changed in place.
#pragma once

#include <stdexcept>
#include <utility>

#include "arrays.hpp"
#include "audit.hpp"

namespace swapcal {

namespace audit_binding {

// The sums and the rounds that go into them, kept alive while the interpreter is free to do other things, and checked
// against each other.
struct Addition {
    AuditSums sums{};
    AuditRounds rounds{};

    Addition(const nb::dict &arrays, const Vector<const int64_t> &slots, const Vector<const double> &errors,
             const Vector<const double> &forecasts, const Vector<const double> &weights)
        : rounds{slots.data(), errors.data(), forecasts.data(), weights.data(), int64_t(slots.shape(0))} {
        Matrix<double> xv = in_place<Matrix<double>>(arrays, "xv");
        size_t n_slots = xv.shape(0), n = xv.shape(1);
        sums.n = int64_t(n);
        const char *names[] = {"rounds", "count", "v", "vv", "forecast"};
        double **lines[] = {&sums.rounds, &sums.count, &sums.v, &sums.vv, &sums.forecast};
        for (int i = 0; i < (arrays.contains("forecast") ? 5 : 4); ++i) {
            vectors_[i] = in_place<Vector<double>>(arrays, names[i]);
            if (vectors_[i].shape(0) != n_slots) throw std::invalid_argument("the arrays of sums differ in length");
            *lines[i] = vectors_[i].data();
        }
        const char *cells[] = {"xv", "active", "weight", "xvxv"};
        double **blocks[] = {&sums.xv, &sums.active, &sums.weight, &sums.xvxv};
        for (int i = 0; i < (arrays.contains("active") ? 4 : 1); ++i) {
            tables_[i] = in_place<Matrix<double>>(arrays, cells[i]);
            if (tables_[i].shape(0) != n_slots || tables_[i].shape(1) != n) {
                throw std::invalid_argument("the arrays of sums differ in shape");
            }
            *blocks[i] = tables_[i].data();
        }
        if (errors.shape(0) != slots.shape(0) || forecasts.shape(0) != slots.shape(0) ||
            (weights.is_valid() && weights.shape(0) != slots.shape(0))) {
            throw std::invalid_argument("one slot, V, forecast and weight for each round is needed");
        }
        if (!all_below(slots.data(), rounds.n_rounds, int64_t(n_slots))) {
            throw std::out_of_range("a slot is outside the sums");
        }
    }

  private:
    Vector<double> vectors_[5];
    Matrix<double> tables_[4];

    // Never a copy: the sums of a copy would be lost.
    template <class Array>
    static Array in_place(const nb::dict &arrays, const char *name) {
        return nb::cast<Array>(arrays[name], false);
    }
};

}  // namespace audit_binding

inline void bind_audit(nanobind::module_ &m) {
    using namespace audit_binding;

    m.def("audit_distinct", [](Vector<const double> values) {
        std::vector<int64_t> codes(values.shape(0));
        std::vector<double> distinct;
        {
            nb::gil_scoped_release released;
            distinct = number_values(values.data(), int64_t(codes.size()), codes.data());
        }
        return nb::make_tuple(owned(std::move(distinct)), owned(std::move(codes)));
    });
    m.def("audit_bins", [](Vector<const double> edges, Vector<const double> values, bool equal) {
        std::vector<int64_t> bins(values.shape(0));
        {
            nb::gil_scoped_release released;
            auto *count = equal ? count_below<true> : count_below<false>;
            count(edges.data(), int64_t(edges.shape(0)), values.data(), int64_t(bins.size()), bins.data());
        }
        return owned(std::move(bins));
    });
    m.def(
        "audit_add_sparse",
        [](nb::dict arrays, Vector<const int64_t> slots, Vector<const double> errors, Vector<const double> forecasts,
           Vector<const double> weights, Vector<const int64_t> indptr, Vector<const int64_t> indices,
           Vector<const double> values) {
            Addition to(arrays, slots, errors, forecasts, weights);
            nb::gil_scoped_release released;
            int64_t size = int64_t(indices.shape(0));
            if (indptr.shape(0) != slots.shape(0) + 1 || values.shape(0) != indices.shape(0) ||
                !rises_within(indptr.data(), to.rounds.n_rounds, size)) {
                throw std::invalid_argument("compressed rows do not fit the rounds");
            }
            if (!all_below(indices.data(), indptr.data()[to.rounds.n_rounds], to.sums.n)) {
                throw std::out_of_range("a position is outside the context");
            }
            auto *add = to.sums.active ? add_sparse<true> : add_sparse<false>;
            add(to.sums, to.rounds, indptr.data(), indices.data(), values.data());
        },
        nb::arg(), nb::arg(), nb::arg(), nb::arg(), nb::arg().none(), nb::arg(), nb::arg(), nb::arg());
    m.def(
        "audit_add_dense",
        [](nb::dict arrays, Vector<const int64_t> slots, Vector<const double> errors, Vector<const double> forecasts,
           Vector<const double> weights, Matrix<const double> x) {
            Addition to(arrays, slots, errors, forecasts, weights);
            if (x.shape(0) != slots.shape(0) || int64_t(x.shape(1)) != to.sums.n) {
                throw std::invalid_argument("the contexts do not fit the rounds");
            }
            nb::gil_scoped_release released;
            auto *add = to.sums.active ? add_dense<true> : add_dense<false>;
            add(to.sums, to.rounds, x.data());
        },
        nb::arg(), nb::arg(), nb::arg(), nb::arg(), nb::arg().none(), nb::arg());
    m.def("first_bad", [](AnyShape<const double> x, double limit) {
        nb::gil_scoped_release released;
        return find_bad(x.data(), int64_t(x.size()), limit);
    });
}

}  // namespace swapcal
