// Resizing: linear maps of a few taps along one to three dimensions that are neighbours.  x is (outer, D, H, W, inner).
//
// Outputs are made a row at a time, without memory of an image's size between the dimensions: slices and then rows are summed as they
// lie, and of the one row that is made so each vector of outputs takes its elements.  A product is rounded before it is added, and a
// sum goes tap by tap, as in NumPy.
#include <algorithm>
#include <optional>
#include <type_traits>
#if defined(__AVX512F__)
#include <immintrin.h>
#endif

#include "memory.h"
#include "padded.h"
#include "sixteen.h"

namespace rl {
namespace {

constexpr long kFew = 16;  // neighbours of an element, a vector at least, from which on vectors are made of these alone
constexpr long kLong = 8;  // elements of windows, on average, from which on each is summed by itself

// A product before it is added: compilers would add one that is not rounded.
template <class T> RL_INLINE V<T> rounded(V<T> product) {
#if defined(__AVX512F__)
    asm("" : "+v"(product));
#elif defined(__x86_64__)
    asm("" : "+x"(product));
#elif defined(__aarch64__)
    asm("" : "+w"(product));
#endif
    return product;
}

// o[i] = f(o[i], x[i], y[i]), by vectors.
template <class T, class F> RL_INLINE void each(const T *x, const T *y, T *o, long n, F f) {
    constexpr long L = kLanes<T>;
    long i = 0;
    for (; i + L <= n; i += L) *reinterpret_cast<V<T> *>(o + i) = f(load(o + i), load(x + i), load(y + i));
    if (i == n) return;
    T a[L] = {}, b[L] = {}, c[L] = {};
    std::memcpy(a, o + i, sizeof(T) * (n - i));
    std::memcpy(b, x + i, sizeof(T) * (n - i));
    std::memcpy(c, y + i, sizeof(T) * (n - i));
    *reinterpret_cast<V<T> *>(a) = f(load(a), load(b), load(c));
    std::memcpy(o + i, a, sizeof(T) * (n - i));
}

// A dimension: output j is the sum over k in [starts[j], starts[j + 1]) of what lies at index[k], times weights[k] where there are some,
// divided by divisors[j] where there are some, which makes 0 of -0.  Without `starts` it stays as it is.
template <class T> struct Axis {
    long in = 1, out = 1, taps = 0;
    const int64_t *starts = nullptr, *index = nullptr;
    const T *weights = nullptr, *divisors = nullptr;

    Axis(Call &call, const Array *starts_, const Array *index_, const Array *weights_, const Array *divisors_, long size) : in(size), out(size) {
        if (Call::none(starts_)) return;
        out = std::max(call.size("starts", starts_) - 1, 0L), taps = call.size("index", index_);
        starts = call.in<int64_t>("starts", starts_, out + 1), index = call.in<int64_t>("index", index_, taps);
        weights = call.maybe_in<T>("weights", weights_, taps), divisors = call.maybe_in<T>("divisors", divisors_, out);
        call.expect(starts && index && fits(), "taps: places inside of the input");
    }
    bool fits() const {
        bool fine = in >= 0 && in < 1L << 30 && out < 1L << 30 && starts[0] == 0 && starts[out] == taps;
        for (long j = 0; j < out; ++j) fine &= starts[j] <= starts[j + 1];
        for (long k = 0; fine && k < taps; ++k) fine &= index[k] >= 0 && index[k] < in;
        return fine;
    }
    long count(long j) const { return starts[j + 1] - starts[j]; }
    bool moves(long j) const { return !weights && !divisors && count(j) == 1; }
    // Whether all outputs are plain sums over many neighbours.
    bool runs() const {
        bool fine = !weights && taps >= kLong * out;
        for (long j = 0; fine && j < out; ++j)
            for (long k = starts[j] + 1; k < starts[j + 1]; ++k) fine &= index[k] == index[k - 1] + 1;
        return fine;
    }
};

// Output j of a dimension whose elements are `n` neighbours each, `pitch` apart.
template <class S, class T> void sum(const Axis<T> &axis, long j, const S *from, long pitch, T *to, long n) {
    const long first = axis.starts[j], count = axis.count(j);
    if (!count) std::fill(to, to + n, T(0));
    Part<S, kAtOnce> one, two;
    for (long at = 0; count && at < n; at += kAtOnce) {  // in the first-level cache
        const long some = std::min(n - at, kAtOnce);
        T *o = to + at;
        const auto tap = [&](Part<S, kAtOnce> &part, long t) { return part(from + axis.index[first + t] * pitch + at, some); };
        for (long t = 0; t < count; ++t) {
            const T *x = tap(one, t), w = axis.weights ? axis.weights[first + t] : T(1);
            if (!t && count == 1 && !axis.weights) {
                std::copy(x, x + some, o);
            } else if (!t && count == 1) {
                each(x, x, o, some, [=](V<T>, V<T> a, V<T>) { return a * w; });
            } else if (!t) {
                const T *y = tap(two, ++t), v = axis.weights ? axis.weights[first + 1] : T(1);
                if (axis.weights) each(x, y, o, some, [=](V<T>, V<T> a, V<T> b) { return rounded<T>(a * w) + rounded<T>(b * v); });
                else each(x, y, o, some, [](V<T>, V<T> a, V<T> b) { return a + b; });
            } else if (axis.weights) {
                each(x, x, o, some, [=](V<T> sum, V<T> a, V<T>) { return sum + rounded<T>(a * w); });
            } else {
                each(x, x, o, some, [](V<T> sum, V<T> a, V<T>) { return sum + a; });
            }
        }
        const T by = axis.divisors ? axis.divisors[j] : T(1);
        if (axis.divisors) each(o, o, o, some, [=](V<T> sum, V<T>, V<T>) { return (sum + T(0)) / by; });
    }
}

// What a vector of outputs takes of a row for one tap: the places from `base` on, and their weights.
template <class T> struct Taken {
    static constexpr long L = kLanes<T>;
    typedef std::conditional_t<sizeof(T) == 4, int32_t, int64_t> Place;
    typedef Place Places __attribute__((vector_size(kBytes), aligned(sizeof(T)), may_alias));
    Place at[L], in[L];  // in: -1 where there is such a tap, else 0
    T weight[L];
    long base;
    bool near, every;  // whether places lie within two vectors; whether there is such a tap of all

    RL_MEMBER V<T> from(const T *row) const {
        const T *x = row + base;
#if defined(__AVX512F__)
        if constexpr (sizeof(T) == 4) {
            const __m512i places = _mm512_loadu_si512(at);
            return near ? (V<T>)_mm512_permutex2var_ps(_mm512_loadu_ps(x), places, _mm512_loadu_ps(x + L)) : (V<T>)_mm512_i32gather_ps(places, x, 4);
        } else {
            const __m512i places = _mm512_loadu_si512(at);
            return near ? (V<T>)_mm512_permutex2var_pd(_mm512_loadu_pd(x), places, _mm512_loadu_pd(x + L)) : (V<T>)_mm512_i64gather_pd(places, x, 8);
        }
#else
        T found[L];
        for (long l = 0; l < L; ++l) found[l] = x[at[l]];
        return load(found);
#endif
    }
};

// How rows become rows of outputs, of elements that are `few` neighbours.
template <class T> struct Across {
    static constexpr long L = kLanes<T>;
    const Axis<T> &axis;
    const long few, in, out, blocks;  // elements of a row, of one that is made, vectors of this
    Scratch<long> first;              // of the taps of each vector
    Scratch<Taken<T>> taken;

    Across(const Axis<T> &along, long neighbours)
        : axis(along), few(neighbours), in(along.in * few), out(along.out * few), blocks(ceil_div(out, L)), first(blocks + 1), taken(counted()) {
        for (long b = 0; b < blocks; ++b)
            for (long t = 0; t < first.get()[b + 1] - first.get()[b]; ++t) place(b, t, taken.get()[first.get()[b] + t]);
    }
    static long room(long in) { return std::max(in, 2 * L); }  // elements of a row that is read

    long counted() {
        long *at = first.get();
        at[0] = 0;
        for (long b = 0; b < blocks; ++b) {
            long most = 0;
            for (long j = b * L; j < std::min(out, (b + 1) * L); ++j) most = std::max(most, axis.count(j / few));
            at[b + 1] = at[b] + most;
        }
        return at[blocks];
    }
    void place(long block, long t, Taken<T> &to) {
        const long j = block * L;
        long low = in, high = 0, places[L];
        to.every = true;
        for (long l = 0; l < L; ++l) {
            const bool there = j + l < out && axis.count((j + l) / few) > t;
            const long k = there ? axis.starts[(j + l) / few] + t : 0;
            places[l] = there ? axis.index[k] * few + (j + l) % few : -1;
            to.in[l] = there ? -1 : 0, to.weight[l] = there && axis.weights ? axis.weights[k] : T(1);
            to.every &= there || j + l >= out;
            if (there) low = std::min(low, places[l]), high = std::max(high, places[l]);
        }
        to.base = std::min(low, room(in) - 2 * L), to.near = high - to.base < 2 * L;
        for (long l = 0; l < L; ++l) to.at[l] = places[l] < 0 ? 0 : (typename Taken<T>::Place)(places[l] - to.base);
    }
    template <bool kWeighted> RL_MEMBER V<T> vector(const T *row, const Taken<T> *each, const Taken<T> *end) const {
        V<T> total = {};
        for (const Taken<T> *one = each; one < end; ++one) {
            V<T> value = one->from(row);
            if (kWeighted) value = rounded<T>(value * load(one->weight));
            V<T> more = one == each ? value : total + value;
            if (!one->every) more = *reinterpret_cast<const typename Taken<T>::Places *>(one->in) ? more : total;
            total = more;
        }
        return total;
    }
    template <bool kWeighted> void vectors(const T *row, T *to) const {
        const Taken<T> *all = taken.get();
        const long *at = first.get();
        for (long b = 0; b < out / L; ++b) *reinterpret_cast<V<T> *>(to + b * L) = vector<kWeighted>(row, all + at[b], all + at[b + 1]);
        if (out % L == 0) return;
        V<T> made = vector<kWeighted>(row, all + at[blocks - 1], all + at[blocks]);
        std::memcpy(to + out / L * L, &made, sizeof(T) * (out % L));
    }
    void run(const T *row, T *to) const {
        if (axis.weights) vectors<true>(row, to);
        else vectors<false>(row, to);
        if (axis.divisors)
            for (long j = 0; j < out; ++j) to[j] = (to[j] + T(0)) / axis.divisors[j / few];
    }
};

template <class T> void sum_runs(const Axis<T> &axis, const T *row, T *to) {
    for (long j = 0; j < axis.out; ++j) {
        const T *x = row + axis.index[axis.starts[j]];
        const long n = axis.count(j);
        T total = 0;
#pragma omp simd reduction(+ : total)
        for (long i = 0; i < n; ++i) total += x[i];
        to[j] = axis.divisors ? total / axis.divisors[j] : total;
    }
}

// Output j of elements that are `n` neighbours each, more than a vector: all its taps for one vector after the other.
template <bool kWeighted, class T> RL_INLINE void wide_vectors(const Axis<T> &axis, long j, const T *from, long n, T *to) {
    constexpr long L = kLanes<T>;
    const long first = axis.starts[j], count = axis.count(j);
    const auto vector = [&](long i) {
        V<T> total = {};
        for (long t = 0; t < count; ++t) {
            V<T> value = load(from + axis.index[first + t] * n + i);
            if (kWeighted) value = rounded<T>(value * axis.weights[first + t]);
            total = t ? total + value : value;
        }
        return axis.divisors ? (total + T(0)) / axis.divisors[j] : total;
    };
    for (long i = 0; i + L <= n; i += L) *reinterpret_cast<V<T> *>(to + i) = vector(i);
    if (n % L) *reinterpret_cast<V<T> *>(to + n - L) = vector(n - L);  // some of them once more
}

template <class T> void wide(const Axis<T> &axis, long j, const T *from, long n, T *to) {
    if (axis.weights) wide_vectors<true>(axis, j, from, n, to);
    else wide_vectors<false>(axis, j, from, n, to);
}

template <class S> class Resized {
    typedef WideOf<S> T;
    const Axis<T> &depth, &height, &width;
    const long inner, row, area;  // elements of a row and of a slice
    const bool runs;
    std::optional<Across<T>> across;

    // A row of a slice, or what the dimension of rows makes of some: where it lies, or in `to`.
    template <class U> const T *one_row(const U *slice, long y, T *to) const {
        const bool moves = !height.starts || height.moves(y);
        if (!moves) {
            sum(height, y, slice, row, to, row);
            return to;
        }
        const U *from = slice + (height.starts ? height.index[height.starts[y]] : y) * row;
        if constexpr (std::is_same<U, T>::value) {
            if (!across || row == Across<T>::room(row)) return from;
            std::copy(from, from + row, to);
        } else {
            widen(from, to, row);
        }
        return to;
    }
    void outputs(const T *from, T *to) const {
        if (across) across->run(from, to);
        else if (runs) sum_runs(width, from, to);
        else
            for (long j = 0; j < width.out; ++j) wide(width, j, from, inner, to + j * inner);
    }

  public:
    Resized(const Axis<T> &d, const Axis<T> &h, const Axis<T> &w, long n)
        : depth(d), height(h), width(w), inner(n), row(w.in * n), area(h.in * row), runs(n == 1 && w.runs()) {
        if (!runs && n < kFew) across.emplace(w, n);
    }
    long made() const { return width.out * inner; }
    long work() const {  // of a row of outputs
        const auto taps = [](const Axis<T> &axis) { return axis.starts && axis.out ? axis.taps / axis.out : 0; };
        return made() * taps(width) + row * taps(height) + area * taps(depth) / std::max(height.out, 1L);
    }
    void rows(const S *x, S *o, long begin, long end) const {
        Scratch<T> slice(depth.starts ? area : 0, false), kept(Across<T>::room(row), false), wide(kPlain<S> ? 0 : made(), false);
        long current = -1;
        for (long r = begin; r < end; ++r) {
            const long y = r % height.out, z = r / height.out, image = z / depth.out;
            const S *from = x + (image * depth.in + (depth.starts ? 0 : z % depth.out)) * area;
            if (depth.starts && z != current) sum(depth, z % depth.out, from, area, slice.get(), area), current = z;
            const T *given = depth.starts ? one_row(slice.get(), y, kept.get()) : one_row(from, y, kept.get());
            if constexpr (kPlain<S>) {
                outputs(given, o + r * made());
            } else {
                outputs(given, wide.get());
                narrow(wide.get(), o + r * made(), made());
            }
        }
    }
};

template <class S>
void resample_all(const Array *x_, Array *o_, const Array *const (&taps)[12], long outer, const long (&sizes)[3], long inner) {
    typedef WideOf<S> T;
    Call call("resample");
    const Axis<T> d(call, taps[0], taps[1], taps[2], taps[3], sizes[0]), h(call, taps[4], taps[5], taps[6], taps[7], sizes[1]),
        w(call, taps[8], taps[9], taps[10], taps[11], sizes[2]);
    call.expect(w.starts && inner > 0 && elements(w.in, inner) < 1L << 30, "taps of the last dimension");
    const S *x = call.in<S>("input", x_, elements(outer, d.in, h.in), w.in, inner);
    S *o = call.out<S>("out", o_, elements(outer, d.out, h.out), w.out, inner);
    call.run([=, &d, &h, &w] {
        const Resized<S> made(d, h, w, inner);
        parallel_for(outer * d.out * h.out, kGrain / (made.work() + 1) + 1, [=, &made](long begin, long end) { made.rows(x, o, begin, end); });
    });
}

// Elements moved, of any kind, from places of each dimension; without them a dimension stays as it is.
struct Picked {
    long in, out;
    const int64_t *index = nullptr;

