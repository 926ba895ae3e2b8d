// Makes and reads Forecast objects: the fields of a slotted class, written at the offsets that its descriptors state.
// Calling the class from C++ would cost more than the round itself.
#pragma once

#include <Python.h>
#include <structmember.h>

#include <cstring>
#include <stdexcept>

#include "row.hpp"

namespace swapcal {

enum ForecastField { kValue, kRound, kForecaster, kOther, kProbability, kEvidenceAt, kContext, kHint, kBase, kFeatures, kFields };

constexpr const char *kFieldNames[kFields] = {"value", "round", "forecaster", "other", "probability", "evidence_at", "context", "hint", "base", "features"};

struct ForecastType {
    PyTypeObject *type = nullptr;
    Py_ssize_t offset[kFields] = {};

    void learn(PyObject *cls) {
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
