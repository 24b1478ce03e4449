// The one place where arrays become pointers: what a kernel is handed is checked here, or the kernel does not run.
//
// Kernels get the ndarray objects themselves, because asking an ndarray for its address in Python
// costs more than most small kernels.  An object is taken for an array if its type says so; its elements for T if
// their kind, size and byte order do; and its memory for a row of `count` elements if it is aligned, without gaps and
// has exactly so many.  What is written must be writable.  NumPy vouches for the rest: that the memory behind shape
// and strides is the array's.  The fields read are those of every NumPy 2; the loader proves them on real arrays.
#pragma once
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <new>
#include <type_traits>

struct Descr {  // PyArray_Descr
    char head[RL_OBJECT_HEAD];
    void *scalar;
    char kind, letter, byteorder, former;
    int number;
    uint64_t flags;
    intptr_t itemsize;
};

struct Array {  // PyArrayObject
    char head[RL_OBJECT_HEAD];
    void *data;
    int dims;
    const intptr_t *shape, *strides;
    void *base;
    const Descr *descr;
    int flags;
};

namespace rl {

constexpr char kForeign = __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__ ? '>' : '<';

enum Flags { kC = 1, kFortran = 2, kAligned = 0x100, kWriteable = 0x400 };

// Python's objects and functions, as the loader found them; the functions are called with the GIL held.
struct Python {
    const void *none, *ndarray, *runtime_error, *memory_error, *type_error, *overflow_error;
    int (*is_subtype)(const void *type, const void *of);
    void (*set_error)(const void *kind, const char *message);
    void *(*occurred)();  // the exception that is set, or nullptr
    void *(*save_thread)();
    void (*restore_thread)(void *);
    intptr_t (*as_size)(void *object, const void *where_too_large);
    unsigned long long (*as_unsigned)(void *object);
    double (*as_double)(void *object);
    void *(*from_size)(intptr_t);
    void (*keep)(void *object);
    void (*release)(void *object);
    void *(*new_capsule)(void *pointer, const char *name, void (*end)(void *));
    void *(*pointer_of)(void *capsule, const char *name);
    void *(*new_function)(void *method, void *self, void *module);
};
extern Python interpreter;

// The elements that sizes make; -1 for negative sizes and those whose product is no size.
template <class... N> inline long elements(N... sizes) {
    long total = 1;
    bool wrong = false;
    ((wrong |= sizes < 0 || __builtin_mul_overflow(total, (long)sizes, &total)), ...);
    return wrong ? -1 : total;
}

template <class T> struct Kind {
    static bool of(const Descr *d) { return d->kind == 'f'; }
};
template <> struct Kind<int64_t> {
    static bool of(const Descr *d) { return d->kind == 'i'; }
};
template <> struct Kind<int32_t> : Kind<int64_t> {};
template <> struct Kind<uint16_t> {
    static bool of(const Descr *d) { return d->kind == 'u'; }
};
template <> struct Kind<uint32_t> : Kind<uint16_t> {};
template <> struct Kind<uint64_t> : Kind<uint16_t> {};
template <> struct Kind<uint8_t> {
    static bool of(const Descr *d) { return d->kind == 'u' || d->kind == 'b'; }
};
template <> struct Kind<Array *> {
    static bool of(const Descr *d) { return d->kind == 'O'; }
};

// Gapless rows at strides of their own: those of (B, H, L, E), or of (H, L, E).
template <class T> struct Place {
    T *data = nullptr;
    long batch = 0, head = 0, row = 0;  // strides in elements
    Place at(long b, long h) const { return {data + b * batch + h * head, batch, head, row}; }
    T *from(long r) const { return data + r * row; }
};

// A matrix, or a batch of them: element (i, j) of one `pitch` elements behind that of row i - 1, or, turned, of column j - 1.
template <class T> struct Matrix {
    T *data = nullptr;
    long batch = 0, rows = 0, columns = 0, apart = 0, pitch = 0;
    bool turned = false;
    T *at(long i, long j) const { return data + (turned ? j * pitch + i : i * pitch + j); }
    Matrix one(long i) const { return {data + i * apart, 1, rows, columns, 0, pitch, turned}; }
};

// One call of a kernel: arguments are asked for one by one; `run` runs it if all were as they must be.
class Call {
    const char *kernel_;
    int order_ = kC | kFortran;  // orders in which the elements of all that are `any` lie
    bool wrong_ = false;