    Picked(Call &call, const Array *index_, long size) : in(size), out(size) {
        if (Call::none(index_)) return;
        out = call.size("places", index_), index = call.in<int64_t>("places", index_, out);
        bool fine = index && in < 1L << 30;
        for (long j = 0; fine && j < out; ++j) fine &= index[j] >= 0 && index[j] < in;
        call.expect(fine, "places inside of the input");
    }
    long operator[](long j) const { return index ? index[j] : j; }

    // The first of the longest run of neighbours that are taken in their order, and how many they are.
    std::pair<long, long> run() const {
        long first = 0, most = 0, begin = 0;
        for (long j = 1; j <= out; ++j) {
            if (j < out && index[j] == index[j - 1] + 1) continue;
            if (j - begin > most) first = begin, most = j - begin;
            begin = j;
        }
        return {first, most};
    }
};

// run: of `width`
template <class U> void pick_row(const Picked &width, std::pair<long, long> run, long inner, const U *from, U *to) {
    if (!width.index || inner >= kFew) {
        for (long j = 0; j < width.out; ++j) std::memcpy(to + j * inner, from + width[j] * inner, inner * sizeof(U));
    } else if (inner == 1) {
        for (long j = 0; j < run.first; ++j) to[j] = from[width.index[j]];
        if (run.second) std::memcpy(to + run.first, from + width.index[run.first], run.second * sizeof(U));
        for (long j = run.first + run.second; j < width.out; ++j) to[j] = from[width.index[j]];
    } else {
        for (long j = 0; j < width.out; ++j)
            for (long c = 0; c < inner; ++c) to[j * inner + c] = from[width.index[j] * inner + c];
    }
}

template <class U> void pick(const U *x, U *o, const Picked &d, const Picked &h, const Picked &w, long outer, long inner) {
    const long row = w.in * inner, made = w.out * inner;
    const auto run = w.index ? w.run() : std::pair<long, long>(0, 0);
    parallel_for(outer * d.out * h.out, row_grain(made), [=, &d, &h, &w](long begin, long end) {
        const U *before = nullptr;
        for (long r = begin; r < end; ++r) {
            const long y = r % h.out, z = r / h.out;
            const U *from = x + ((z / d.out * d.in + d[z % d.out]) * h.in + h[y]) * row;
            U *to = o + r * made;
            if (from == before) std::memcpy(to, to - made, made * sizeof(U));
            else pick_row(w, run, inner, from, to);
            before = from;
        }
    });
}

template <class U>
void pick_all(Call &call, const Array *x_, Array *o_, const Picked &d, const Picked &h, const Picked &w, long outer, long inner) {
    const U *x = call.in<U>("input", x_, elements(outer, d.in, h.in), w.in, inner);
    U *o = call.out<U>("out", o_, elements(outer, d.out, h.out), w.out, inner);
    call.run([=, &d, &h, &w] { pick(x, o, d, h, w, outer, inner); });
}

}  // namespace
}  // namespace rl

