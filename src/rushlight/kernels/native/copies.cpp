// Elements moved from one array to another of the same shape, however both lie, of any width: never computed with.
#include <algorithm>

#include "axes.h"
#include "squares.h"

namespace rl {
namespace {

// Those of both, in elements, the one whose elements lie closest in the result last; one of one element where there would be none.
bool axes_of(const Array *from, const Array *to, Axes &axes) {
    const long width = to->descr->itemsize;
    if (to->dims > Axes::kMost || from->dims != to->dims) return false;
    int order[Axes::kMost];
    for (int i = 0; i < to->dims; ++i) {
        const long dx = from->strides[i], dy = to->strides[i];
        if (from->shape[i] != to->shape[i] || dx % width || dy % width || dy < 0) return false;
        int k = i;
        for (; k > 0 && to->strides[order[k - 1]] < dy; --k) order[k] = order[k - 1];
        order[k] = i;
    }
    for (int k = 0; k < to->dims; ++k) axes.add(to->shape[order[k]], from->strides[order[k]] / width, to->strides[order[k]] / width);
    if (!axes.count) axes.count = 1, axes.size[0] = 1, axes.x[0] = axes.y[0] = 1;
    return true;
}

constexpr long kBytes = 1 << 16;  // that make one piece worth a thread

inline long grain_of(long bytes) { return std::max<long>(1, kBytes / std::max<long>(bytes, 1)); }

// A few vectors of bytes, the last of which begins among those before: a call of memcpy takes as long as to move them.
RL_INLINE void few_bytes(const char *x, char *o, long bytes) {
    constexpr long kVector = 32;
    char held[kVector];
    for (long i = 0; i + kVector <= bytes; i += kVector) std::memcpy(held, x + i, kVector), std::memcpy(o + i, held, kVector);
    std::memcpy(held, x + bytes - kVector, kVector), std::memcpy(o + bytes - kVector, held, kVector);
}

template <class T> RL_INLINE void neighbours(const T *x, T *o, long n) {
    const long bytes = n * (long)sizeof(T);
    if (bytes < 32 || bytes > 256) std::memcpy(o, x, bytes);
    else few_bytes(reinterpret_cast<const char *>(x), reinterpret_cast<char *>(o), bytes);
}

template <class T> RL_INLINE void row(const T *x, T *o, long n, long from, long to) {
    if (from == 1 && to == 1) {
        neighbours(x, o, n);
    } else if (from == -1 && to == 1) {
        for (long i = 0; i < n; ++i) o[i] = x[-i];
    } else if (from == 0 && to == 1) {
        const T value = *x;
#pragma omp simd
        for (long i = 0; i < n; ++i) o[i] = value;
    } else {
        for (long i = 0; i < n; ++i) o[i * to] = x[i * from];
    }
}

// Row by row, as many at a time as the next axis has.
template <class T> void by_rows(Axes axes, const T *x, T *o) {
    const int last = axes.count - 1;
    const long n = axes.size[last], from = axes.x[last], to = axes.y[last];
    axes.take(last);
    const long next = last ? axes.size[last - 1] : 1, dx_next = last ? axes.x[last - 1] : 0, dy_next = last ? axes.y[last - 1] : 0;
    parallel_for(axes.total(), grain_of(n * sizeof(T)), [=](long begin, long end) {
        for (long i = begin; i < end;) {
            long dx, dy, some = std::min(end, (i / next + 1) * next) - i;  // up to where the next axis ends
            axes.find(i, dx, dy);
            i += some;
            for (; some > 0; --some, dx += dx_next, dy += dy_next) row(x + dx, o + dy, n, from, to);
        }
    });
}

// Of few long rows, parts.
template <class T> void by_parts(Axes axes, const T *x, T *o) {
    const int last = axes.count - 1;
    const long n = axes.size[last], from = axes.x[last], to = axes.y[last];
    const long part = grain_of(sizeof(T)), parts = ceil_div(n, part);
    axes.take(last);
    parallel_for(axes.total() * parts, 1, [=](long begin, long end) {
        for (long i = begin; i < end; ++i) {
            long dx, dy, first = i % parts * part;
            axes.find(i / parts, dx, dy);
            row(x + dx + first * from, o + dy + first * to, std::min(part, n - first), from, to);
        }
    });
}

// Three elements of four bytes side by side, as channels of pixels: with the one behind them, over which the next are put.
template <class T> RL_INLINE void triples(const T *x, T *o, long count, long step) {
    std::copy_n(x, 3, o);  // what lies behind the first, where the last come before it, and behind the last may be no memory
    for (long j = 1; j < count - 1; ++j) std::memcpy(o + 3 * j, x + j * step, 16);
    std::copy_n(x + (count - 1) * step, 3, o + 3 * (count - 1));
}

// Rows of few elements, `n` known to the compiler where it is not 0: all that the next axis has go together.
template <class T, int kLength> void by_short_rows(Axes axes, const T *x, T *o) {
    const int last = axes.count - 1;
    const long n = kLength ? kLength : axes.size[last], m = axes.size[last - 1];
    const long from = axes.x[last], to = axes.y[last], from_next = axes.x[last - 1], to_next = axes.y[last - 1];
    const bool repeated = from == 0 && to == 1 && from_next == 1 && to_next == n;  // neighbours, so that a vector is a vector's
    axes.take(last);
    axes.take(last - 1);
    parallel_for(axes.total(), grain_of(m * n * sizeof(T)), [=](long begin, long end) {
        for (long r = begin; r < end; ++r) {
            long dx, dy;
            axes.find(r, dx, dy);
            const T *a = x + dx;
            T *b = o + dy;
            if (kLength && repeated) {
                for (long j = 0; j < m; ++j)
                    for (long i = 0; i < n; ++i) b[j * n + i] = a[j];
                continue;
            }
            if (!kLength && from == 1 && to == 1) {
                for (long j = 0; j < m; ++j, a += from_next, b += to_next) neighbours(a, b, n);
                continue;
            }
            if (kLength == 3 && sizeof(T) == 4 && from == 1 && to == 1 && to_next == 3 && m > 2) {
                triples(a, b, m, from_next);
                continue;
            }
            for (long j = 0; j < m; ++j, a += from_next, b += to_next)
                for (long i = 0; i < n; ++i) b[i * to] = a[i * from];
        }
    });
}

constexpr long kShort = 16;  // elements of a row below which asking where it lies takes longer than to move it

template <class T> void by_short_rows(const Axes &axes, const T *x, T *o) {
    switch (axes.size[axes.count - 1]) {
        case 2: return by_short_rows<T, 2>(axes, x, o);
        case 3: return by_short_rows<T, 3>(axes, x, o);
        case 4: return by_short_rows<T, 4>(axes, x, o);
        default: return by_short_rows<T, 0>(axes, x, o);
    }
}

// Where elements that are neighbours in the result lie `from` apart, and those of axis `other` are neighbours: by squares.
template <class T> void turned(Axes axes, int other, const T *x, T *o) {
    constexpr long N = std::max<long>(4, 64 / sizeof(T));
    const int last = axes.count - 1;
    const long n = axes.size[last], from = axes.x[last], m = axes.size[other], to = axes.y[other];
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
    if (axes.y[last] == 1 && axes.x[last] != 1 && axes.x[last] != 0)
        for (int i = 0; i < last; ++i)
            if (axes.x[i] == 1 && axes.size[i] > 3) return turned(axes, i, x, o);
    if (axes.count > 1 && axes.size[last] < kShort) by_short_rows(axes, x, o);
    else if (axes.size[last] > grain_of(sizeof(T))) by_parts(axes, x, o);
    else by_rows(axes, x, o);
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
