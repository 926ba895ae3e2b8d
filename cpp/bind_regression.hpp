// Python's view of the learning hint: a kernel over the arrays of a RegressionState, which are changed in place.
#pragma once

#include <nanobind/stl/optional.h>

#include <atomic>
#include <optional>
#include <stdexcept>
#include <vector>

#include "arrays.hpp"
#include "parts.hpp"
#include "regression.hpp"

namespace swapcal {

namespace regression_binding {

using MaybeNumbers = std::optional<Vector<const double>>;

// Owns the scratch and keeps the arrays alive. `settings` are those of the property, as for the engine, with its domain
// as "domain_low" and "domain_high", and whether V "tells" the outcome; `arrays` is RegressionState.buffers().
class Handle {
  public:
    Handle(nb::dict settings, nb::dict arrays) : arrays_(arrays) {
        auto number = [&](const char *name) { return nb::cast<double>(settings[name]); };
        property_ = property_from(settings);
        fits(property_.kind != PropertyKind::Python, "there is no kernel for a property that is Python code");
        Regression &r = regression_;
        r.n_features = size("mean");
        r.n = size("means") / Regression::kFull;
        n_inputs_ = r.n - Regression::kOwn - r.n_features;
        fits(n_inputs_ >= 0, "there is a weight for each input");
        r.n_full = r.n - size("rest") / Regression::kFull;
        fits(0 <= r.n_full && r.n_full <= r.n, "covariances are those of weights");
        r.tells = nb::cast<bool>(settings["tells"]);
        r.means = array("means", Regression::kFull * r.n);
        r.matrices = array("matrices", Regression::kFull * r.n_full * r.n_full);
        r.rest = array("rest", Regression::kFull * (r.n - r.n_full));
        r.slopes = array("slopes", r.n * Regression::kOthers);
        r.variances = array("variances", r.n * Regression::kDrifting);
        r.mean = array("mean", r.n_features);
        r.variation = array("variation", r.n_features);
        r.inverse = array("inverse", r.n_features);
        r.regrets = array("regrets", Regression::n_experts);
        r.squares = array("squares", Regression::n_experts);
        r.weights = array("weights", Regression::n_experts);
        r.totals = array("totals", Regression::kTotals);
        r.set_domain(number("domain_low"), number("domain_high"));
        r.property = &property_;
        scratch_.resize(Regression::scratch_size(r.n, r.n_full));
        r.use_scratch(scratch_.data());
    }
    Handle(const Handle &) = delete;  // the kernel points into it

    double forecast(Vector<const int64_t> indices, Vector<const double> values, MaybeNumbers features,
                    std::optional<double> base) {
        Row row = checked(indices, values);
        fits(row.n <= n_inputs_, "positions must be distinct");
        Busy busy(busy_);
        return regression_.forecast(row, extra(features), base.has_value(), base.value_or(0.0));
    }

    void update(Vector<const int64_t> indices, Vector<const double> values, MaybeNumbers features,
                std::optional<double> base, double y) {
        Row row = checked(indices, values);
        fits(row.n <= n_inputs_, "positions must be distinct");
        Busy busy(busy_);
        // As if it were known at once: what is said now counts as said.
        regression_.forecast(row, extra(features), base.has_value(), base.value_or(0.0));
        regression_.learn_now(y);
    }

    // Forecasts and updates the whole stream; forecasts go to `out`.
    void run(Vector<const int64_t> indptr, Vector<const int64_t> indices, Vector<const double> values,
             std::optional<Matrix<const double>> features, MaybeNumbers bases, Vector<const double> y, Vector<double> out) {
        int64_t n_rounds = int64_t(y.shape(0)), width = regression_.n_features;
        const int64_t *ends = indptr.data();
        Row all = checked(indices, values);
        fits(int64_t(indptr.shape(0)) == n_rounds + 1 && ends[0] == 0 && ends[n_rounds] == all.n &&
                    out.shape(0) == y.shape(0),
                "indptr, y and out must be of one length");
        for (int64_t t = 0; t < n_rounds; ++t) {
            int64_t n = ends[t + 1] - ends[t];
            fits(0 <= n && n <= n_inputs_, "indptr must increase, and positions be distinct");
        }
        fits(!bases || bases->shape(0) == y.shape(0), "one base for each round is needed");
        fits(features ? features->shape(0) == y.shape(0) && int64_t(features->shape(1)) == width : width == 0,
                "one row of features for each round is needed");
        const double *table = features ? features->data() : nullptr, *base = bases ? bases->data() : nullptr;
        const double *labels = y.data();
        double *forecasts = out.data();
        Busy busy(busy_);
        nb::gil_scoped_release released;
        for (int64_t t = 0; t < n_rounds; ++t) {
            Row row{all.index + ends[t], all.value + ends[t], ends[t + 1] - ends[t]};
            const double *extras = table ? table + t * width : nullptr;
            forecasts[t] = regression_.forecast(row, extras, base != nullptr, base ? base[t] : 0.0);
            regression_.learn_now(labels[t]);
        }
    }

    // For an engine that forecasts and learns in the same loop; it keeps this object alive.
    Regression &kernel() { return regression_; }

  private:
    nb::dict arrays_;
    Property property_;
    Regression regression_{};
    int64_t n_inputs_ = 0;
    std::vector<double> scratch_;
    std::atomic_flag busy_ = ATOMIC_FLAG_INIT;

    // `run` lets other threads go on, and they may hold the same state.
    struct Busy {
        std::atomic_flag &flag;
        explicit Busy(std::atomic_flag &f) : flag(f) {
            if (flag.test_and_set()) throw std::runtime_error("this regression is running in another thread");
        }
        ~Busy() { flag.clear(); }
    };

    // Never a copy: what is learned in a copy would be lost.
    Vector<double> in_place(const char *name) const { return nb::cast<Vector<double>>(arrays_[name], false); }

    int64_t size(const char *name) const { return int64_t(in_place(name).shape(0)); }

    double *array(const char *name, int64_t length) const {
        fits(size(name) == length, "the arrays of the regression differ in length");
        return in_place(name).data();
    }

    // In range, as anything else would write elsewhere in memory.
    Row checked(const Vector<const int64_t> &indices, const Vector<const double> &values) const {
        Row row{indices.data(), values.data(), int64_t(indices.shape(0))};
        fits(values.shape(0) == indices.shape(0), "one value for each position is needed");
        for (int64_t j = 0; j < row.n; ++j) {
            fits(0 <= row.index[j] && row.index[j] < n_inputs_, "a position is outside the context");
        }
        return row;
    }

    const double *extra(const MaybeNumbers &features) const {
        int64_t n = features ? int64_t(features->shape(0)) : 0;
        fits(n == regression_.n_features, "features are of another length");
        return features ? features->data() : nullptr;
    }
};

}  // namespace regression_binding

inline void bind_regression(nanobind::module_ &m) {
    using regression_binding::Handle;
    nb::class_<Handle>(m, "Regression")
        .def(nb::init<nb::dict, nb::dict>(), nb::arg("settings"), nb::arg("arrays"))
        .def("forecast", &Handle::forecast, nb::arg("indices"), nb::arg("values"), nb::arg("features").none(),
             nb::arg("base").none())
        .def("update", &Handle::update, nb::arg("indices"), nb::arg("values"), nb::arg("features").none(),
             nb::arg("base").none(), nb::arg("y"))
        .def("run", &Handle::run, nb::arg("indptr"), nb::arg("indices"), nb::arg("values"), nb::arg("features").none(),
             nb::arg("bases").none(), nb::arg("y"), nb::arg("out").noconvert());
}

}  // namespace swapcal
