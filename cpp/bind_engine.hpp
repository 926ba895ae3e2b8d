// Python's view of the engine: arrays in, forecasts out. Whatever is not plain is left to the Python twin.
#pragma once

#include <nanobind/stl/unique_ptr.h>

#include <cstring>
#include <memory>
#include <vector>

#include "any_engine.hpp"
#include "arrays.hpp"
#include "bind_regression.hpp"
#include "forecast.hpp"
#include "marks.hpp"
#include "parts.hpp"
#include "plain_array.hpp"
#include "plan.hpp"

namespace swapcal {

constexpr double kLargestFeature = 1e100;  // as in hints/regression.py

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
    Handle(nb::dict settings, nb::dict arrays, nb::object identity, nb::object model)
        : arrays_(arrays), identity_(identity), model_(model), engine_(Parts{settings, arrays}.build()) {
        if (!model.is_none()) engine_->model = &nb::cast<regression_binding::Handle &>(model).kernel();
        reads_dense_ = nb::cast<bool>(settings["reads_dense"]);
        runs_alone_ = nb::cast<bool>(settings["runs_alone"]);
        notices_ = nb::cast<bool>(settings["notices"]);
        hinted_ = nb::cast<bool>(settings["hinted"]);
        // Rows of records that came before, the columns that make a key, and what stands for one that is not there.
        nb::object memory = settings["memory"];
        if (!memory.is_none()) memory_ = memory[0], columns_ = memory[1], absent_ = memory[2];
    }

    // Whether contexts may be given as vectors.
    bool reads_dense() const { return reads_dense_; }

    // Whether whole rounds can be played without Python.
    bool runs_alone() const { return runs_alone_ && settings().property.kind != PropertyKind::Python; }

    // While it is held, a thread has the forecaster's turn: whole calls are left to Python, which waits for it.
    void hold(bool held) { held_ = held; }

    // The forecast for a context of a plain form, or None where the Python twin must look at the arguments.
    nb::object predict(nb::handle x, nb::handle given, nb::handle features) {
        return seen([&] { return read(x); }, given, features);
    }

    // Forecasts for the contexts behind those that are `made` already: rows of a matrix, or a list. It stops where the
    // Python twin must look.
    void predict_many(nb::handle x, nb::list hints, nb::list features, nb::list made) {
        size_t n = hints.size();
        bool listed = nb::isinstance<nb::list>(x);
        const double *dense = listed ? nullptr : nb::cast<Matrix<const double>>(x, false).data();
        size_t n_rows = listed ? nb::len(x) : nb::cast<Matrix<const double>>(x, false).shape(0);
        fits(n_rows == n && features.size() == n && (listed || reads_dense_));
        for (size_t i = made.size(); i < n; ++i) {
            auto context = [&] {
                return listed ? read(PyList_GET_ITEM(x.ptr(), i)) : engine_->reader.dense(dense + i * engine_->reader.n_own);
            };
            nb::object forecast = seen(context, PyList_GET_ITEM(hints.ptr(), i), PyList_GET_ITEM(features.ptr(), i));
            if (forecast.is_none()) return;
            made.append(forecast);
        }
    }

    // By which the round of a forecast is known.
    uint32_t mark(nb::handle forecast) const {
        const ForecastType &type = forecast_type();
        PyObject *f = forecast.ptr();
        fits(type.is_forecast(f), "a forecast is needed");
        PyObject *context = type.get(f, kContext), *features = type.get(f, kFeatures);
        fits(context && PyBytes_CheckExact(context) && features, "a forecast is needed");
        fits(features == Py_None || PyTuple_CheckExact(features), "features are a tuple");
        Mark mark;
        PyObject *said = type.get(f, kSaid);
        for (ForecastField field : {said == Py_None ? kValue : kSaid, kOther, kEvidenceAt, kPhi, kHint, kBase}) {
            PyObject *number = type.get(f, field);
            number == Py_None ? mark.nothing() : mark.number(plain(number));
        }
        mark.row(context_of(context));
        Py_ssize_t n = features == Py_None ? 0 : PyTuple_GET_SIZE(features);
        for (Py_ssize_t k = 0; k < n; ++k) mark.number(plain(PyTuple_GET_ITEM(features, k)));
        return mark.result();
    }

