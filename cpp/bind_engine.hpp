// Python's view of the engine: arrays in, forecasts out. Whatever is not plain is left to the Python twin.
#pragma once

#include <nanobind/stl/unique_ptr.h>

#include <memory>
#include <vector>

#include "any_engine.hpp"
#include "arrays.hpp"
#include "bind_regression.hpp"
#include "forecast.hpp"
#include "parts.hpp"
#include "plain_array.hpp"

namespace swapcal {

constexpr double kLargestFeature = 1e100;  // as in hints/regression_state.py

inline ForecastType &forecast_type() {
    static ForecastType type;
    return type;
}

inline const PlainArrays &arrays() {
    static const PlainArrays *plain = new PlainArrays();  // never freed: the interpreter may be gone by then
    return *plain;
}

class Handle {
  public:
    Handle(nb::dict settings, nb::dict arrays, nb::str identity, nb::object model)
        : arrays_(arrays), identity_(identity), model_(model), engine_(Parts{settings, arrays}.build()) {
        if (!model.is_none()) engine_->model = &nb::cast<regression_binding::Handle &>(model).kernel();
        reads_dense_ = nb::cast<bool>(settings["reads_dense"]);
        runs_alone_ = nb::cast<bool>(settings["runs_alone"]);
        notices_ = nb::cast<bool>(settings["notices"]);
        hinted_ = nb::cast<bool>(settings["hinted"]);
        refine_at_ = nb::cast<int64_t>(settings["refine_at"]);
    }

    // Whether contexts may be given as vectors.
    bool reads_dense() const { return reads_dense_; }

    // Whether whole rounds can be played without Python.
    bool runs_alone() const { return runs_alone_ && settings().property.kind != PropertyKind::Python; }

    // While it is held, a thread has the forecaster's turn: whole calls are left to Python, which waits for it.
    void hold(bool held) { held_ = held; }

    // The forecast for a dense context, or None where the Python twin must look at the arguments.
    nb::object predict(nb::handle x, nb::handle hint, nb::handle features) {
        if (held_) return nb::none();
        const double *context = reads_dense_ && runs_alone_ ? arrays().vector(x, engine_->reader.n_own) : nullptr;
        if (!context) return nb::none();
        double guide = 0.0;
        bool hinted = !hint.is_none();
        if (hinted && !plain_hint(hint, guide)) return nb::none();
        int64_t n_features = engine_->model ? engine_->model->n_features : 0;
        const double *extra = nullptr;
        if (features.is_none() ? n_features > 0 : !(extra = plain_features(features, n_features))) return nb::none();
        int64_t m = engine_->reader.dense(context);
        if (m < 0) return nb::none();
        Row row = engine_->looked_at(m, extra, hinted, guide);
        return make(row, hinted, guide, hint, extra, n_features);
    }

    // Which bins to play: the fields of crossing.Play.
    nb::tuple play(Vector<const int64_t> indices, Vector<const double> values, nb::handle hint) {
        Play play = engine_->play(checked(indices, values), !hint.is_none(), checked(hint));
        nb::object border = play.at_border ? nb::cast(play.border) : nb::none();
        return nb::make_tuple(play.lower, play.upper, play.p_lower, border);
    }

    // Whether the last update has left something to Python: a refinement, the first hint, labels that heap.
    bool due() const { return due_; }

    // False where the Python twin must look at the arguments; nothing has changed then.
    bool update(nb::handle forecast, nb::handle y) {
        const ForecastType &type = forecast_type();
        PyObject *f = forecast.ptr();
        double label, value, evidence_at, hint = 0.0;
        if (held_ || !type.is_forecast(f) || !runs_alone()) return false;
        if (PyFloat_CheckExact(y.ptr())) {
            label = PyFloat_AS_DOUBLE(y.ptr());
        } else if (PyLong_CheckExact(y.ptr())) {
            label = PyLong_AsDouble(y.ptr());
            if (label == -1.0 && PyErr_Occurred()) return PyErr_Clear(), false;
        } else {
            return false;
        }
        PyObject *who = type.get(f, kForecaster), *round = type.get(f, kRound), *context = type.get(f, kContext);
        if (!settings().property.valid_label(label) || !type.number(f, kValue, value) ||
            !type.number(f, kEvidenceAt, evidence_at) || !who || !context || !round || !PyLong_CheckExact(round) ||
            !PyBytes_CheckExact(context)) {
            return false;
        }
        if (who != identity_.ptr() && (!PyUnicode_CheckExact(who) || PyUnicode_Compare(who, identity_.ptr()) != 0)) {
            return false;
        }
        bool hinted = type.get(f, kHint) != Py_None;
        const Grid &grid = settings().grid;
        if (hinted && !(type.number(f, kHint, hint) && grid.low <= hint && hint <= grid.high)) return false;
        int overflow = 0;
        int64_t t = PyLong_AsLongLongAndOverflow(round, &overflow);
        Row row = context_of(context);
        int64_t bin = grid.bin(value);
        if (overflow || !engine_->books().is_open(t) || !sound(row) || grid.midpoint(bin) != value ||
            !(grid.low <= evidence_at && evidence_at <= grid.high)) {
            return false;
        }
        if (engine_->model && !learn_model(f, row, label)) return false;
        bool late = t != engine_->books().numbers[0] - 1;
        engine_->learn(row, bin, engine_->errors(bin, evidence_at, label, t, hinted, hint), t, hinted, hint);
        engine_->books().rounds[1] += late;
        due_ |= notices_ || (hinted && !hinted_) || engine_->books().rounds[0] >= refine_at_;
        return true;
    }

