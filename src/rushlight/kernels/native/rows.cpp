// A row added to every row of a matrix, and arithmetic of arrays that are broadcast.
#include <algorithm>
#include <climits>

#include "axes.h"
#include "squares.h"

namespace rl {

template <class T> static void add_row(T *x, const T *row, long R, long C) {
    parallel_for(R, row_grain(C), [=](long begin, long end) {
        for (long r = begin; r < end; ++r) {
            T *to = x + r * C;
#pragma omp simd
            for (long c = 0; c < C; ++c) to[c] += row[c];
        }
    });
}

// How far apart elements of `a` lie on an axis of what it is broadcast to; -1 where it does not go with it.
template <class T> static long distance(const Array *a, const Array *o, int axis) {
    const int own = axis - (o->dims - a->dims);
    if (own < 0 || a->shape[own] == 1) return 0;
    const long bytes = a->strides[own];
    return a->shape[own] != o->shape[axis] || bytes < 0 || bytes % (long)sizeof(T) ? -1 : bytes / (long)sizeof(T);
}

// Whether the elements of an operand lie in the order of its axes, as far as `next` says: then so does what NumPy makes of them.
static bool goes_on(long next, long &last) {
    if (next > last) return false;
    if (next) last = next;
    return true;
}

// Those of a result in C order, and of both operands.
template <class T> static bool axes_of(const Array *x, const Array *y, const Array *o, Axes &found) {
    if (o->dims > Axes::kMost || x->dims > o->dims || y->dims > o->dims) return false;
    long last_x = LONG_MAX, last_y = LONG_MAX;
    for (int i = 0; i < o->dims; ++i) {
        const long dx = distance<T>(x, o, i), dy = distance<T>(y, o, i);
        if (dx < 0 || dy < 0) return false;
        if (o->shape[i] > 1 && !(goes_on(dx, last_x) && goes_on(dy, last_y))) return false;
        found.add(o->shape[i], dx, dy);
    }
    return found.count > 1;
}

// Where a row of the result begins in both operands, row by row.
struct RowsOfBoth {
    const Axes &axes;
    long at[Axes::kMost], x = 0, y = 0;

    RowsOfBoth(const Axes &of, long row) : axes(of) {
        for (int i = axes.count - 2; i >= 0; --i) {
            at[i] = row % axes.size[i], row /= axes.size[i];
            x += at[i] * axes.x[i], y += at[i] * axes.y[i];
        }
    }
    void next() {
        for (int i = axes.count - 2; i >= 0; --i) {
            x += axes.x[i], y += axes.y[i];
            if (++at[i] < axes.size[i]) return;
            at[i] = 0, x -= axes.size[i] * axes.x[i], y -= axes.size[i] * axes.y[i];
        }
    }
};

// f(row of x, row of y, row of the result) for each row.
template <class T, class F> static void each_row(const Axes &axes, const T *x, const T *y, T *o, F f) {
    const long C = axes.size[axes.count - 1];
    Axes rows = axes;
    rows.take(axes.count - 1);
    parallel_for(rows.total(), 2 * row_grain(C), [=, &axes](long begin, long end) {
        RowsOfBoth row(axes, begin);
        for (long r = begin; r < end; ++r, row.next()) f(x + row.x, y + row.y, o + r * C);
    });
}

constexpr long kShortRow = 16;   // elements up to which some rows are gone through as one
constexpr long kTogether = 512;  // elements of them

// An operand's part of rows that follow each other, as they lie or in `room`.
template <class T> struct SomeRows {
    long C, inner, apart;  // the elements of a row, how far these and the rows lie apart

    const T *read(const T *from, long rows, T *room) const {
        if (inner && apart == C) return from;
        if (inner && apart == 0) return repeated(from, rows * C, room);
        if (!inner && apart == 0) return std::fill_n(room, rows * C, *from), room;
        T *to = room;
        for (long r = 0; r < rows; ++r, from += apart)
            for (long c = 0; c < C; ++c) *to++ = from[c * inner];
        return room;
    }

    const T *repeated(const T *row, long count, T *room) const {
        std::copy_n(row, std::min(C, count), room);
        for (long have = C; have < count; have *= 2) std::copy_n(room, std::min(have, count - have), room + have);
        return room;
    }
};

// Rows of few elements: as many at a time as make a vector worth its while.
template <class T, class F> static void across_short(const Axes &axes, const T *x, const T *y, T *o, F f) {
    const int last = axes.count - 1;
    const long C = axes.size[last], m = axes.size[last - 1], some = kTogether / C, parts = ceil_div(m, some);
    const SomeRows<T> of_x{C, axes.x[last], axes.x[last - 1]}, of_y{C, axes.y[last], axes.y[last - 1]};
    Axes outer = axes;
    outer.take(last), outer.take(last - 1);
    parallel_for(outer.total() * parts, row_grain(std::min(some, m) * C), [=, &outer](long begin, long end) {
        T room_x[kTogether], room_y[kTogether];
        for (long i = begin; i < end; ++i) {
            long dx, dy;
            outer.find(i / parts, dx, dy);
            const long first = i % parts * some, rows = std::min(some, m - first);
            const T *a = of_x.read(x + dx + first * of_x.apart, rows, room_x), *b = of_y.read(y + dy + first * of_y.apart, rows, room_y);
            T *to = o + (i / parts * m + first) * C;
#pragma omp simd
            for (long c = 0; c < rows * C; ++c) to[c] = f(a[c], b[c]);
        }
    });
}

template <class T, class F> static void across(const Axes &axes, const T *x, const T *y, T *o, F f) {
    const long C = axes.size[axes.count - 1];
    if (C <= kShortRow) return across_short(axes, x, y, o, f);
    if (axes.inner(1, 1)) {
        each_row(axes, x, y, o, [=](const T *a, const T *b, T *to) {
#pragma omp simd
            for (long c = 0; c < C; ++c) to[c] = f(a[c], b[c]);
        });
    } else if (axes.inner(1, 0)) {
        each_row(axes, x, y, o, [=](const T *a, const T *b, T *to) {
            const T one = *b;
#pragma omp simd
            for (long c = 0; c < C; ++c) to[c] = f(a[c], one);
        });
    } else {
        each_row(axes, x, y, o, [=](const T *a, const T *b, T *to) {
            const T one = *a;
#pragma omp simd
            for (long c = 0; c < C; ++c) to[c] = f(one, b[c]);
        });
    }
}

// Axes of an operand in another order and of the other one, which lies as the result does; the axis whose elements are neighbours in the
// first, -1 where there is none, or it is the result's too.
template <class T> static int turned_axes(const Array *turned, const Array *plain, const Array *o, Axes &found) {
    if (o->dims > Axes::kMost || turned->dims != o->dims || plain->dims != o->dims || !(plain->flags & kC)) return -1;
    long pitch = 1, steps[Axes::kMost];
    for (int i = o->dims - 1; i >= 0; pitch *= o->shape[i--]) {
        if (turned->shape[i] != o->shape[i] || plain->shape[i] != o->shape[i] || turned->strides[i] <= 0) return -1;
        if (turned->strides[i] % (long)sizeof(T)) return -1;
        steps[i] = pitch;
    }
    for (int i = 0; i < o->dims; ++i) found.add(o->shape[i], turned->strides[i] / (long)sizeof(T), steps[i]);
    for (int i = 0; i + 1 < found.count; ++i)
        if (found.x[i] == 1 && found.size[i] > 3) return i;
    return -1;
}

// f(turned, plain) by squares, of which those of the first are put down the other way.
template <class T, class F> static void by_squares(Axes axes, int other, const T *turned, const T *plain, T *o, F f) {
    constexpr long N = 64 / sizeof(T);
    const int last = axes.count - 1;
    const long n = axes.size[last], from = axes.x[last], m = axes.size[other], to = axes.y[other];
    axes.take(last);
    axes.take(other);
    const long strips = ceil_div(m, N);
    parallel_for(axes.total() * strips, row_grain(n * N), [=](long begin, long end) {
        for (long s = begin; s < end; ++s) {
            long dx, dy, first = s % strips * N, high = std::min(N, m - first), i = 0;
            axes.find(s / strips, dx, dy);
            const T *a = turned + dx + first, *b = plain + dy + first * to;
            T *c = o + dy + first * to;
            if (high == N)
                for (; i + N <= n; i += N) {
                    T held[N * N];
                    square<T, N>(a + i * from, from, held, N);
                    for (long j = 0; j < N; ++j) {
#pragma omp simd
                        for (long k = 0; k < N; ++k) c[j * to + i + k] = f(held[j * N + k], b[j * to + i + k]);
                    }
                }
            for (long j = 0; j < high; ++j)
                for (long k = i; k < n; ++k) c[j * to + k] = f(a[k * from + j], b[j * to + k]);
        }
    });
}

}  // namespace rl

