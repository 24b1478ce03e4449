// Loops as NumPy calls those of ufuncs: addresses, how many, and their distances in bytes.
#pragma once
#include "sixteen.h"

namespace rl {

using Size = intptr_t;

// A loop of NumPy's, and what it is called with.
struct Former {
    void (*loop)(char **, const Size *, const Size *, void *);
    void *data;
    explicit operator bool() const { return loop; }
    void operator()(char **args, const Size *count, const Size *step) const { loop(args, count, step, data); }
};

template <class S> inline S &at(char *base, Size offset) { return *reinterpret_cast<S *>(base + offset); }

}  // namespace rl