    // A round whose identification Python has computed.
    void learn(Vector<const int64_t> indices, Vector<const double> values, int64_t bin, double v, double v_evidence,
               double v_hint, int64_t t, nb::handle hint) {
        Row row = checked(indices, values);
        fits(0 <= bin && bin < settings().grid.n && engine_->books().is_open(t), "no such bin, or no such open round");
        engine_->learn(row, bin, {v, v_evidence, v_hint}, t, !hint.is_none(), checked(hint));
    }

    int64_t run_dense(Matrix<const double> x, Vector<const double> y, nb::object hints, nb::object features, Vector<double> out,
                      int64_t start, int64_t stop, int64_t until) {
        int64_t n = engine_->reader.n_own;
        fits(x.shape(0) == y.shape(0) && int64_t(x.shape(1)) == n && within(start, stop, y));
        return run({x.data(), nullptr, nullptr, nullptr}, y, hints, features, out, start, stop, until);
    }

    int64_t run_sparse(Vector<const int64_t> indptr, Vector<const int64_t> indices, Vector<const double> values,
                       Vector<const double> y, nb::object hints, nb::object features, Vector<double> out,
                       int64_t start, int64_t stop, int64_t until) {
        fits(indptr.shape(0) == y.shape(0) + 1 && indices.shape(0) == values.shape(0) && within(start, stop, y));
        for (int64_t i = start; i < stop; ++i) {
            int64_t begin = indptr.data()[i], end = indptr.data()[i + 1];
            fits(0 <= begin && begin <= end && end <= int64_t(indices.shape(0)), "indptr must increase");
            fits(rises(indices.data() + begin, end - begin, engine_->reader.n_own), kPositions);
        }
        return run({nullptr, indptr.data(), indices.data(), values.data()}, y, hints, features, out, start, stop,
                   until);
    }

  private:
    nb::dict arrays_;  // kept alive
    nb::str identity_;
    nb::object one_ = nb::float_(1.0);
    nb::object model_;
    std::unique_ptr<AnyEngine> engine_;
    bool reads_dense_, runs_alone_, notices_, hinted_, due_ = false, held_ = false;
    int64_t refine_at_;

    const Settings &settings() const { return static_cast<const AnyEngine &>(*engine_).settings(); }

    bool plain_hint(nb::handle hint, double &value) const {
        if (!PyFloat_CheckExact(hint.ptr())) return false;
        value = PyFloat_AS_DOUBLE(hint.ptr());
        return settings().grid.low <= value && value <= settings().grid.high;
    }

    static Row context_of(PyObject *bytes) {
        int64_t m = PyBytes_GET_SIZE(bytes) / 16;
        const char *data = PyBytes_AS_STRING(bytes);
        return {reinterpret_cast<const int64_t *>(data), reinterpret_cast<const double *>(data + 8 * m), m};
    }

    static constexpr const char *kPositions = "positions must increase and lie within the context";

    // Strictly, so that a row has no more entries than the context.
    static bool rises(const int64_t *index, int64_t m, int64_t n) {
        int64_t last = -1;
        bool holds = true;
        for (int64_t k = 0; k < m; ++k) holds &= index[k] > last, last = index[k];
        return holds && last < n;
    }

    static bool within(int64_t start, int64_t stop, const Vector<const double> &y) {
        return 0 <= start && start <= stop && stop <= int64_t(y.shape(0));
    }

    Row checked(const Vector<const int64_t> &indices, const Vector<const double> &values) {
        Row row{indices.data(), values.data(), int64_t(indices.shape(0))};
        fits(values.shape(0) == indices.shape(0) && rises(row.index, row.n, engine_->books().n), kPositions);
        return row;
    }

