// SPDX-License-Identifier: Apache-2.0
// Sums and products of unevaluated pairs (high, low), 48 bits together. Factors are split by
// masking bits, because fma need not be fused. Compilers simplify (a + b) - a to b; an exclusive
// or with a zero that they cannot know keeps them from it.
var<private> zero: u32;

fn held(x: f32) -> f32 {
    return bitcast<f32>(bitcast<u32>(x) ^ zero);
}

fn fast_sum(a: f32, b: f32) -> vec2<f32> {
    let s = held(a + b);
    return vec2(s, b - (s - a));
}

fn exact_sum(a: f32, b: f32) -> vec2<f32> {
    let s = held(a + b);
    let t = held(s - a);
    return vec2(s, (a - (s - t)) + (b - t));
}

fn exact_product(a: f32, b: f32) -> vec2<f32> {
    let p = held(a * b);
    let a1 = bitcast<f32>(bitcast<u32>(a) & 0xfffff000u);
    let b1 = bitcast<f32>(bitcast<u32>(b) & 0xfffff000u);
    let a2 = a - a1;
    let b2 = b - b1;
    return vec2(p, ((a1 * b1 - p) + a1 * b2 + a2 * b1) + a2 * b2);
}

fn plus(a: vec2<f32>, b: vec2<f32>) -> vec2<f32> {
    let s = exact_sum(a.x, b.x);
    return fast_sum(s.x, s.y + (a.y + b.y));
}

fn times(a: vec2<f32>, b: vec2<f32>) -> vec2<f32> {
    let p = exact_product(a.x, b.x);
    return fast_sum(p.x, p.y + (a.x * b.y + a.y * b.x));
}

fn over(a: vec2<f32>, b: vec2<f32>) -> vec2<f32> {
    let q = a.x / b.x;
    let rest = plus(a, -times(b, vec2(q, 0.0)));
    return fast_sum(q, rest.x / b.x);
}