    // Which values to play: the fields of crossing.Play.
    nb::tuple play(Vector<const int64_t> indices, Vector<const double> values, nb::handle hint) {
        Play play = engine_->play(checked(indices, values), !hint.is_none(), checked(hint));
        nb::object point = play.at_forecast ? nb::none() : nb::cast(play.evidence_at);
        nb::object kind = nb::borrow(forecast_type().kinds[play.kind]);
        return nb::make_tuple(play.lower, play.upper, play.p_lower, point, kind, play.phi_lower, play.phi_upper);
    }

    // Twin of Round.expected: the hint in force, NaN for none, and the mean of what would be said, of many contexts.
    // False where the Python twin must look; changes nothing.
    bool look(Vector<const int64_t> indptr, Vector<const int64_t> indices, Vector<const double> values, nb::object hints,
              Vector<double> guides, Vector<double> means) {
        int64_t n_rows = int64_t(means.shape(0));
        bool based = !hints.is_none(), alone = runs_alone_ && !(engine_->model && engine_->model->n_features);
        if (!alone || (!engine_->values().n() && !based && !engine_->model)) return false;
        checked(indptr, indices, values, n_rows);
        fits(guides.shape(0) == means.shape(0));
        const double *given = nullptr;
        if (based) {
            auto bases = nb::cast<Vector<const double>>(hints, false);
            fits(bases.shape(0) == means.shape(0));
            given = bases.data();
        }
        const Values &grid = engine_->values();
        for (int64_t i = 0; i < n_rows; ++i) {
            int64_t begin = indptr.data()[i], end = indptr.data()[i + 1];
            int64_t m = engine_->reader.sparse(indices.data() + begin, values.data() + begin, end - begin);
            bool hinted = based;
            double hint = based ? given[i] : 0.0;
            fits(!std::isnan(hint), "a hint must be a number");
            hint = hint < grid.low ? grid.low : hint > grid.high ? grid.high : hint;
            Row row = engine_->looked_at(m, nullptr, hinted, hint);
            Play play = engine_->play(row, hinted, hint);
            guides.data()[i] = hinted ? hint : std::numeric_limits<double>::quiet_NaN();
            means.data()[i] = play.lower < 0 ? hint
                : play.p_lower * grid.by_slot[play.lower] + (1.0 - play.p_lower) * grid.by_slot[play.upper];
        }
        return true;
    }

    // Whether the last update has left something to Python: a refinement, the first hint, labels that heap.
    bool due() const { return due_; }

    double beyond() const { return engine_->beyond(); }

