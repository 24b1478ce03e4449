// Where the greatest element of each window is, of windows that begin and end anywhere: adaptive and fractional pools.
#include <algorithm>
#include <type_traits>

#include "memory.h"
#include "sixteen.h"

namespace rl {
namespace {

// Where the windows along a dimension begin and end, (P, out) each: P is 1, or as many as there are planes.
struct Bounds {
    long size, out, planes;
    const int64_t *starts, *ends;

    Bounds(Call &call, const Array *starts_, const Array *ends_, long of, long within)
        : size(within), out(std::max(call.size("starts", starts_, 1), 0L)), planes(call.size("starts", starts_, 0)) {
        starts = call.in<int64_t>("starts", starts_, planes, out), ends = call.in<int64_t>("ends", ends_, planes, out);
        bool fine = starts && ends && (planes == 1 || planes == of);
        for (long i = 0; fine && i < planes * out; ++i) fine &= starts[i] >= 0 && starts[i] < ends[i] && ends[i] <= size;
        call.expect(fine, "windows inside of the input");
    }
    long place(long plane, long i) const { return (planes == 1 ? 0 : plane) * out + i; }
};

// The greatest element of each column of a window as wide as a row, and in which row it is: the first of equal ones, the last NaN.
template <class S> struct Columns {
    typedef WideOf<S> T;
    typedef std::conditional_t<sizeof(T) == 4, int32_t, int64_t> Row;  // as wide as numbers: vectors of both
    const long width;
    Scratch<T> best, wide;
    Scratch<Row> rows;

    explicit Columns(long w) : width(w), best(w, false), wide(kPlain<S> ? 0 : w, false), rows(w, false) {}

    const T *numbers(const S *x) const {
        if constexpr (kPlain<S>) return x;
        else return widen(x, wide.get(), width), wide.get();
    }
    void begin(const S *x, Row row) const {
        const T *from = numbers(x);
        std::copy(from, from + width, best.get());
        std::fill(rows.get(), rows.get() + width, row);
    }
    void add(const S *x, Row row) const {
        const T *from = numbers(x);
        T *most = best.get();
        Row *which = rows.get();
#pragma omp simd
        for (long i = 0; i < width; ++i) {
            const T value = from[i], before = most[i];
            const bool better = (value > before) | (value != value);
            most[i] = better ? value : before, which[i] = better ? row : which[i];
        }
    }
    // The flat place of the greatest of columns [from, end).
    long among(long from, long end) const {
        T most = best.get()[from];
        Row row = rows.get()[from];
        long column = from;
        for (long i = from + 1; i < end; ++i) {
            const T value = best.get()[i];
            if (value < most) continue;
            const Row other = rows.get()[i];
            const bool nan = value != value, had = most != most;
            if (nan ? had && other < row : had || (value == most && other >= row)) continue;  // not the last NaN, or not greater
            most = value, row = other, column = i;
        }
        return row * width + column;
    }
};

template <class S> void maxima(const S *x, int64_t *o, const Bounds &d, const Bounds &h, const Bounds &w, long planes) {
    const long lines = d.out * h.out;  // of outputs
    parallel_for(planes * lines, kGrain / (d.size * h.size * w.size / (lines + 1) + w.out + 1) + 1, [=, &d, &h, &w](long begin, long end) {
        const Columns<S> columns(w.size);
        for (long r = begin; r < end; ++r) {
            const long p = r / lines, a = d.place(p, r % lines / h.out), b = h.place(p, r % h.out);
            const S *plane = x + p * d.size * h.size * w.size;
            for (long z = d.starts[a]; z < d.ends[a]; ++z)
                for (long y = h.starts[b]; y < h.ends[b]; ++y) {
                    const long row = z * h.size + y;
                    if (z == d.starts[a] && y == h.starts[b]) columns.begin(plane + row * w.size, row);
                    else columns.add(plane + row * w.size, row);
                }
            for (long c = 0; c < w.out; ++c) o[r * w.out + c] = columns.among(w.starts[w.place(p, c)], w.ends[w.place(p, c)]);
        }
    });
}

template <class S>
void maxima_all(const Array *x_, Array *o_, const Array *const (&bounds)[6], long planes, const long (&sizes)[3]) {
    Call call("window_maxima");
    const Bounds d(call, bounds[0], bounds[1], planes, sizes[0]), h(call, bounds[2], bounds[3], planes, sizes[1]),
        w(call, bounds[4], bounds[5], planes, sizes[2]);
    call.expect(elements(d.size, h.size) < 1L << 31, "rows that can be counted");
    const S *x = call.in<S>("input", x_, planes, d.size, h.size, w.size);
    int64_t *o = call.out<int64_t>("places", o_, planes, d.out, h.out, w.out);
    call.run([=, &d, &h, &w] { maxima(x, o, d, h, w, planes); });
}

}  // namespace
}  // namespace rl

#define ALL(T, S)                                                                                                                   \
    RL_EXPORT void rl_window_maxima_##S(Array *x, Array *o, Array *d, Array *d_end, Array *h, Array *h_end, Array *w, Array *w_end, \
                                        long planes, long depth, long height, long width) {                                        \
        rl::maxima_all<T>(x, o, {d, d_end, h, h_end, w, w_end}, planes, {depth, height, width});                                   \
    }
RL_ALL(ALL)