#define ALL(T, S)                                                                                                                \
    RL_EXPORT void rl_resample_##S(Array *x, Array *o, Array *d, Array *di, Array *dw, Array *dn, Array *h, Array *hi, Array *hw, \
                                   Array *hn, Array *w, Array *wi, Array *ww, Array *wn, long outer, long depth, long height,    \
                                   long width, long inner) {                                                                     \
        rl::resample_all<T>(x, o, {d, di, dw, dn, h, hi, hw, hn, w, wi, ww, wn}, outer, {depth, height, width}, inner);          \
    }
RL_ALL(ALL)

// Of unsigned numbers as wide as the elements.
RL_EXPORT void rl_pick_bytes(Array *x, Array *o, Array *d_, Array *h_, Array *w_, long outer, long depth, long height, long width, long inner) {
    rl::Call call("pick");
    if (!call.is_array("out", o)) return;
    const rl::Picked d(call, d_, depth), h(call, h_, height), w(call, w_, width);
    switch (o->descr->itemsize) {
        case 1: return rl::pick_all<uint8_t>(call, x, o, d, h, w, outer, inner);
        case 2: return rl::pick_all<uint16_t>(call, x, o, d, h, w, outer, inner);
        case 4: return rl::pick_all<uint32_t>(call, x, o, d, h, w, outer, inner);
        default: return rl::pick_all<uint64_t>(call, x, o, d, h, w, outer, inner);
    }
}