    bool refuse(const char *name, const char *what, const Array *a, long wanted);

    // Whether `a` is an array of T's; const T are only read.
    template <class T> __attribute__((noinline)) bool holds(const char *name, const Array *a, bool written) {
        if (!is_array(name, a)) return false;
        const Descr *d = a->descr;
        if (!Kind<T>::of(d) || d->itemsize != (intptr_t)sizeof(T) || d->byteorder == kForeign)
            return refuse(name, "another dtype, of %ld bytes", a, sizeof(T));
        if (!(a->flags & kAligned)) return refuse(name, "aligned elements", a, 0);
        if (written && !(a->flags & kWriteable)) return refuse(name, "writable memory", a, 0);
        return true;
    }

    template <class T> __attribute__((noinline)) T *row(const char *name, const Array *a, long count, int order, bool written) {
        if (!holds<T>(name, a, written)) return nullptr;
        if (!(a->flags & order)) return refuse(name, "elements without gaps", a, count), nullptr;
        if (count < 0 || product(a) != count) return refuse(name, "%ld elements", a, count), nullptr;
        return static_cast<T *>(a->data);
    }

    template <class T> T *any(const char *name, const Array *a, long count, bool written) {
        T *data = row<T>(name, a, count, kC | kFortran, written);
        if (data) order_ &= a->flags;
        return data;
    }

    bool begins();
    void fails(const void *kind, const char *message);

    struct Released {  // other Python threads run meanwhile
        void *thread = interpreter.save_thread();
        ~Released() { interpreter.restore_thread(thread); }
    };

  public:
    explicit Call(const char *kernel) : kernel_(kernel) {}

    bool is_array(const char *name, const Array *a) {
        const void *type = *reinterpret_cast<void *const *>(a->head + RL_OBJECT_HEAD - sizeof(void *));
        return type == interpreter.ndarray || interpreter.is_subtype(type, interpreter.ndarray) || refuse(name, "an array", nullptr, 0);
    }

    static long product(const Array *a) {
        long size = 1;
        for (int i = 0; i < a->dims; ++i) size *= a->shape[i];
        return size;
    }

    // `a`, to be paired with `like`: an array of T's of its shape, aligned, gapless in an order they share.  Else nullptr.
    template <class T> static T *paired(const Array *a, const Array *like, bool written) {
        const void *type = *reinterpret_cast<void *const *>(a->head + RL_OBJECT_HEAD - sizeof(void *));
        if ((type != interpreter.ndarray && !interpreter.is_subtype(type, interpreter.ndarray)) || a->dims != like->dims) return nullptr;
        const Descr *d = a->descr;
        const int wanted = kAligned | (written ? kWriteable : 0);
        const bool alike = Kind<T>::of(d) && d->itemsize == (intptr_t)sizeof(T) && d->byteorder != kForeign &&
                           (a->flags & wanted) == wanted && (a->flags & like->flags & (kC | kFortran)) &&
                           std::equal(a->shape, a->shape + a->dims, like->shape);
        return alike ? static_cast<T *>(a->data) : nullptr;
    }

    static bool none(const Array *a) { return static_cast<const void *>(a) == interpreter.none; }

    // An array in C order, to be read or written.
    template <class T, class... N> const T *in(const char *name, const Array *a, N... sizes) {
        return row<T>(name, a, elements(sizes...), kC, false);
    }
    template <class T, class... N> T *out(const char *name, Array *a, N... sizes) {
        return row<T>(name, a, elements(sizes...), kC, true);
    }
    // The same, or None, which is nullptr.
    template <class T, class... N> const T *maybe_in(const char *name, const Array *a, N... sizes) {
        return none(a) ? nullptr : in<T>(name, a, sizes...);
    }
    template <class T, class... N> T *maybe_out(const char *name, Array *a, N... sizes) {
        return none(a) ? nullptr : out<T>(name, a, sizes...);
    }
    // Arrays whose elements are paired as they lie: all of a call in C order, or all in Fortran's.
    template <class T> const T *pair_in(const char *name, const Array *a, long count) {
        return any<T>(name, a, count, false);
    }
    template <class T> T *pair_out(const char *name, Array *a, long count) { return any<T>(name, a, count, true); }
    template <class T> T *maybe_pair_out(const char *name, Array *a, long count) {
        return none(a) ? nullptr : any<T>(name, a, count, true);
    }