    // False where the Python twin must look at the arguments; nothing has changed then.
    bool update(nb::handle forecast, nb::handle y) {
        const ForecastType &type = forecast_type();
        PyObject *f = forecast.ptr();
        double label, value, other, evidence_at, phi, hint = 0.0;
        if (held_ || !type.is_forecast(f) || !runs_alone() || engine_->crowded()) return false;
        if (!arrays().number(y.ptr(), label)) return false;
        // Where it stood back, what was said is beside what was shown.
        PyObject *hidden = type.get(f, kSaid), *given = type.get(f, kBase);
        bool followed = hidden == Py_None, based = given && given != Py_None;
        double base = 0.0;
        if (!hidden || (based && !type.number(f, kBase, base))) return false;
        PyObject *who = type.get(f, kForecaster), *round = type.get(f, kRound), *context = type.get(f, kContext);
        if (!settings().property.valid_label(label) || !type.number(f, followed ? kValue : kSaid, value) ||
            !type.number(f, kOther, other) || !type.number(f, kEvidenceAt, evidence_at) || !type.number(f, kPhi, phi) ||
            !who || !context || !round || !PyLong_CheckExact(round) || !PyBytes_CheckExact(context)) {
            return false;
        }
        // Itself, not its text: a forecast that comes back from outside has a seal, which Python looks at.
        if (who != identity_.ptr()) return false;
        bool hinted = type.get(f, kHint) != Py_None;
        const Values &values = engine_->values();
        if (hinted && !(type.number(f, kHint, hint) && values.low <= hint && hint <= values.high)) return false;
        int overflow = 0;
        int64_t t = PyLong_AsLongLongAndOverflow(round, &overflow);
        Row row = context_of(context);
        Learned played{values.find(value), other, evidence_at, type.kind(f), phi, value, std::numeric_limits<double>::quiet_NaN()};
        bool shown = type.number(f, kValue, played.shown) && values.low <= played.shown && played.shown <= values.high;
        PyObject *guided = type.get(f, kGuided);
        if (!shown || !guided) return false;
        if (guided != Py_None && !(type.number(f, kGuided, played.guided) && values.low <= played.guided && played.guided <= values.high)) return false;
        if (based && !(values.low <= base && base <= values.high)) return false;
        if (overflow || !engine_->books().is_open(t) || !sound(row) || played.slot < 0 || played.kind == kKinds ||
            values.find(other) < 0 || !(values.low <= evidence_at && evidence_at <= values.high)) {
            return false;
        }
        int64_t lag = engine_->books().numbers[0] - 1 - t;
        Errors errors = engine_->errors(played, label, t, hinted, hint);
        if (engine_->model && !(hinted && learn_model(f, row, label, hint))) return false;
        engine_->score(row, played, errors, hinted, hint, based, base, label, t);
        engine_->learn(row, played, errors, t, hinted, hint);
        engine_->books().rounds[1] += lag > 0;
        first_ |= hinted && !hinted_;
        due_ |= notices_ || first_;
        return true;
    }

    // Learns outcomes from `begin` on, and says where it stopped: before one that the Python twin must look at, or
    // behind the first hint. Labels are left for Python to look at.
    int64_t update_many(nb::list forecasts, nb::list y, int64_t begin) {
        fits(forecasts.size() == y.size() && begin >= 0);
        int64_t n = int64_t(y.size()), i = begin;
        while (i < n && !first_ && update(PyList_GET_ITEM(forecasts.ptr(), i), PyList_GET_ITEM(y.ptr(), i))) ++i;
        return i;
    }

    // A round whose identification Python has computed.
    void learn(Vector<const int64_t> indices, Vector<const double> values, int64_t slot, double other,
               double evidence_at, nb::handle kind, double phi, double v, double v_evidence, double v_hint,
               double v_nearest, double lost, int64_t t, nb::handle hint) {
        Row row = checked(indices, values);
        Kind found = kKinds;
        for (int k = 0; k < kKinds; ++k) {
            if (kind.equal(nb::borrow(forecast_type().kinds[k]))) found = Kind(k);
        }
        fits(0 <= slot && slot < engine_->values().n() && engine_->books().is_open(t) && found != kKinds &&
                 !engine_->crowded(),
             "no such value, no such open round, or no room");
        engine_->learn(row, {slot, other, evidence_at, found, phi, 0.0, 0.0}, {v, v_evidence, v_hint, v_nearest, lost}, t,
                       !hint.is_none(), checked(hint));
    }

    void run_dense(Matrix<const double> x, Vector<const double> y, nb::object hints, nb::object features,
                   Vector<double> out, Vector<int64_t> progress, nb::object late) {
        fits(x.shape(0) == y.shape(0) && int64_t(x.shape(1)) == engine_->reader.n_own);
        run({x.data(), nullptr, nullptr, nullptr}, y, hints, features, out, progress, late);
    }

    void run_sparse(Vector<const int64_t> indptr, Vector<const int64_t> indices, Vector<const double> values,
                    Vector<const double> y, nb::object hints, nb::object features, Vector<double> out,
                    Vector<int64_t> progress, nb::object late) {
        checked(indptr, indices, values, int64_t(y.shape(0)));
        run({nullptr, indptr.data(), indices.data(), values.data()}, y, hints, features, out, progress, late);
    }

  private:
    nb::dict arrays_;  // kept alive
    nb::object identity_;
    nb::object one_ = nb::float_(1.0), zero_ = nb::float_(0.0);
    nb::object model_, memory_, columns_, absent_, fields_ = nb::str("_fields");
    std::unique_ptr<AnyEngine> engine_;
    bool reads_dense_, runs_alone_, notices_, hinted_, due_ = false, first_ = false, held_ = false;