    // A hint has a bin.
    static double checked(nb::handle hint) {
        double value = hint.is_none() ? 0.0 : nb::cast<double>(hint);
        fits(!std::isnan(value), "a hint must be a number");
        return value;
    }

    bool sound(const Row &row) {
        int64_t last = -1;
        for (int64_t k = 0; k < row.n; ++k) {
            if (row.index[k] <= last || !(std::fabs(row.value[k]) <= 1.0)) return false;
            last = row.index[k];
        }
        return last < engine_->books().n;
    }

    // Null where the Python twin must look at the features.
    static const double *plain_features(nb::handle features, int64_t n) {
        const double *extra = n ? arrays().vector(features, n) : nullptr;
        for (int64_t k = 0; extra && k < n; ++k) {
            if (!(std::fabs(extra[k]) <= kLargestFeature)) return nullptr;
        }
        return extra;
    }

    // Teaches the learning hint the outcome of a forecast; false if the forecast was changed.
    bool learn_model(PyObject *f, const Row &row, double label) {
        const ForecastType &type = forecast_type();
        PyObject *given = type.get(f, kBase), *features = type.get(f, kFeatures);
        bool based = given && given != Py_None;
        double base = 0.0;
        if (based && !(type.number(f, kBase, base) && settings().grid.low <= base && base <= settings().grid.high)) {
            return false;
        }
        std::vector<double> extra(engine_->model->n_features);
        if (extra.empty() && features != Py_None) return false;
        if (!extra.empty()) {
            if (!features || !PyTuple_CheckExact(features) || PyTuple_GET_SIZE(features) != Py_ssize_t(extra.size())) {
                return false;
            }
            for (size_t k = 0; k < extra.size(); ++k) {
                PyObject *number = PyTuple_GET_ITEM(features, k);
                if (!PyFloat_CheckExact(number)) return false;
                extra[k] = PyFloat_AS_DOUBLE(number);
                if (!(std::fabs(extra[k]) <= kLargestFeature)) return false;
            }
        }
        int64_t own = row.n;
        while (own > 0 && row.index[own - 1] >= engine_->reader.n_own) --own;
        engine_->model->update({row.index, row.value, own}, extra.data(), based, base, label);
        return true;
    }

    nb::object make(const Row &row, bool hinted, double guide, nb::handle base, const double *extra,
                    int64_t n_features) {
        const ForecastType &type = forecast_type();
        Outcome found = engine_->predict(row, hinted, guide);
        const Play &play = found.play;
        const Grid &grid = settings().grid;
        double value = grid.midpoint(found.bin);
        // Before the first allocation that may start the garbage collector: it may run anything, another round too.
        nb::object context = nb::steal(pack(row));
        nb::object result = nb::steal(type.type->tp_alloc(type.type, 0));
        if (!result.is_valid() || !context.is_valid()) throw nb::python_error();
        PyObject *f = result.ptr();
        PyObject *own = PyFloat_FromDouble(value);
        type.set(f, kValue, own);
        type.set(f, kRound, PyLong_FromLongLong(found.t));
        type.set(f, kForecaster, identity_.inc_ref().ptr());
        bool alone = play.lower == play.upper;
        type.set(f, kOther, alone ? Py_NewRef(own) : PyFloat_FromDouble(grid.midpoint(play.lower + play.upper - found.bin)));
        double probability = found.bin == play.lower ? play.p_lower : 1.0 - play.p_lower;
        type.set(f, kProbability, alone ? Py_NewRef(one_.ptr()) : PyFloat_FromDouble(probability));
        type.set(f, kEvidenceAt, play.at_border ? PyFloat_FromDouble(play.border) : Py_NewRef(own));
        type.set(f, kContext, context.release().ptr());
        type.set(f, kHint, engine_->model ? PyFloat_FromDouble(guide) : Py_NewRef(base.ptr()));
        type.set(f, kBase, Py_NewRef(base.ptr()));
        PyObject *features = extra ? PyTuple_New(n_features) : Py_NewRef(Py_None);
        for (int64_t k = 0; extra && k < n_features; ++k) PyTuple_SET_ITEM(features, k, PyFloat_FromDouble(extra[k]));
        type.set(f, kFeatures, features);
        return result;
    }