    // An array of these sizes whose rows are gapless; `shared`: its axis of heads may be one.  const T are only read.
    template <class T>
    Place<T> rows(const char *name, const Array *a, long batch, long heads, long length, long width, bool shared = false) {
        using U = std::remove_const_t<T>;
        if (!holds<U>(name, a, !std::is_const<T>::value)) return {};
        const long sizes[4] = {batch, heads, length, width};
        long strides[4] = {}, skip = 4 - a->dims;  // of three dimensions, batch is left out
        if (a->dims < 3 || a->dims > 4) return refuse(name, "three or four dimensions", a, 0), Place<T>();
        for (long i = skip; i < 4; ++i) {
            long size = a->shape[i - skip], stride = a->strides[i - skip];
            bool one = shared && i == 1 && size == 1;
            if (size != sizes[i] && !one) return refuse(name, "a size of %ld there", a, sizes[i]), Place<T>();
            if (stride % (long)sizeof(T)) return refuse(name, "strides in whole elements", a, 0), Place<T>();
            strides[i] = size == 1 ? 0 : stride / (long)sizeof(T);
        }
        if (width > 1 && strides[3] != 1) return refuse(name, "rows without gaps", a, 0), Place<T>();
        return {static_cast<T *>(a->data), strides[0], strides[1], strides[2]};
    }
    // A matrix of T's, or a batch of them, to be read, whose rows or columns are gapless; without data if neither are, or memory
    // is not aligned.
    template <class T> Matrix<const T> matrix(const char *name, const Array *a) {
        if (!is_array(name, a) || !(a->flags & kAligned) || !holds<T>(name, a, false)) return {};
        const long last = a->dims - 1, size = sizeof(T);
        if (last < 1 || last > 2) return refuse(name, "two or three dimensions", a, 0), Matrix<const T>();
        const long batch = last == 2 ? (long)a->shape[0] : 1, apart = last == 2 ? (long)a->strides[0] : 0;
        const long rows = a->shape[last - 1], columns = a->shape[last], down = a->strides[last - 1], across = a->strides[last];
        if (apart % size || down % size || across % size) return {};
        const T *data = static_cast<const T *>(a->data);
        if (across == size || columns == 1) return {data, batch, rows, columns, apart / size, down / size, false};
        if (down == size || rows == 1) return {data, batch, rows, columns, apart / size, across / size, true};
        return {};
    }
    // An array that lies as its shape and strides say.  const T are only read.
    template <class T> T *spread(const char *name, const Array *a) {
        return holds<std::remove_const_t<T>>(name, a, !std::is_const<T>::value) ? static_cast<T *>(a->data) : nullptr;
    }
    // Of all elements, and of an axis; -1 if there is none.
    long size(const char *name, const Array *a) { return is_array(name, a) ? product(a) : -1; }
    long size(const char *name, const Array *a, int axis) {
        return is_array(name, a) && axis < a->dims ? (long)a->shape[axis] : -1;
    }

    // Arrays paired from here on may lie in another order.
    void end_of_group() {
        expect(order_, "arrays: elements in one order");
        order_ = kC | kFortran;
    }
    // What has no array to name: sizes that do not fit together.
    void expect(bool right, const char *what) {
        if (!right) refuse(what, nullptr, nullptr, 0);
    }

    // The kernel, other threads running meanwhile, or Python's exception.
    template <class F> void run(F kernel) {
        if (!begins()) return;
        try {
            Released free;
            kernel();
        } catch (const std::bad_alloc &) {
            fails(interpreter.memory_error, "no memory for what it works with");
        }
    }
};

}  // namespace rl
