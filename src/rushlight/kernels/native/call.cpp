// What is said of arrays that a kernel cannot take.
#include "call.h"

#include <cstdio>

#include "common.h"

namespace rl {

Python interpreter = {};

// Remembers the first fault as Python's exception; false.
bool Call::refuse(const char *name, const char *what, const Array *a, long wanted) {
    if (wrong_) return false;
    wrong_ = true;
    char text[512];
    int n = std::snprintf(text, sizeof text, "%s (native kernel): %s", kernel_, name);
    if (what) {
        n += std::snprintf(text + n, sizeof text - n, ": expected ");
        n += std::snprintf(text + n, sizeof text - n, what, wanted);
    }
    if (a) {
        n += std::snprintf(text + n, sizeof text - n, ", got shape (");
        for (int i = 0; i < a->dims && n < 400; ++i)
            n += std::snprintf(text + n, sizeof text - n, "%s%ld", i ? ", " : "", (long)a->shape[i]);
        n += std::snprintf(text + n, sizeof text - n, ") of kind %c%ld", a->descr->kind, (long)a->descr->itemsize);
    }
    std::snprintf(text + n, sizeof text - n, " (were an array's shape, dtype or memory changed between forward and backward?)");
    interpreter.set_error(interpreter.runtime_error, text);
    return false;
}

bool Call::begins() {
    if (!wrong_ && !order_) refuse("arguments", "elements in one order", nullptr, 0);
    return !wrong_;
}

void Call::fails(const void *kind, const char *message) {
    char text[256];
    std::snprintf(text, sizeof text, "%s (native kernel): %s", kernel_, message);
    interpreter.set_error(kind, text);
}

}  // namespace rl

RL_EXPORT void rl_python(const void *const *table) { std::memcpy(&rl::interpreter, table, sizeof rl::interpreter); }

// What is read of an array: data, dims, C, Fortran, aligned, writable, kind, byte order, itemsize, whether it is one; then shape and strides.
RL_EXPORT void rl_describe(const Array *a, int64_t *to) {
    int flags = a->flags;
    const void *type = *reinterpret_cast<void *const *>(a->head + RL_OBJECT_HEAD - sizeof(void *));
    const int64_t found[] = {(int64_t)a->data, a->dims, !!(flags & rl::kC), !!(flags & rl::kFortran),
                             !!(flags & rl::kAligned), !!(flags & rl::kWriteable), a->descr->kind, a->descr->byteorder,
                             a->descr->itemsize, rl::interpreter.is_subtype(type, rl::interpreter.ndarray)};
    for (int64_t value : found) *to++ = value;
    for (int i = 0; i < a->dims; ++i) to[i] = a->shape[i], to[a->dims + i] = a->strides[i];
}