    const Settings &settings() const { return static_cast<const AnyEngine &>(*engine_).settings(); }

    // The forecast for the context that `context` puts into the reader's buffer.
    template <class Read>
    nb::object seen(const Read &context, nb::handle given, nb::handle features) {
        if (held_ || engine_->crowded() || !runs_alone_) return nb::none();
        double guide = 0.0;
        bool hinted = !given.is_none();
        if (hinted && !plain_hint(given, guide)) return nb::none();
        // What is kept of a hint is a plain float.
        bool exact = !hinted || PyFloat_CheckExact(given.ptr());
        nb::object hint = exact ? nb::borrow(given) : nb::steal(PyFloat_FromDouble(guide));
        int64_t n_features = engine_->model ? engine_->model->n_features : 0;
        const double *extra = nullptr;
        if (features.is_none() ? n_features > 0 : !(extra = plain_features(features, n_features))) return nb::none();
        int64_t m = context();
        // What is shown, with a V of one's own, is for Python to say; and reading may have run anything.
        if (m < 0 || held_ || engine_->crowded() || (settings().property.kind == PropertyKind::Python && (hinted || engine_->model))) return nb::none();
        bool based = hinted;
        double base = guide;
        Row row = engine_->looked_at(m, extra, hinted, guide);
        return make(row, hinted, guide, hint, based, base, extra, n_features);
    }

    // The context in the reader's buffer, from an array, a list or tuple of numbers, a mapping from position to number,
    // or a row: how many entries are not zero; -1 where the Python twin must look.
    int64_t read(nb::handle x) {
        Reader &reader = engine_->reader;
        PyObject *o = x.ptr();
        if (memory_.is_valid() && (PyDict_CheckExact(o) || named(o)) && !(o = remembered(o))) return -1;
        // A class of columns that scales its rows gives them scaled: those are for Python. So is a pair that is no Row
        // where parts of a class read it, each by itself.
        bool row = !PyTuple_CheckExact(o) && reader.radius == 0.0;
        if (PyTuple_Check(o) && PyTuple_GET_SIZE(o) == 2 && (reads_dense_ || row)) {
            const int64_t *index;
            const double *value;
            int64_t m = arrays().pair(PyTuple_GET_ITEM(o, 0), PyTuple_GET_ITEM(o, 1), index, value);
            if (m > reader.n_own) return -1;
            if (m >= 0) return reader.entries(reader.copy(index, value, m));
        }
        if (!reads_dense_) return -1;
        if (const double *dense = arrays().vector(x, reader.n_own)) return reader.dense(dense);
        if (PyDict_CheckExact(o)) return read_mapping(o);
        bool listed = PyList_CheckExact(o);
        return listed || PyTuple_CheckExact(o) ? read_sequence(o, listed) : -1;
    }

    // A named tuple, but for a row.
    bool named(PyObject *o) const {
        return PyTuple_Check(o) && !PyTuple_CheckExact(o) && PyTuple_GET_SIZE(o) > 0 &&
               !arrays().array(PyTuple_GET_ITEM(o, 0)) &&
               PyObject_HasAttr(reinterpret_cast<PyObject *>(Py_TYPE(o)), fields_.ptr());
    }

    // Twin of Groups.remembered, for a mapping or named tuple: borrowed, and null where the Python twin must look.
    PyObject *remembered(PyObject *record) const {
        Py_ssize_t n = PyTuple_GET_SIZE(columns_.ptr());
        nb::object key = nb::steal(PyTuple_New(2 * n));
        bool mapping = PyDict_CheckExact(record);
        for (Py_ssize_t k = 0; key.is_valid() && k < n; ++k) {
            PyObject *name = PyTuple_GET_ITEM(columns_.ptr(), k);
            PyObject *value = mapping ? Py_XNewRef(PyDict_GetItemWithError(record, name)) : PyObject_GetAttr(record, name);
            if (!value && PyErr_Occurred() && (mapping || !PyErr_ExceptionMatches(PyExc_AttributeError))) break;
            PyErr_Clear();
            if (!value) value = absent_.inc_ref().ptr();
            PyTuple_SET_ITEM(key.ptr(), k, value);
            PyTuple_SET_ITEM(key.ptr(), n + k, Py_NewRef(reinterpret_cast<PyObject *>(Py_TYPE(value))));
        }
        PyObject *row = key.is_valid() && !PyErr_Occurred() ? PyDict_GetItemWithError(memory_.ptr(), key.ptr()) : nullptr;
        PyErr_Clear();  // a value that cannot be looked up
        return row;
    }

