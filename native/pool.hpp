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

// Runs task(context, 0 .. items - 1, worker) with worker < thread_count(). An exception
// thrown by a task is rethrown here after all threads have stopped.
void run_parallel(int items, Task task, void* context);

template <class F>
void parallel_for(int items, F&& body) {
    run_parallel(
        items,
        [](void* context, int item, int worker) {
            (*static_cast<typename std::remove_reference<F>::type*>(context))(item, worker);
        },
        &body);
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
