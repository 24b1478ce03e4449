// The largest, the smallest and the product of elements over one dimension: (outer, count, inner) -> (outer, inner).  The order
// of a product is fixed by the sizes alone; a NaN is larger and smaller than all others.
#include <memory>

#include "row_sums.h"
#include "turned.h"
#include "vecmath.h"

namespace rl {
namespace {

constexpr long kMost = 64;  // elements of a row that is put down as a column

struct Largest {
    template <class T> static T first() { return -infinity<T>(); }
    template <class V> RL_MEMBER V operator()(V a, V b) const { return (a >= b) | (a != a) ? a : b; }
    template <class V> RL_MEMBER static auto better(V a, V b) { return a > b; }
};
struct Smallest {
    template <class T> static T first() { return infinity<T>(); }
    template <class V> RL_MEMBER V operator()(V a, V b) const { return (a <= b) | (a != a) ? a : b; }
    template <class V> RL_MEMBER static auto better(V a, V b) { return a < b; }
};
struct Product {
    template <class T> static T first() { return T(1); }
    template <class V> RL_MEMBER V operator()(V a, V b) const { return a * b; }
};

// As row_joined of a row without NaN, whose vectors need not be asked for them one by one; false where there is one.
template <class J, class U, class T = WideOf<U>> bool extreme_of_row(const U *x, long n, T &found) {
    typedef T Vector __attribute__((vector_size(64)));
    typedef decltype(Vector{} < Vector{}) Mask;
    constexpr int kWide = 64 / (int)sizeof(T);
    if (n < 4 * kWide) return false;
    Vector part[4], v;
    Mask odd = Mask{};
    for (int k = 0; k < 4; ++k) part[k] = Vector{} + J::template first<T>();
    const auto take = [&](int k, const U *from) __attribute__((always_inline)) {
        read(v, from);
        part[k] = J::better(v, part[k]) ? v : part[k];
        odd |= v != v;
    };
    long i = 0;
    for (; i + 4 * kWide <= n; i += 4 * kWide)
#pragma GCC unroll 4
        for (int k = 0; k < 4; ++k) take(k, x + i + k * kWide);
    for (; i + kWide <= n; i += kWide) take(0, x + i);
    if (i < n) take(1, x + n - kWide);  // some of them again
    for (int k = 1; k < 4; ++k) part[0] = J::better(part[k], part[0]) ? part[k] : part[0];
    T lane[kWide];
    std::memcpy(lane, &part[0], sizeof lane);
    found = lane[0];
    bool any = false;
    for (int k = 0; k < kWide; ++k) found = J::better(lane[k], found) ? lane[k] : found, any |= odd[k] != 0;
    return !any && found != 0;  // of zeros the sign depends on their order
}

// Of 16 bits by runs, whose results are joined in their order.
template <class J, class U, class T = WideOf<U>> T row_of(const U *x, long count) {
    const J join{};
    const auto joined = [=](const U *v, long n) {
        return row_joined(v, n, J::template first<T>(), [](const auto &one) { return one; }, join);
    };
    if constexpr (!std::is_same<J, Product>::value) {
        T extreme;
        if (extreme_of_row<J>(x, count, extreme)) return extreme;
    }
    if constexpr (kPlain<U>) return joined(x, count);
    T found = J::template first<T>();
    for (long at = 0; at < count; at += kRun) found = join(found, joined(x + at, std::min(kRun, count - at)));
    return found;
}

template <class J, class U, class T = WideOf<U>> void rows(const U *x, T *out, long outer, long count) {
    const long parts = ceil_div(count, kPiece);
    std::unique_ptr<T[]> room(parts > 1 ? new T[outer * parts] : nullptr);
    T *part = parts > 1 ? room.get() : out;
    parallel_for(outer * parts, row_grain(std::min(count, kPiece)), [=](long begin, long end) {
        for (long i = begin; i < end; ++i) {
            const long at = i % parts * kPiece;
            part[i] = row_of<J>(x + i / parts * count + at, std::min(kPiece, count - at));
        }
    });
    for (long r = 0; parts > 1 && r < outer; ++r) {
        T found = part[r * parts];
        for (long i = 1; i < parts; ++i) found = J{}(found, part[r * parts + i]);
        out[r] = found;
    }
}

// Each piece owns some columns, so that the order of every product is that of the rows.
template <class J, class U, class T = WideOf<U>> void columns(const U *x, T *out, long outer, long count, long inner) {
    const long units = ceil_div(inner, kUnit);
    parallel_for(outer * units, kGrain / (count * kUnit) + 1, [=](long begin, long end) {
        for (long i = begin; i < end; ++i) {
            const long first = i % units * kUnit, some = std::min(kUnit, inner - first);
            T found[kUnit];
            for (long c = 0; c < some; ++c) found[c] = J::template first<T>();
            join_all_rows(x + i / units * count * inner + first, count, inner, found, some, J{});
            std::memcpy(out + i / units * inner + first, found, some * sizeof(T));
        }
    });
}

template <class J, class U, class T = WideOf<U>> void fold_over(const U *x, T *out, long outer, long count, long inner) {
    if (inner == 1) rows<J>(x, out, outer, count);
    else columns<J>(x, out, outer, count, inner);
}

template <class T> struct PlaceOf {
    typedef int32_t type;
};
template <> struct PlaceOf<double> {
    typedef int64_t type;
};

// The first of the largest or smallest of each of `w` columns of `count` rows `pitch` apart, and where it is; the first NaN is both.
template <class U, bool kLeast, class T, class Place>
void first_extremes_of_columns(const U *from, T *best, Place *at, long count, long pitch, long w) {
    Part<U, kUnit> part;
    std::memcpy(best, part(from, w), w * sizeof(T));
    std::fill_n(at, w, Place(0));
    for (long r = 1; r < count; ++r) {
        const T *row = part(from + r * pitch, w);
#pragma omp simd
        for (long c = 0; c < w; ++c) {
            const T v = row[c], had = best[c];
            const bool better = (kLeast ? v < had : v > had) | ((v != v) & (had == had));
            best[c] = better ? v : had;
            at[c] = better ? (Place)r : at[c];
        }
    }
}

// The same of `count` rows of few elements, or of columns.
template <class U, bool kLeast> void first_extremes(const U *x, U *out, int64_t *where, long outer, long count, long inner) {
    using Place = typename PlaceOf<U>::type;  // as wide as what is compared
    const bool rows = inner == 1;
    if (rows) inner = outer, outer = 1;
    const long units = ceil_div(inner, kUnit);
    parallel_for(outer * units, kGrain / (count * kUnit) + 1, [=](long begin, long end) {
        U room[kUnit * kMost];
        WideOf<U> best[kUnit];
        Place at[kUnit];
        for (long u = begin; u < end; ++u) {
            const long first = u % units * kUnit, some = std::min(kUnit, inner - first);
            if (rows) {
                put_as_columns(x + first * count, room, some, count);
                first_extremes_of_columns<U, kLeast>(room, best, at, count, filled(some), filled(some));
            } else {
                first_extremes_of_columns<U, kLeast>(x + u / units * count * inner + first, best, at, count, inner, some);
            }
            U *to = out + u / units * inner + first;
            if constexpr (kPlain<U>) std::memcpy(to, best, some * sizeof(U));
            else narrow(best, to, some);
            for (long c = 0; c < some; ++c) where[u / units * inner + first + c] = at[c];
        }
    });
}

}  // namespace
}  // namespace rl

