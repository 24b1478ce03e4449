// A small pool of threads.
//
// Not OpenMP, for three reasons: a forked child may use it (libgomp hangs there), a caller never waits for
// a worker that is still waking up (it takes the pieces itself), and workers go to sleep soon after the last
// piece, so that they leave the cores to BLAS.
#include <pthread.h>

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <mutex>
#include <thread>

#include "common.h"

namespace rl {
namespace {

constexpr long kSpinMicroseconds = 40;  // about what sleeping and waking costs

// Waits for `done` for a short while without sleeping; whether it came true.
template <class F> bool spin(F done) {
    using Clock = std::chrono::steady_clock;
    Clock::time_point end = Clock::now() + std::chrono::microseconds(kSpinMicroseconds);
    do {
        for (int i = 0; i < 32; ++i) {
            if (done()) return true;
#if defined(__x86_64__) || defined(__i386__)
            __builtin_ia32_pause();
#endif
        }
    } while (Clock::now() < end);
    return false;
}

struct Job {
    Body body;
    void *context;
    long count, grain, pieces;
    std::atomic<long> next{0};

    void work() {
        for (long i = next.fetch_add(1); i < pieces; i = next.fetch_add(1)) {
            long begin = i * grain, end = begin + grain;
            body(context, begin, end < count ? end : count);
        }
    }
};

struct Pool {
    std::mutex busy;  // held by the caller whose job runs; others then work alone
    std::mutex lock;  // guards what follows
    std::condition_variable wake, idle;
    Job *job = nullptr;
    std::atomic<long> generation{0};
    std::atomic<int> active{0}, awake{0};
    int workers = 0;

    void serve() {
        long seen = 0;
        for (;;) {
            ++awake;
            spin([&] { return generation != seen; });
            --awake;
            std::unique_lock<std::mutex> hold(lock);
            wake.wait(hold, [&] { return generation != seen; });
            seen = generation;
            Job *mine = job;
            if (!mine) continue;  // came too late
            ++active;
            hold.unlock();
            mine->work();
            hold.lock();
            if (--active == 0) idle.notify_one();
        }
    }

    void grow(int wanted) {
        for (; workers < wanted; ++workers) {
            try {
                std::thread([this] { serve(); }).detach();
            } catch (...) {
                return;  // no more threads to be had: those we have do the work
            }
        }
    }

    void publish(Job *fresh, int wanted) {
        std::lock_guard<std::mutex> hold(lock);
        grow(wanted);
        job = fresh;
        ++generation;
    }

    // No worker may join from here on; those that have are waited for.
    void finish() {
        {
            std::lock_guard<std::mutex> hold(lock);
            job = nullptr;
        }
        if (spin([&] { return active == 0; })) return;
        std::unique_lock<std::mutex> hold(lock);
        idle.wait(hold, [&] { return active == 0; });
    }
};

std::atomic<int> wanted_threads{1};
Pool *pool = nullptr;  // never freed: workers may outlive static destructors

void forget_pool() { pool = new Pool(); }  // in a forked child the workers are gone and locks may be held

__attribute__((constructor)) void start() {
    pool = new Pool();
    pthread_atfork(nullptr, nullptr, forget_pool);
}

}  // namespace

int threads() { return wanted_threads.load(std::memory_order_relaxed); }

void run(long count, long grain, Body body, void *context) {
    // At most eight pieces a thread: small enough to even out, large enough to keep the counter cold.
    long least = count / (8L * threads());
    if (grain < least) grain = (least + grain - 1) / grain * grain;
    Job job{body, context, count, grain, (count + grain - 1) / grain};
    Pool &mine = *pool;
    std::unique_lock<std::mutex> turn(mine.busy, std::try_to_lock);
    if (!turn.owns_lock() || job.pieces < 2) {
        job.work();
        return;
    }
    int helpers = threads() - 1;
    if (helpers > job.pieces - 1) helpers = (int)(job.pieces - 1);
    mine.publish(&job, helpers);
    if (mine.awake < mine.workers) mine.wake.notify_all();
    job.work();
    mine.finish();
}

}  // namespace rl

RL_EXPORT int rl_abi(void) { return RL_ABI; }
RL_EXPORT void rl_set_threads(int n) { rl::wanted_threads = n < 1 ? 1 : n; }
RL_EXPORT int rl_get_threads(void) { return rl::threads(); }
