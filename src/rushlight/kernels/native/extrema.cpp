// The largest, the smallest and the product of elements over one dimension: (outer, count, inner) -> (outer, inner).  The order
// of a product is fixed by the sizes alone; a NaN is larger and smaller than all others.
#include <memory>

#include "row_sums.h"
#include "vecmath.h"

namespace rl {
namespace {

struct Largest {
    template <class T> static T first() { return -infinity<T>(); }
    template <class V> RL_MEMBER V operator()(V a, V b) const { return (a >= b) | (a != a) ? a : b; }
};
struct Smallest {
    template <class T> static T first() { return infinity<T>(); }
    template <class V> RL_MEMBER V operator()(V a, V b) const { return (a <= b) | (a != a) ? a : b; }
};
struct Product {
    template <class T> static T first() { return T(1); }
    template <class V> RL_MEMBER V operator()(V a, V b) const { return a * b; }
};

// Of 16 bits by runs, whose results are joined in their order.
template <class J, class U, class T = WideOf<U>> T row_of(const U *x, long count) {
    const J join{};
    const auto joined = [=](const T *v, long n) {
        return row_joined(v, n, J::template first<T>(), [](const auto &one) { return one; }, join);
    };
    if constexpr (kPlain<U>) return joined(x, count);
    T found = J::template first<T>();
    pieces<kRun>(x, count, [&](long, const T *v, long n) { found = join(found, joined(v, n)); });
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
        const J join{};
        for (long i = begin; i < end; ++i) {
            const long first = i % units * kUnit, some = std::min(kUnit, inner - first);
            Part<U, kUnit> part;
            const U *block = x + i / units * count * inner + first;
            T found[kUnit];
            for (long c = 0; c < some; ++c) found[c] = J::template first<T>();
            for (long r = 0; r < count; ++r) {
                const T *from = part(block + r * inner, some);
#pragma omp simd
                for (long c = 0; c < some; ++c) found[c] = join(found[c], from[c]);
            }
            std::memcpy(out + i / units * inner + first, found, some * sizeof(T));
        }
    });
}

template <class J, class U, class T = WideOf<U>> void fold_over(const U *x, T *out, long outer, long count, long inner) {
    if (inner == 1) rows<J>(x, out, outer, count);
    else columns<J>(x, out, outer, count, inner);
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
