// Makes and reads Forecast objects: the fields of a slotted class, written at the offsets that its descriptors state.
// Calling the class from C++ would cost more than the round itself.
#pragma once

#include <Python.h>
#include <structmember.h>

#include <cstring>
#include <stdexcept>

#include "crossing.hpp"
#include "row.hpp"

namespace swapcal {

enum ForecastField {
    kValue, kRound, kForecaster, kOther, kProbability, kEvidenceAt, kContext, kKind, kPhi, kHint, kBase, kFeatures,
    kScores, kGuided, kSaid, kSeal, kFields
};

constexpr const char *kFieldNames[kFields] = {"value", "round", "forecaster", "other", "probability", "evidence_at",
                                              "context", "kind", "phi", "hint", "base", "features", "scores", "guided", "said",
                                              "seal"};

struct ForecastType {
    PyTypeObject *type = nullptr;
    Py_ssize_t offset[kFields] = {};
    PyObject *kinds[kKinds] = {};  // their names, in the order of the enumeration

    void learn(PyObject *cls, PyObject *names) {
        if (!PyTuple_CheckExact(names) || PyTuple_GET_SIZE(names) != kKinds) throw std::runtime_error("names of kinds");
        for (int k = 0; k < kKinds; ++k) kinds[k] = Py_NewRef(PyTuple_GET_ITEM(names, k));
        if (!PyType_Check(cls)) throw std::runtime_error("a forecast type is needed");
        for (int k = 0; k < kFields; ++k) {
            PyObject *descriptor = PyObject_GetAttrString(cls, kFieldNames[k]);
            if (!descriptor || !Py_IS_TYPE(descriptor, &PyMemberDescr_Type)) {
                PyErr_Clear();
                Py_XDECREF(descriptor);
                throw std::runtime_error("the forecast type must keep its fields in slots");
            }
            offset[k] = reinterpret_cast<PyMemberDescrObject *>(descriptor)->d_member->offset;
            Py_DECREF(descriptor);
        }
        Py_INCREF(cls);
        type = reinterpret_cast<PyTypeObject *>(cls);
    }

    bool is_forecast(PyObject *object) const { return Py_IS_TYPE(object, type); }

    // Borrowed; null if the slot is empty.
    PyObject *get(PyObject *forecast, ForecastField field) const {
        return *reinterpret_cast<PyObject **>(reinterpret_cast<char *>(forecast) + offset[field]);
    }

    // Takes the reference over.
    void set(PyObject *forecast, ForecastField field, PyObject *value) const {
        *reinterpret_cast<PyObject **>(reinterpret_cast<char *>(forecast) + offset[field]) = value;
    }

    // kKinds if it is none.
    Kind kind(PyObject *forecast) const {
        PyObject *name = get(forecast, kKind);
        for (int k = 0; name && k < kKinds; ++k) {
            if (name == kinds[k]) return Kind(k);
        }
        for (int k = 0; name && PyUnicode_CheckExact(name) && k < kKinds; ++k) {
            if (PyUnicode_Compare(name, kinds[k]) == 0) return Kind(k);
        }
        return kKinds;
    }

    // False unless the field is a plain float.
    bool number(PyObject *forecast, ForecastField field, double &out) const {
        PyObject *value = get(forecast, field);
        if (!value || !PyFloat_CheckExact(value)) return false;
        out = PyFloat_AS_DOUBLE(value);
        return true;
    }
};

// The context of a forecast: positions, then values, as bytes.
inline PyObject *pack(const Row &row) {
    PyObject *bytes = PyBytes_FromStringAndSize(nullptr, 16 * row.n);
    if (bytes) {
        std::memcpy(PyBytes_AS_STRING(bytes), row.index, 8 * row.n);
        std::memcpy(PyBytes_AS_STRING(bytes) + 8 * row.n, row.value, 8 * row.n);
    }
    return bytes;
}

}  // namespace swapcal