#define ALL(T, S)                                                                                    \
    RL_EXPORT void rl_add_row_##S(Array *x_, Array *row_, long R, long C) {                          \
        rl::Call call("add_row");                                                                    \
        T *x = call.out<T>("input", x_, R, C);                                                       \
        const T *row = call.in<T>("row", row_, C);                                                   \
        call.run([=] { rl::add_row<T>(x, row, R, C); });                                             \
    }
RL_BOTH(ALL)

// Two arrays that are broadcast to the result, which lies in C order, or one that lies so and another whose axes are in another order: 1;
// or 0, of which nothing was done, where rows have gaps or there are no rows.
#define ACROSS(T, S, NAME, EXPR)                                                                     \
    RL_EXPORT long rl_##NAME##_across_##S(Array *x_, Array *y_, Array *o_) {                         \
        rl::Call call(#NAME "_across");                                                              \
        const T *x = call.spread<const T>("input", x_), *y = call.spread<const T>("other", y_);      \
        T *o = call.out<T>("out", o_, call.size("out", o_));                                         \
        if (!x || !y || !o) return call.run([] {}), 0;                                               \
        rl::Axes axes, of_x, of_y;                                                                   \
        const int first = rl::turned_axes<T>(x_, y_, o_, of_x), second = rl::turned_axes<T>(y_, x_, o_, of_y); \
        if (first >= 0 || second >= 0) {                                                             \
            call.run([=, &of_x, &of_y] {                                                             \
                if (first >= 0) rl::by_squares(of_x, first, x, y, o, [](T v, T w) { return EXPR; }); \
                else rl::by_squares(of_y, second, y, x, o, [](T w, T v) { return EXPR; });           \
            });                                                                                      \
            return 1;                                                                                \
        }                                                                                            \
        if (!rl::axes_of<T>(x_, y_, o_, axes)) return 0;                                             \
        if (!axes.inner(1, 1) && !axes.inner(1, 0) && !axes.inner(0, 1)) return 0;                   \
        call.run([=, &axes] { rl::across(axes, x, y, o, [](T v, T w) { return EXPR; }); });          \
        return 1;                                                                                    \
    }
#define EACH(T, S)                      \
    ACROSS(T, S, add, v + w)            \
    ACROSS(T, S, subtract, v - w)       \
    ACROSS(T, S, multiply, v * w)       \
    ACROSS(T, S, divide, v / w)         \
    ACROSS(T, S, maximum, (v > w) | (v != v) ? v : w) \
    ACROSS(T, S, minimum, (v < w) | (v != v) ? v : w)
RL_BOTH(EACH)
