// A small pool of threads.
//
// Not OpenMP, for three reasons: a forked child may use it (libgomp hangs there), a caller never waits for
// a worker that is still waking up (it takes the pieces itself), and workers go to sleep soon after the last
// piece, so that they leave the cores to BLAS.
#include <pthread.h>

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <thread>

#include "common.h"

namespace rl {
namespace {

constexpr long kSpinMicroseconds = 40;  // about what sleeping and waking costs
constexpr long kLongMicroseconds = 200;  // where there are processors to spare: on 16, waking all costs 60, and most operators follow each other sooner

// Waits for `done` for so many microseconds without sleeping; whether it came true.
template <class F> bool spin(long microseconds, F done) {
    using Clock = std::chrono::steady_clock;
    Clock::time_point end = Clock::now() + std::chrono::microseconds(microseconds);
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
    alignas(64) std::atomic<long> next{0};

    void work() {
        for (long i = next.fetch_add(1); i < pieces; i = next.fetch_add(1)) {
            long begin = i * grain, end = begin + grain;
            body(context, begin, end < count ? end : count);
        }
    }
};

// What all threads look at, in one number: which job it is (32 bits), how many workers are called to it (15), whether it is open (1), and
// how many are at it (16).
struct State {
    static constexpr uint64_t kOne = 1, kOpen = 1 << 16;
    uint64_t bits;

    static State opened(uint32_t number, int called) { return {uint64_t(number) << 32 | uint64_t(called) << 17 | kOpen}; }
    uint32_t number() const { return uint32_t(bits >> 32); }
    int called() const { return int(bits >> 17 & 0x7fff); }
    bool open() const { return bits & kOpen; }
    int inside() const { return int(bits & 0xffff); }
};

// Where a thread sleeps until another wakes it: of its own, so that whoever is woken meets nobody.
struct alignas(64) Bed {
    std::mutex lock;
    std::condition_variable wake;
    std::atomic<bool> asleep{false};

    template <class F> void sleep_until(F done) {
        std::unique_lock<std::mutex> hold(lock);
        asleep = true;
        wake.wait(hold, done);
        asleep = false;
    }

    void rouse() {
        if (!asleep) return;
        { std::lock_guard<std::mutex> hold(lock); }  // it sleeps, and does not only mean to
        wake.notify_one();                           // without the lock, for which it would wait when awake
    }
};

constexpr int kMost = 256;  // workers

struct Pool {
    std::mutex busy;  // held by the caller whose job runs; others then work alone
    alignas(64) std::atomic<uint64_t> state{0};
    alignas(64) Job *job = nullptr;  // of the state, while that is open
    std::atomic<bool> stopping{false}, resting{false};  // all workers end; those that wait for work go to sleep now
    Bed caller, beds[kMost];
    std::thread threads[kMost];
    int workers = 0;

    State now() const { return {state.load()}; }

    // Who asks wakes two workers, and each four others: all are awake after few steps, and who asks begins soon.
    void rouse(int first, int some, int called) {
        for (int i = first; i < first + some && i < called; ++i) beds[i].rouse();
    }

    void serve(int i) {
        uint32_t seen = 0;
        for (;;) {
            auto called = [&] { return stopping || (now().number() != seen && i < now().called()); };
            spin(rl::threads() > 3 ? kLongMicroseconds : kSpinMicroseconds, [&] { return resting || called(); });
            if (!called()) beds[i].sleep_until(called);
            if (stopping) return;
            const State found = now();
            seen = found.number();
            if (found.open()) join(i, seen);
        }
    }

    // One that comes too late leaves at once; one that comes to the next job works at that.
    void join(int i, uint32_t &seen) {
        const State found{state.fetch_add(State::kOne)};
        if (found.open() && i < found.called()) {
            seen = found.number();
            rouse(4 * i + 2, 4, found.called());
            job->work();
        }
        const State left{state.fetch_sub(State::kOne) - State::kOne};
        if (!left.open() && !left.inside()) caller.rouse();
    }

    int grown(int wanted) {
        for (wanted = wanted < kMost ? wanted : kMost; workers < wanted; ++workers) {
            try {
                threads[workers] = std::thread([this, i = workers] { serve(i); });
            } catch (...) {
                break;  // no more threads to be had: those we have do the work
            }
        }
        return wanted < workers ? wanted : workers;
    }

    // The job of who holds `busy`, with the help of so many workers.
    void work(Job &mine, int helpers) {
        publish(mine, grown(helpers));
        mine.work();
        finish();
    }

    // All workers end; the next job makes new ones.  By who holds `busy`.
    void stop() {
        stopping = true;
        for (int i = 0; i < workers; ++i) beds[i].rouse();
        for (; workers; --workers) threads[workers - 1].join();
        stopping = false;
    }

    void publish(Job &fresh, int called) {
        job = &fresh;
        resting = false;
        // Those that came too late for the last job may still be leaving: they are counted.
        uint64_t old = state;
        while (!state.compare_exchange_weak(old, State::opened(State{old}.number() + 1, called).bits | State{old}.inside())) {
        }
        rouse(0, 2, called);
    }

    // No worker may join from here on; those that have are waited for.
    void finish() {
        state.fetch_and(~State::kOpen);
        auto done = [&] { return !now().inside(); };
        if (!spin(kSpinMicroseconds, done)) caller.sleep_until(done);
    }
};

std::atomic<int> wanted_threads{1};
Pool *pool = nullptr;  // never freed: workers may outlive static destructors

// A process that is forked has no workers: neither could they go on in the child, nor is Python to warn of them (3.12).
void before_fork() {
    pool->busy.lock();
    pool->stop();
}
void after_fork() { pool->busy.unlock(); }
void in_child() { pool = new Pool(); }  // whose locks nobody holds

__attribute__((constructor)) void start() {
    pool = new Pool();
    pthread_atfork(before_fork, after_fork, in_child);
}

}  // namespace

int threads() { return wanted_threads.load(std::memory_order_relaxed); }

void run(long count, long grain, Body body, void *context) {
    // At most eight pieces a thread: small enough to even out, large enough to keep the counter cold.
    long least = count / (8L * threads());
    if (grain < least) grain = (least + grain - 1) / grain * grain;
    Job job{body, context, count, grain, (count + grain - 1) / grain};
    std::unique_lock<std::mutex> turn(pool->busy, std::try_to_lock);
    if (!turn.owns_lock() || job.pieces < 2) {
        job.work();
        return;
    }
    long helpers = threads() - 1;
    pool->work(job, int(helpers < job.pieces - 1 ? helpers : job.pieces - 1));
}

}  // namespace rl

RL_EXPORT int rl_abi(void) { return RL_ABI; }
RL_EXPORT void rl_set_threads(int n) { rl::wanted_threads = n < 1 ? 1 : n; }
// Leave the processors to others, the threads of BLAS, until the next job.
RL_EXPORT void rl_rest(void) { rl::pool->resting = true; }
RL_EXPORT int rl_get_threads(void) { return rl::threads(); }