// Of 16 bits the results are in float32.
#define FOLD(NAME, J, U, S)                                                                                \
    RL_EXPORT void rl_##NAME##_##S(Array *x_, Array *out_, long outer, long count, long inner) {           \
        rl::Call call(#NAME);                                                                              \
        call.expect(outer > 0 && count > 0 && inner > 0, "at least one element");                          \
        const U *x = call.in<U>("input", x_, outer, count, inner);                                         \
        auto *out = call.out<rl::WideOf<U>>("out", out_, outer, inner);                                    \
        call.run([=] { rl::fold_over<rl::J>(x, out, outer, count, inner); });                                   \
    }
#define ALL(U, S)                   \
    FOLD(maximum_over, Largest, U, S)    \
    FOLD(minimum_over, Smallest, U, S)   \
    FOLD(product_over, Product, U, S)
RL_ALL(ALL)

#define FIRST(T, S)                                                                                        \
    RL_EXPORT void rl_first_extreme_##S(Array *x_, Array *out_, Array *where_, long outer, long count, long inner, int least) { \
        rl::Call call("first_extreme");                                                                    \
        call.expect(outer > 0 && count > 0 && count < 1L << 31 && inner > 0, "at least one element, and places of 32 bits"); \
        call.expect(inner > 1 || count <= rl::kMost, "rows of few elements");                              \
        const T *x = call.in<T>("input", x_, outer, count, inner);                                         \
        T *out = call.out<T>("out", out_, outer, inner);                                                   \
        int64_t *where = call.out<int64_t>("where", where_, outer, inner);                                 \
        call.run([=] {                                                                                     \
            if (least) rl::first_extremes<T, true>(x, out, where, outer, count, inner);                    \
            else rl::first_extremes<T, false>(x, out, where, outer, count, inner);                         \
        });                                                                                                \
    }
RL_ALL(FIRST)