    int64_t read_sequence(PyObject *o, bool listed) {
        Reader &reader = engine_->reader;
        int64_t n = listed ? PyList_GET_SIZE(o) : PyTuple_GET_SIZE(o);
        if (n != reader.n_own) return -1;
        for (int64_t j = 0; j < n; ++j) {
            PyObject *entry = listed ? PyList_GET_ITEM(o, j) : PyTuple_GET_ITEM(o, j);
            if (!arrays().entry(entry, reader.value[j])) return -1;
            reader.index[j] = j;
        }
        return reader.entries(n);
    }

    int64_t read_mapping(PyObject *o) {
        Reader &reader = engine_->reader;
        PyObject *key, *entry;
        Py_ssize_t at = 0;
        int64_t m = 0;
        if (PyDict_GET_SIZE(o) > reader.n_own) return -1;
        for (; PyDict_Next(o, &at, &key, &entry); ++m) {
            if (!PyLong_CheckExact(key) || !arrays().entry(entry, reader.value[m])) return -1;
            int overflow = 0;
            reader.index[m] = PyLong_AsLongLongAndOverflow(key, &overflow);
            if (overflow) return -1;
        }
        return reader.entries(m);
    }

    bool plain_hint(nb::handle hint, double &value) const {
        if (!arrays().number(hint.ptr(), value)) return false;
        return engine_->values().low <= value && value <= engine_->values().high;
    }

