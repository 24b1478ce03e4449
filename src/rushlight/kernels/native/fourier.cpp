// Discrete Fourier transforms of lines along one dimension: (outer, n, inner).
//
// A vector holds the same point of as many lines, so that no step of a transform looks across lanes, and lines give the same bits
// wherever they lie.  Passes of small factors, each from one buffer to another in the order in which the next reads (Stockham's
// autosort; Temperton, "Self-sorting mixed-radix fast Fourier transforms", 1983).  Real lines of even length are complex ones of half.
#include <utility>

#include "gemm.h"

namespace rl {
namespace {

constexpr long kLongest = 4096;   // points whose two buffers stay in the second-level cache
constexpr int kLargestFactor = 31;
enum Kind { kForward, kBackward, kHalf, kWhole };  // complex twice; real to the half of its transform; that half to real

// Radix of the next pass over n points; larger than kLargestFactor where there is none.
inline long factor(long n) {
    if (n % 4 == 0) return 4;
    long p = 2;
    while (p <= kLargestFactor && n % p) ++p;
    return p;
}

template <class T> struct Point {
    typedef typename Vector<T>::type V;
    V re, im;
    RL_MEMBER Point operator+(const Point &o) const { return {re + o.re, im + o.im}; }
    RL_MEMBER Point operator-(const Point &o) const { return {re - o.re, im - o.im}; }
    RL_MEMBER Point times(T c, T s) const { return {re * c - im * s, re * s + im * c}; }
    RL_MEMBER Point conj() const { return {re, -im}; }
    RL_MEMBER Point turned() const { return {im, -re}; }  // times -i
};

#if defined(__has_builtin)
#if __has_builtin(__builtin_shufflevector)
#define RL_SHUFFLES
#endif
#endif
#ifdef RL_SHUFFLES
// Of two rows of a matrix that is transposed: what lies S off the diagonal changes places.
template <int S, class V, size_t... i> RL_INLINE void exchange(V &a, V &b, std::index_sequence<i...>) {
    constexpr int L = sizeof...(i);
    const V first = __builtin_shufflevector(a, b, ((i & S) ? L + i - S : i)...);
    b = __builtin_shufflevector(a, b, ((i & S) ? L + i : i + S)...);
    a = first;
}
template <int S, class V, int L> RL_INLINE void transpose(V (&v)[L]) {
#pragma GCC unroll 16
    for (int i = 0; i < L; ++i)
        if (!(i & S)) exchange<S>(v[i], v[i + S], std::make_index_sequence<L>());
    if constexpr (2 * S < L) transpose<2 * S>(v);
}
#endif

// The transform of R points (of p where R is 0), in place.  w: exp(-2 pi i / p) to the power j at 2 * unit * j.
template <class T, int R> RL_INLINE void butterfly(Point<T> *x, long p, const T *w, long unit) {
    typedef Point<T> P;
    if constexpr (R == 2) {
        const P a = x[0];
        x[0] = a + x[1], x[1] = a - x[1];
    } else if constexpr (R == 4) {
        const P a = x[0] + x[2], b = x[0] - x[2], c = x[1] + x[3], d = (x[1] - x[3]).turned();
        x[0] = a + c, x[1] = b + d, x[2] = a - c, x[3] = b - d;
    } else {
        constexpr int kMost = (R ? R : kLargestFactor) / 2;
        const int count = R ? R : (int)p, pairs = count / 2;
        P sum[kMost], apart[kMost];
        const P first = x[0];
#pragma GCC unroll 8
        for (int b = 0; b < (R ? R / 2 : pairs); ++b) {
            sum[b] = x[b + 1] + x[count - 1 - b], apart[b] = x[b + 1] - x[count - 1 - b];
            x[0] = x[0] + sum[b];
        }
#pragma GCC unroll 8
        for (int j = 1; j <= (R ? R / 2 : pairs); ++j) {
            P even = first, odd = {};
#pragma GCC unroll 8
            for (int b = 0; b < (R ? R / 2 : pairs); ++b) {
                const T *root = w + 2 * unit * (j * (b + 1) % count);
                even.re += root[0] * sum[b].re, even.im += root[0] * sum[b].im;
                odd.re -= root[1] * apart[b].im, odd.im += root[1] * apart[b].re;
            }
            x[j] = even + odd, x[count - j] = even - odd;
        }
    }
}

// One pass over n points, `done` the product of the factors before.  w: exp(-2 pi i / n) to the power k at 2 * unit * k.
template <class T, int R> static __attribute__((noinline)) void pass(const Point<T> *from, Point<T> *to, long n, long done, long p, const T *w, long unit) {
    const long radix = R ? R : p, left = n / (done * radix);
    Point<T> x[R ? R : kLargestFactor];
    for (long k = 0; k < done; ++k)
        for (long i = 0; i < left; ++i) {
#pragma GCC unroll 8
            for (long j = 0; j < (R ? R : radix); ++j) x[j] = from[i + left * (j + radix * k)];
            butterfly<T, R>(x, radix, w, unit * (n / radix));
            to[i + left * k] = x[0];
#pragma GCC unroll 8
            for (long j = 1; j < (R ? R : radix); ++j) {
                const T *root = w + 2 * unit * (j * done * i);
                to[i + left * (k + done * j)] = i ? x[j].times(root[0], root[1]) : x[j];
            }
        }
}

// The transform of n points; returns where it lies, `a` or `b`.
template <class T> Point<T> *transform(Point<T> *a, Point<T> *b, long n, const T *w, long unit) {
    for (long done = 1; done < n; std::swap(a, b)) {
        const long p = factor(n / done);
        switch (p) {
        case 2: pass<T, 2>(a, b, n, done, p, w, unit); break;
        case 3: pass<T, 3>(a, b, n, done, p, w, unit); break;
        case 4: pass<T, 4>(a, b, n, done, p, w, unit); break;
        case 5: pass<T, 5>(a, b, n, done, p, w, unit); break;
        default: pass<T, 0>(a, b, n, done, p, w, unit);
        }
        done *= p;
    }
    return a;
}

// Where the lines of a group begin, in numbers; as many lanes as a vector has, those past `count` the last line's.
template <class T> struct Lines {
    static constexpr int L = kLanes<T>;
    typedef Point<T> P;
    typedef typename Vector<T>::type V;
    long at[L];
    int count;
    bool near;  // all lanes side by side

    // unit: numbers of an element, points: elements of a line
    Lines(long first, long lines, long inner, long points, long unit) : count((int)std::min<long>(L, lines - first)), near(count == L) {
        for (int l = 0; l < L; ++l) {
            const long line = first + std::min(l, count - 1);
            at[l] = (line / inner * points * inner + line % inner) * unit;
            near = near && at[l] == at[0] + l * unit;
        }
    }

    // Points whose numbers lie side by side in a line, through registers; how many that were.
    long read_gapless(const T *x, T *to, long points, bool turned) const {
        long k = 0;
#ifdef RL_SHUFFLES
        for (V v[L]; k + L / 2 <= points; k += L / 2, to += L * L) {
#pragma GCC unroll 16
            for (int l = 0; l < L; ++l) v[l] = *reinterpret_cast<const V *>(x + at[l] + 2 * k);
            transpose<1>(v);
#pragma GCC unroll 16
            for (int l = 0; l < L; ++l) *reinterpret_cast<V *>(to + (l ^ turned) * L) = v[l];
        }
#endif
        return k;
    }
    long write_gapless(const T *from, T *y, long points, bool turned, T scale) const {
        long k = 0;
#ifdef RL_SHUFFLES
        for (V v[L]; k + L / 2 <= points; k += L / 2, from += L * L) {
#pragma GCC unroll 16
            for (int l = 0; l < L; ++l) v[l] = *reinterpret_cast<const V *>(from + (l ^ turned) * L) * scale;
            transpose<1>(v);
#pragma GCC unroll 16
            for (int l = 0; l < L; ++l)
                if (l < count) *reinterpret_cast<V *>(y + at[l] + 2 * k) = v[l];
        }
#endif
        return k;
    }

    // `count` points, one every `step` numbers, their second part `part` behind the first; `turned`: the parts change places.
    template <int unit> void read(const T *x, P *points, long count, long step, long part, bool turned) const {
        T *to = reinterpret_cast<T *>(points), *first = to + (turned ? L : 0), *second = to + (turned ? 0 : L);
        const long begin = step == 2 && part == 1 && !near ? read_gapless(x, to, count, turned) : 0;
        if (near)
            for (long k = 0; k < count; ++k) {
                const T *from = x + at[0] + k * step;
#pragma omp simd
                for (int l = 0; l < L; ++l) first[2 * k * L + l] = from[l * unit], second[2 * k * L + l] = from[l * unit + part];
            }
        else
            for (int l = 0; l < L; ++l) {
                const T *from = x + at[l];
                for (long k = begin; k < count; ++k) first[2 * k * L + l] = from[k * step], second[2 * k * L + l] = from[k * step + part];
            }
    }
    // The same backwards, times `scale`; `both`: not the first parts alone.
    template <int unit, bool both> void write(const P *points, T *y, long count, long step, long part, bool turned, T scale) const {
        const T *from = reinterpret_cast<const T *>(points), *first = from + (turned ? L : 0), *second = from + (turned ? 0 : L);
        const long begin = step == 2 && part == 1 && !near ? write_gapless(from, y, count, turned, scale) : 0;
        if (near)
            for (long k = 0; k < count; ++k) {
                T *to = y + at[0] + k * step;
#pragma omp simd
                for (int l = 0; l < L; ++l) {
                    to[l * unit] = first[2 * k * L + l] * scale;
                    if (both) to[l * unit + part] = second[2 * k * L + l] * scale;
                }
            }
        else
            for (int l = 0; l < this->count; ++l) {
                T *to = y + at[l];
                for (long k = begin; k < count; ++k) {
                    to[k * step] = first[2 * k * L + l] * scale;
                    if (both) to[k * step + part] = second[2 * k * L + l] * scale;
                }
            }
    }
};

template <class T> struct Fourier {
    typedef Point<T> P;
    const T *x, *w;  // w: all n roots
    T *y;
    long outer, n, inner;
    int kind;
    T scale;

    static long half(long n) { return n / 2 + 1; }
    bool folded() const { return kind >= kHalf && n % 2 == 0; }  // two real numbers a point
    long points() const { return folded() ? n / 2 : n; }

    // To `to`, by way of `by`.
    void load(long first, P *to, P *by) const {
        const bool real = kind == kHalf;
        const Lines<T> from(first, outer * inner, inner, kind == kWhole ? half(n) : n, real ? 1 : 2);
        if (real) {
            from.template read<1>(x, to, points(), folded() ? 2 * inner : inner, folded() ? inner : 0, false);
            if (!folded())
                for (long k = 0; k < n; ++k) to[k].im = typename P::V{};
        } else {
            from.template read<2>(x, kind == kWhole ? by : to, kind == kWhole ? half(n) : n, 2 * inner, 1, kind == kBackward);
            if (kind == kWhole) unfold(by, to);
        }
    }

    // All points, or those of the line folded, of which `from` has the first half; with real and imaginary parts changed, for the
    // opposite sign.  What is imaginary at 0 and at n / 2 does not count.
    void unfold(P *from, P *to) const {
        const long h = n / 2;
        from[0].im = typename P::V{};
        if (!folded()) {
            to[0] = {from[0].im, from[0].re};
            for (long k = 1; k <= h; ++k) to[k] = {from[k].im, from[k].re}, to[n - k] = {-from[k].im, from[k].re};
            return;
        }
        from[h].im = typename P::V{};
        for (long k = 0; k < h; ++k) {
            const P other = from[h - k].conj(), even = from[k] + other, odd = (from[k] - other).times(w[2 * k], -w[2 * k + 1]);
            to[k] = {even.im + odd.re, even.re - odd.im};
        }
    }

    // From `from`, by way of `by`.
    void store(long first, const P *from, P *by) const {
        const Lines<T> to(first, outer * inner, inner, kind == kHalf ? half(n) : n, kind == kWhole ? 1 : 2);
        if (kind == kWhole) {
            if (folded()) to.template write<1, true>(from, y, points(), 2 * inner, inner, true, scale);
            else to.template write<1, false>(from, y, n, inner, 0, true, scale);
        } else {
            const bool apart = kind == kHalf && folded();
            if (apart) take_apart(from, by);
            to.template write<2, true>(apart ? by : from, y, kind == kHalf ? half(n) : n, 2 * inner, 1, kind == kBackward, scale);
        }
    }
    // What belongs to the even and to the odd numbers of a folded line.
    void take_apart(const P *from, P *to) const {
        const long h = n / 2;
        for (long k = 0; k <= h; ++k) {
            const P one = from[k == h ? 0 : k], other = from[k ? h - k : 0].conj();
            const P sum = one + other + (one - other).turned().times(w[2 * k], w[2 * k + 1]);
            to[k] = {sum.re * T(0.5), sum.im * T(0.5)};
        }
    }

    void run() const {
        const long groups = ceil_div(outer * inner, kLanes<T>), room = (points() + 1) * kLanes<T> * 2;
        parallel_for(groups, 1 + kGrain / (n * kLanes<T>), [=, this_ = *this](long begin, long end) {
            P *a = reinterpret_cast<P *>(scratch<T, 0>(room)), *b = reinterpret_cast<P *>(scratch<T, 1>(room));
            for (long g = begin; g < end; ++g) {
                this_.load(g * kLanes<T>, a, b);
                P *found = transform(a, b, this_.points(), this_.w, this_.folded() ? 2 : 1);
                this_.store(g * kLanes<T>, found, found == a ? b : a);
            }
        });
    }
};

inline bool smooth(long n) {
    for (long p; n > 1; n /= p)
        if ((p = factor(n)) > kLargestFactor) return false;
    return true;
}

}  // namespace
}  // namespace rl

// x, the n roots, y, which may be x where both are complex; complex numbers as two
#define ALL(T, S)                                                                                                              \
    RL_EXPORT void rl_fourier_##S(Array *x_, Array *w_, Array *y_, long outer, long n, long inner, int kind, double scale) {    \
        rl::Call call("fourier");                                                                                              \
        call.expect(outer > 0 && n > 0 && inner > 0 && kind >= 0 && kind <= rl::kWhole, "at least one number");                 \
        call.expect(n <= rl::kLongest && n > 0 && rl::smooth(n), "a length of small factors");                                   \
        const T *x = call.in<T>("input", x_, outer, kind == rl::kWhole ? n / 2 + 1 : n, inner, kind == rl::kHalf ? 1L : 2L);     \
        const T *w = call.in<T>("roots", w_, n, 2L);                                                                           \
        T *y = call.out<T>("out", y_, outer, kind == rl::kHalf ? n / 2 + 1 : n, inner, kind == rl::kWhole ? 1L : 2L);            \
        call.run([=] { rl::Fourier<T>{x, w, y, outer, n, inner, kind, (T)scale}.run(); });                                     \
    }
RL_BOTH(ALL)
