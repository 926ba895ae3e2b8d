// Reads NumPy vectors through NumPy's own headers: a general import of an array costs as much as half a round.
#pragma once

#define NPY_NO_DEPRECATED_API NPY_1_22_API_VERSION
#include <nanobind/nanobind.h>
#include <numpy/ndarraytypes.h>

#include <cstdint>

namespace swapcal {

class PlainArrays {
  public:
    PlainArrays() {
        nanobind::module_ numpy = nanobind::module_::import_("numpy");
        array_ = numpy.attr("ndarray");
        number_ = numpy.attr("dtype")("float64");
        whole_ = numpy.attr("dtype")("int64");
        scalar_ = numpy.attr("float64");
    }

    // The entries of a vector of n doubles, one after the other in memory; null for anything else. Subclasses of arrays
    // are something else: they may hide entries behind a mask.
    const double *vector(nanobind::handle x, int64_t n) const {
        return length(x, number_) == n ? static_cast<const double *>(data(x)) : nullptr;
    }

    // The entries of two vectors of one length, positions and numbers, and that length; -1 for anything else.
    int64_t pair(nanobind::handle positions, nanobind::handle numbers, const int64_t *&index, const double *&value) const {
        int64_t n = length(positions, whole_);
        if (n < 0 || length(numbers, number_) != n) return -1;
        index = static_cast<const int64_t *>(data(positions));
        value = static_cast<const double *>(data(numbers));
        return n;
    }

    bool array(PyObject *x) const { return Py_TYPE(x) == reinterpret_cast<PyTypeObject *>(array_.ptr()); }

    // An entry of a context: a number, or whether a case is in a group.
    bool entry(PyObject *x, double &value) const {
        if (!PyBool_Check(x)) return number(x, value);
        value = x == Py_True;
        return true;
    }

    // A float, NumPy's float64 (which is one to Python), or a whole number; false for anything else.
    bool number(PyObject *x, double &value) const {
        if (PyFloat_CheckExact(x) || Py_TYPE(x) == reinterpret_cast<PyTypeObject *>(scalar_.ptr())) {
            value = PyFloat_AS_DOUBLE(x);
            return true;
        }
        if (!PyLong_CheckExact(x)) return false;
        value = PyLong_AsDouble(x);
        if (value == -1.0 && PyErr_Occurred()) return PyErr_Clear(), false;
        return true;
    }

  private:
    nanobind::object array_, number_, whole_, scalar_;

    // Of a plain vector of this type, one after the other in memory; -1 for anything else.
    int64_t length(nanobind::handle x, const nanobind::object &type) const {
        if (!array(x.ptr())) return -1;
        PyArrayObject *array = reinterpret_cast<PyArrayObject *>(x.ptr());
        bool plain = PyArray_NDIM(array) == 1 && reinterpret_cast<PyObject *>(PyArray_DESCR(array)) == type.ptr() &&
                     PyArray_CHKFLAGS(array, NPY_ARRAY_C_CONTIGUOUS | NPY_ARRAY_ALIGNED);
        return plain ? PyArray_DIM(array, 0) : -1;
    }

    static const void *data(nanobind::handle x) { return PyArray_DATA(reinterpret_cast<PyArrayObject *>(x.ptr())); }
};

}  // namespace swapcal
