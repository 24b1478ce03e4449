// Elements moved from one array to another of the same shape, however both lie, of any width: never computed with.
#include <algorithm>

#include "common.h"
#include "squares.h"

namespace rl {
namespace {

// The axes of both, the one whose elements lie closest in the result last; distances in elements.
struct Axes {
    static constexpr int kMost = 8;
    int count = 0;
    long size[kMost], from[kMost], to[kMost];

    void add(long n, long dx, long dy) {
        if (n == 1) return;
        int i = count++;
        for (; i > 0 && to[i - 1] < dy; --i) size[i] = size[i - 1], from[i] = from[i - 1], to[i] = to[i - 1];
        size[i] = n, from[i] = dx, to[i] = dy;
    }
    // Neighbours that lie as one in both are one; an axis of one element is left where there would be none.
    void join() {
        int last = 0;
        for (int i = 1; i < count; ++i) {
            if (from[last] == from[i] * size[i] && to[last] == to[i] * size[i]) size[last] *= size[i];
            else size[++last] = size[i];
            from[last] = from[i], to[last] = to[i];
        }
        if (count) count = last + 1;
        else count = 1, size[0] = 1, from[0] = to[0] = 1;
    }
    void take(int axis) {  // out of those that are left
        for (int i = axis; i + 1 < count; ++i) size[i] = size[i + 1], from[i] = from[i + 1], to[i] = to[i + 1];
        --count;
    }
    long total() const {
        long found = 1;
        for (int i = 0; i < count; ++i) found *= size[i];
        return found;
    }
    // Where the elements of place `at` lie, counted along all axes.
    void find(long at, long &x, long &o) const {
        x = o = 0;
        for (int i = count - 1; i >= 0; --i) {
            x += at % size[i] * from[i], o += at % size[i] * to[i];
            at /= size[i];
        }
    }
};

bool axes_of(const Array *x, const Array *o, Axes &axes) {
    const long width = o->descr->itemsize;
    if (o->dims > Axes::kMost || x->dims != o->dims) return false;
    for (int i = 0; i < o->dims; ++i) {
        if (x->shape[i] != o->shape[i] || x->strides[i] % width || o->strides[i] % width || o->strides[i] < 0) return false;
        axes.add(o->shape[i], x->strides[i] / width, o->strides[i] / width);
    }
    axes.join();
    return true;
}

constexpr long kBytes = 1 << 17;  // that make one piece worth a thread

inline long grain_of(long bytes) { return std::max<long>(1, kBytes / std::max<long>(bytes, 1)); }

template <class T> void row(const T *x, T *o, long n, long from, long to) {
    if (from == 1 && to == 1) {
        std::memcpy(o, x, n * sizeof(T));
    } else if (from == -1 && to == 1) {
        for (long i = 0; i < n; ++i) o[i] = x[-i];
    } else if (from == 0 && to == 1) {
        std::fill(o, o + n, *x);
    } else {
        for (long i = 0; i < n; ++i) o[i * to] = x[i * from];
    }
}

// Row by row; of few long ones, parts of rows.
template <class T> void by_rows(Axes axes, const T *x, T *o) {
    const int last = axes.count - 1;
    const long n = axes.size[last], from = axes.from[last], to = axes.to[last];
    const long part = std::min(n, grain_of(sizeof(T))), parts = ceil_div(n, part);
    axes.take(last);
    parallel_for(axes.total() * parts, grain_of(part * sizeof(T)), [=](long begin, long end) {
        for (long i = begin; i < end; ++i) {
            long dx, dy, first = i % parts * part;
            axes.find(i / parts, dx, dy);
            row(x + dx + first * from, o + dy + first * to, std::min(part, n - first), from, to);
        }
    });
}

// Where elements that are neighbours in the result lie `from` apart, and those of axis `other` are neighbours: by squares.
template <class T> void turned(Axes axes, int other, const T *x, T *o) {
    constexpr long N = std::max<long>(4, 64 / sizeof(T));
    const int last = axes.count - 1;
    const long n = axes.size[last], from = axes.from[last], m = axes.size[other], to = axes.to[other];
    axes.take(last);
    axes.take(other);
    const long strips = ceil_div(m, N);
    parallel_for(axes.total() * strips, grain_of(n * N * sizeof(T)), [=](long begin, long end) {
        for (long s = begin; s < end; ++s) {
            long dx, dy, first = s % strips * N, high = std::min(N, m - first), i = 0;
            axes.find(s / strips, dx, dy);
            const T *a = x + dx + first;
            T *b = o + dy + first * to;
            if (high == N)
                for (; i + N <= n; i += N) square<T, N>(a + i * from, from, b + i, to);
            for (long j = 0; j < high; ++j)
                for (long k = i; k < n; ++k) b[j * to + k] = a[k * from + j];
        }
    });
}

template <class T> void copy(const Axes &axes, const T *x, T *o) {
    const int last = axes.count - 1;
    if (axes.to[last] == 1 && axes.from[last] != 1)
        for (int i = 0; i < last; ++i)
            if (axes.from[i] == 1 && axes.size[i] > 3) return turned(axes, i, x, o);
    by_rows(axes, x, o);
}

template <class T> long copied(Call &call, const Array *x_, const Array *o_) {
    const T *x = call.spread<const T>("input", x_);
    T *o = call.spread<T>("out", o_);
    Axes axes;
    if (x && o && !axes_of(x_, o_, axes)) return 0;
    call.run([=, &axes] { copy(axes, x, o); });
    return 1;
}

}  // namespace
}  // namespace rl

// Of unsigned numbers as wide as the elements: 1; or 0, of which nothing was done, where shapes differ or elements do not lie in whole
// distances.
RL_EXPORT long rl_copy_bytes(Array *x, Array *o) {
    rl::Call call("copy");
    if (!call.is_array("out", o)) return 0;
    switch (o->descr->itemsize) {
        case 1: return rl::copied<uint8_t>(call, x, o);
        case 2: return rl::copied<uint16_t>(call, x, o);
        case 4: return rl::copied<uint32_t>(call, x, o);
        default: return rl::copied<uint64_t>(call, x, o);
    }
}