    int64_t run(const Contexts &x, const Vector<const double> &y, nb::object hints, nb::object features,
                Vector<double> &out, int64_t start, int64_t stop, int64_t until) {
        const double *guides = nullptr, *extras = nullptr;
        fits(out.shape(0) == y.shape(0));
        if (!hints.is_none()) {
            auto given = nb::cast<Vector<const double>>(hints, false);
            fits(given.shape(0) == y.shape(0));
            guides = given.data();
        }
        if (!features.is_none()) {
            auto given = nb::cast<Matrix<const double>>(features, false);
            fits(engine_->model && given.shape(0) == y.shape(0) &&
                 int64_t(given.shape(1)) == engine_->model->n_features);
            extras = given.data();
        }
        fits(extras || !engine_->model || engine_->model->n_features == 0);
        nb::gil_scoped_release released;
        return engine_->run(x, y.data(), guides, extras, out.data(), start, stop, until);
    }
};

// The calls that a service makes for every event: without a general dispatch, which costs as much as a search.
template <class Call>
PyObject *guarded(PyObject *self, Py_ssize_t n_given, Py_ssize_t n_wanted, const Call &call) {
    if (n_given != n_wanted) {
        PyErr_Format(PyExc_TypeError, "%zd positional arguments are needed", n_wanted);
        return nullptr;
    }
    try {
        return call(*nb::inst_ptr<Handle>(self));
    } catch (nb::python_error &error) {
        error.restore();
    } catch (const std::exception &error) {
        PyErr_SetString(PyExc_RuntimeError, error.what());
    }
    return nullptr;
}

inline PyObject *fast_predict(PyObject *self, PyObject *const *a, Py_ssize_t n) {
    return guarded(self, n, 3, [a](Handle &h) { return h.predict(a[0], a[1], a[2]).release().ptr(); });
}

inline PyObject *fast_update(PyObject *self, PyObject *const *a, Py_ssize_t n) {
    return guarded(self, n, 2, [a](Handle &h) { return PyBool_FromLong(h.update(a[0], a[1])); });
}

inline PyObject *fast_due(PyObject *self, PyObject *const *, Py_ssize_t n) {
    return guarded(self, n, 0, [](Handle &h) { return PyBool_FromLong(h.due()); });
}

inline PyMethodDef fast_methods[] = {
    {"predict", reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(fast_predict)), METH_FASTCALL,
     "predict(x, hint, features): the forecast, or None where Python must look at the arguments"},
    {"update", reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(fast_update)), METH_FASTCALL,
     "update(forecast, y): whether it was done; if not, Python must look at the arguments"},
    {"due", reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(fast_due)), METH_FASTCALL,
     "due(): whether the last update has left something to Python"},
    {nullptr, nullptr, 0, nullptr}};

inline PyType_Slot fast_slots[] = {{Py_tp_methods, fast_methods}, {0, nullptr}};

inline void bind_engine(nb::module_ &m) {
    m.def("has_forecast_type", [] { return forecast_type().type != nullptr; });
    m.def("set_forecast_type", [](nb::handle cls) { forecast_type().learn(cls.ptr()); });
    nb::class_<Handle>(m, "Engine", nb::type_slots(fast_slots))
        .def(nb::init<nb::dict, nb::dict, nb::str, nb::object>(), nb::arg("settings"), nb::arg("arrays"),
             nb::arg("identity"), nb::arg("model").none())
        .def("play", &Handle::play, nb::arg("indices"), nb::arg("values"), nb::arg("hint").none())
        .def("hold", &Handle::hold, nb::arg("held"))
        .def_prop_ro("reads_dense", &Handle::reads_dense)
        .def_prop_ro("runs_alone", &Handle::runs_alone)
        .def("learn", &Handle::learn, nb::arg("indices"), nb::arg("values"), nb::arg("bin"), nb::arg("v"),
             nb::arg("v_evidence"), nb::arg("v_hint"), nb::arg("t"), nb::arg("hint").none())
        .def("run_dense", &Handle::run_dense, nb::arg("x"), nb::arg("y"), nb::arg("hints").none(),
             nb::arg("features").none(), nb::arg("out").noconvert(), nb::arg("start"), nb::arg("stop"),
             nb::arg("until"))
        .def("run_sparse", &Handle::run_sparse, nb::arg("indptr"), nb::arg("indices"), nb::arg("values"), nb::arg("y"),
             nb::arg("hints").none(), nb::arg("features").none(), nb::arg("out").noconvert(), nb::arg("start"),
             nb::arg("stop"), nb::arg("until"));
    m.def("scale_rows", [](Vector<const int64_t> indptr, Vector<double> values, double radius) {
        int64_t n_rows = int64_t(indptr.shape(0)) - 1;
        fits(n_rows >= 0 && rises_within(indptr.data(), n_rows, int64_t(values.shape(0))), "indptr must increase");
        for (int64_t i = 0; i < n_rows; ++i) {
            int64_t begin = indptr.data()[i];
            scale_into_ball(values.data() + begin, indptr.data()[i + 1] - begin, radius);
        }
    }, nb::arg("indptr"), nb::arg("values").noconvert(), nb::arg("radius"));
}

}  // namespace swapcal
