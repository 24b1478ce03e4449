// Substitution: solving with triangular matrices.
#include "substitution.h"

namespace rl {
namespace {

constexpr long kShared = 1L << 19;  // multiplications that are worth a thread

// a (B, N, N), of which one triangle is read, and x (B, N, M), which becomes a^-1 x.  What is divided by 0 becomes infinite.  Whether
// a's strides are such that this was done.
template <class T> long substitute_all(Array *a_, Array *x_, bool upper, bool unit) {
    Call call("substitute");
    const auto a = call.matrix<T>("triangles", a_);
    if (!a.data) return 0;
    const long columns = call.size("right", x_, 2), n = a.rows;
    T *x = call.out<T>("right", x_, a.batch, n, columns);
    call.expect(a.rows == a.columns, "triangles: square matrices");
    const long panels = ceil_div(columns, kWide<T>);
    call.run([=] {
        parallel_for(a.batch * panels, kShared / (n * n * kWide<T> / 2 + 1) + 1, [=](long begin, long end) {
            for (long i = begin; i < end; ++i) {
                const long one = i / panels, at = i % panels * kWide<T>, width = std::min<long>(kWide<T>, columns - at);
                T *from = x + one * n * columns + at, *panel = scratch<T, 0>(n * kWide<T>);
                take_columns(from, columns, n, width, panel);
                Substitution<T>{a.one(one), upper, unit}.solve(panel, width);
                put_columns(panel, n, width, from, columns);
            }
        });
    });
    return 1;
}

}  // namespace
}  // namespace rl

#define RL_SUBSTITUTE(T, suffix) \
    RL_EXPORT long rl_substitute_##suffix(Array *a, Array *x, int upper, int unit) { return rl::substitute_all<T>(a, x, upper, unit); }
RL_BOTH(RL_SUBSTITUTE)