    static double plain(PyObject *number) {
        double value = number ? PyFloat_AsDouble(number) : 0.0;
        if (!number || (value == -1.0 && PyErr_Occurred())) throw nb::python_error();
        return value;
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

    void checked(const Vector<const int64_t> &indptr, const Vector<const int64_t> &indices,
                 const Vector<const double> &values, int64_t n_rows) const {
        fits(int64_t(indptr.shape(0)) == n_rows + 1 && indices.shape(0) == values.shape(0));
        for (int64_t i = 0; i < n_rows; ++i) {
            int64_t begin = indptr.data()[i], end = indptr.data()[i + 1];
            fits(0 <= begin && begin <= end && end <= int64_t(indices.shape(0)), "indptr must increase");
            fits(rises(indices.data() + begin, end - begin, engine_->reader.n_own), kPositions);
        }
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
    bool learn_model(PyObject *f, const Row &row, double label, double said) {
        const ForecastType &type = forecast_type();
        PyObject *given = type.get(f, kBase), *features = type.get(f, kFeatures);
        bool based = given && given != Py_None;
        double base = 0.0;
        if (based && !(type.number(f, kBase, base) && engine_->values().low <= base && base <= engine_->values().high)) {
            return false;
        }
        PyObject *scores = type.get(f, kScores);
        if (!scores || !PyBytes_CheckExact(scores) || PyBytes_GET_SIZE(scores) != 2 * engine_->model->n_experts) {
            return false;
        }
        std::vector<uint16_t> packed(engine_->model->n_experts);
        std::memcpy(packed.data(), PyBytes_AS_STRING(scores), 2 * packed.size());
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
        int64_t own = engine_->reader.seen(row.index, row.n);
        engine_->model->update({row.index, row.value, own}, extra.data(), based, base, label, said, packed.data());
        return true;
    }

    nb::object make(const Row &row, bool hinted, double guide, nb::handle base, bool based, double model,
                    const double *extra, int64_t n_features) {
        const ForecastType &type = forecast_type();
        // Before the first allocation that may start the garbage collector: it may run anything, another round too.
        Drawn found = engine_->predict(row, hinted, guide, based, model);
        const Play &play = found.play;
        const Learned &played = found.played;
        double value = engine_->values().by_slot[played.slot], other = played.other;
        Mark mark;
        for (double x : {value, other, played.evidence_at, played.phi}) mark.number(x);
        hinted ? mark.number(guide) : mark.nothing();
        base.is_none() ? mark.nothing() : mark.number(PyFloat_AS_DOUBLE(base.ptr()));
        mark.row(row);
        for (int64_t k = 0; extra && k < n_features; ++k) mark.number(extra[k]);
        engine_->books().mark(found.t, mark.result());
        nb::object scores = nb::none();
        if (engine_->model) {
            std::vector<uint16_t> packed(engine_->model->n_experts);
            engine_->model->scores(packed.data());
            scores = nb::steal(PyBytes_FromStringAndSize(reinterpret_cast<char *>(packed.data()), 2 * packed.size()));
        }
        nb::object context = nb::steal(pack(row));
        nb::object result = nb::steal(type.type->tp_alloc(type.type, 0));
        if (!result.is_valid() || !context.is_valid() || !scores.is_valid()) throw nb::python_error();
        PyObject *f = result.ptr();
        PyObject *own = PyFloat_FromDouble(value);
        bool moved = played.shown != value;
        type.set(f, kValue, moved ? PyFloat_FromDouble(played.shown) : Py_NewRef(own));
        type.set(f, kRound, PyLong_FromLongLong(found.t));
        type.set(f, kForecaster, identity_.inc_ref().ptr());
        bool alone = play.lower == play.upper;
        type.set(f, kOther, alone ? Py_NewRef(own) : PyFloat_FromDouble(other));
        double probability = played.slot == play.lower ? play.p_lower : 1.0 - play.p_lower;
        type.set(f, kProbability, alone ? Py_NewRef(one_.ptr()) : PyFloat_FromDouble(probability));
        type.set(f, kEvidenceAt, play.at_forecast ? Py_NewRef(own) : PyFloat_FromDouble(play.evidence_at));
        type.set(f, kContext, context.release().ptr());
        type.set(f, kKind, Py_NewRef(type.kinds[play.kind]));
        type.set(f, kPhi, played.phi == 0.0 ? Py_NewRef(zero_.ptr()) : PyFloat_FromDouble(played.phi));
        type.set(f, kHint, engine_->model ? PyFloat_FromDouble(guide) : Py_NewRef(base.ptr()));
        type.set(f, kBase, Py_NewRef(base.ptr()));
        PyObject *features = extra ? PyTuple_New(n_features) : Py_NewRef(Py_None);
        for (int64_t k = 0; extra && k < n_features; ++k) PyTuple_SET_ITEM(features, k, PyFloat_FromDouble(extra[k]));
        type.set(f, kFeatures, features);
        type.set(f, kScores, scores.release().ptr());
        bool guided = !std::isnan(played.guided);
        type.set(f, kGuided, guided ? PyFloat_FromDouble(played.guided) : Py_NewRef(Py_None));
        type.set(f, kSaid, moved ? own : Py_NewRef(Py_None));
        if (!moved) Py_DECREF(own);
        type.set(f, kSeal, Py_NewRef(Py_None));
        return result;
    }

    // Codes must be lines of rounds that wait, or rows that come before: looked at where they are used, as this is called
    // again whenever there was no room.
    Arrivals arrivals(nb::handle late, int64_t n_rows) const {
        auto parts = nb::cast<nb::tuple>(late);
        auto codes = nb::cast<Vector<const int64_t>>(parts[0], false), ends = nb::cast<Vector<const int64_t>>(parts[1], false);
        auto flags = nb::cast<Vector<const uint8_t>>(parts[2], false);
        auto due = nb::cast<Vector<const double>>(parts[3], false);
        fits(int64_t(ends.shape(0)) == n_rows + 1 && int64_t(flags.shape(0)) == n_rows && int64_t(due.shape(0)) == n_rows);
        return {codes.data(), ends.data(), flags.data(), due.data(), int64_t(codes.shape(0))};
    }

    void run(const Contexts &x, const Vector<const double> &y, nb::object hints, nb::object features,
             Vector<double> &out, Vector<int64_t> &progress, nb::object late) {
        const double *guides = nullptr, *extras = nullptr;
        int64_t n_rows = int64_t(y.shape(0));
        fits(out.shape(0) == y.shape(0) && int64_t(progress.shape(0)) >= 3 + (late.is_none() ? 0 : n_rows));
        fits(0 <= progress.data()[0] && 0 <= progress.data()[1], "progress is counted from 0");
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
        Arrivals plan{};
        if (!late.is_none()) plan = arrivals(late, n_rows);
        nb::gil_scoped_release released;
        engine_->run(x, y.data(), guides, extras, out.data(), n_rows, late.is_none() ? nullptr : &plan, progress.data());
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
    m.def("weigh_adanormalhedge", [](Vector<const double> sums, Vector<const double> spreads, Vector<double> weights) {
        if (spreads.shape(0) != sums.shape(0) || weights.shape(0) != sums.shape(0)) {
            throw std::invalid_argument("sums, spreads and weights differ in length");
        }
        weigh_adanormalhedge(sums.data(), spreads.data(), weights.data(), int64_t(sums.shape(0)));
    });
    m.def("set_forecast_type", [](nb::handle cls, nb::handle kinds) { forecast_type().learn(cls.ptr(), kinds.ptr()); });
    nb::class_<Handle>(m, "Engine", nb::type_slots(fast_slots))
        .def(nb::init<nb::dict, nb::dict, nb::object, nb::object>(), nb::arg("settings"), nb::arg("arrays"),
             nb::arg("identity"), nb::arg("model").none())
        .def("play", &Handle::play, nb::arg("indices"), nb::arg("values"), nb::arg("hint").none())
        .def("look", &Handle::look, nb::arg("indptr"), nb::arg("indices"), nb::arg("values"), nb::arg("hints").none(),
             nb::arg("guides").noconvert(), nb::arg("means").noconvert())
        .def("mark", &Handle::mark, nb::arg("forecast"))
        .def("hold", &Handle::hold, nb::arg("held"))
        .def("predict_many", &Handle::predict_many, nb::arg("x"), nb::arg("hints"), nb::arg("features"), nb::arg("made"))
        .def("update_many", &Handle::update_many, nb::arg("forecasts"), nb::arg("y"), nb::arg("begin"))
        .def_prop_ro("reads_dense", &Handle::reads_dense)
        .def_prop_ro("runs_alone", &Handle::runs_alone)
        .def_prop_ro("beyond", &Handle::beyond)
        .def("learn", &Handle::learn, nb::arg("indices"), nb::arg("values"), nb::arg("slot"), nb::arg("other"),
             nb::arg("evidence_at"), nb::arg("kind"), nb::arg("phi"), nb::arg("v"), nb::arg("v_evidence"),
             nb::arg("v_hint"), nb::arg("v_nearest"), nb::arg("lost"), nb::arg("t"), nb::arg("hint").none())
        .def("run_dense", &Handle::run_dense, nb::arg("x"), nb::arg("y"), nb::arg("hints").none(),
             nb::arg("features").none(), nb::arg("out").noconvert(), nb::arg("progress").noconvert(),
             nb::arg("late").none())
        .def("run_sparse", &Handle::run_sparse, nb::arg("indptr"), nb::arg("indices"), nb::arg("values"), nb::arg("y"),
             nb::arg("hints").none(), nb::arg("features").none(), nb::arg("out").noconvert(), nb::arg("progress").noconvert(),
             nb::arg("late").none());
    m.def("planned", [](Vector<const int64_t> arrive, Vector<const int64_t> lines) {
        int64_t n_lines = int64_t(lines.shape(0)), n_rows = int64_t(arrive.shape(0)) - n_lines;
        fits(n_rows >= 0);
        for (size_t k = 0; k < arrive.shape(0); ++k) fits(arrive.data()[k] >= 0, "rows are counted from 0");
        Plan plan = planned(arrive.data(), lines.data(), n_lines, n_rows);
        return nb::make_tuple(owned(std::move(plan.codes)), owned(std::move(plan.ends)), owned(std::move(plan.late)));
    }, nb::arg("arrive"), nb::arg("lines"));
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
