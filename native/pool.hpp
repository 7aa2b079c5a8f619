// SPDX-License-Identifier: Apache-2.0
// A small persistent thread pool. Work items are handed out in order by a counter; which
// thread takes which item never influences a result, so any thread count gives the same bits.
#pragma once

#include <cstddef>
#include <type_traits>

namespace splat {

using Task = void (*)(void* context, int item, int worker);

int thread_count();            // how many threads a parallel region may use
void set_thread_count(int n);  // 0 restores the default: SPLATCERT_NUM_THREADS or all cores

// Whether parallel regions of the calling thread stay on it: for programs that give every view
// a thread of its own.
void keep_to_this_thread(bool yes);

constexpr int any_worker = 1 << 30;

// Runs task(context, 0 .. items - 1, worker) with worker < limit. An exception thrown by a
// task is rethrown here after all threads have stopped.
void run_parallel(int items, Task task, void* context, int limit);

// A body that uses memory of its worker's own passes as `limit` the number of workers it has
// made room for: the number of threads may change at any time.
template <class F>
void parallel_for(int items, F&& body, int limit = any_worker) {
    run_parallel(
        items,
        [](void* context, int item, int worker) {
            (*static_cast<typename std::remove_reference<F>::type*>(context))(item, worker);
        },
        &body, limit);
}

// 64-byte aligned memory for kernels; throws std::bad_alloc.
void* aligned_new(std::size_t bytes);
void aligned_delete(void* p);

// An owning array of plain values. Growing keeps nothing: kernels size before they fill.
template <class T>
struct Array {
    T* data = nullptr;
    std::size_t size = 0, capacity = 0;

    Array() = default;
    Array(const Array&) = delete;
    Array& operator=(const Array&) = delete;
    ~Array() { aligned_delete(data); }

    void resize(std::size_t n) {
        if (n > capacity) {
            aligned_delete(data);
            data = nullptr;
            size = capacity = 0;
            data = static_cast<T*>(aligned_new(n * sizeof(T)));
            capacity = n;
        }
        size = n;
    }
    T& operator[](std::size_t i) { return data[i]; }
    const T& operator[](std::size_t i) const { return data[i]; }
};

}  // namespace splat
