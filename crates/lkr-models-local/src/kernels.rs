//! The element-wise loops between matrix products, compiled for the widest vector instructions of the processor.
//!
//! Each public function selects the instruction set once and runs the same plain loop. The loops keep [`LANES`]
//! independent sums, so that the compiler can vectorise them without changing the result.

use pulp::{Arch, Simd, WithSimd};

use crate::config::Activation;

/// The number of `f32` in the widest vectors.
const LANES: usize = 16;

/// Adds `bias` to each row of `rows`.
pub(crate) fn add_bias(arch: Arch, rows: &mut [f32], bias: &[f32]) {
    vectorized(
        arch,
        #[inline(always)]
        || {
            for row in rows.chunks_exact_mut(bias.len()) {
                for (x, &b) in row.iter_mut().zip(bias) {
                    *x += b;
                }
            }
        },
    );
}

/// Adds `bias` to each row of `rows` and applies the activation.
pub(crate) fn activate(arch: Arch, activation: Activation, rows: &mut [f32], bias: &[f32]) {
    match activation {
        Activation::Gelu => map(arch, rows, bias, gelu),
        Activation::GeluTanh => map(arch, rows, bias, gelu_tanh),
        Activation::Relu => map(arch, rows, bias, relu),
        Activation::Silu => map(arch, rows, bias, silu),
    }
}

/// Adds `bias` to each row of `rows`, and multiplies the activation of its first half by its second half, into the first half.
pub(crate) fn activate_gated(arch: Arch, activation: Activation, rows: &mut [f32], bias: &[f32]) {
    match activation {
        Activation::Gelu => map_gated(arch, rows, bias, gelu),
        Activation::GeluTanh => map_gated(arch, rows, bias, gelu_tanh),
        Activation::Relu => map_gated(arch, rows, bias, relu),
        Activation::Silu => map_gated(arch, rows, bias, silu),
    }
}

/// Replaces each row of `rows`, with `columns` scores, by softmax(`scale` · row).
pub(crate) fn softmax(arch: Arch, rows: &mut [f32], columns: usize, scale: f32) {
    vectorized_with(
        arch,
        #[inline(always)]
        |arithmetic| {
            for row in rows.chunks_exact_mut(columns) {
                let top = fold(row, f32::NEG_INFINITY, |best, x| if x > best { x } else { best });
                for x in row.iter_mut() {
                    *x = exp(arithmetic, scale * (*x - top));
                }
                let inverse = 1.0 / fold(row, 0.0, |sum, x| sum + x);
                for x in row.iter_mut() {
                    *x *= inverse;
                }
            }
        },
    );
}

/// The parameters of a layer normalisation.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Norm<'a> {
    pub(crate) weight: &'a [f32],
    pub(crate) bias: &'a [f32],
    pub(crate) eps: f32,
}

/// Replaces each row of `rows` by the normalisation of row + added row + `bias`.
pub(crate) fn add_and_norm(arch: Arch, rows: &mut [f32], added: &[f32], bias: &[f32], norm: Norm<'_>) {
    vectorized(
        arch,
        #[inline(always)]
        || {
            let width = bias.len();
            for (row, added) in rows.chunks_exact_mut(width).zip(added.chunks_exact(width)) {
                add_row(row, added, bias);
                norm_row(row, norm);
            }
        },
    );
}

/// Adds the added rows and `bias` to `rows`.
pub(crate) fn add(arch: Arch, rows: &mut [f32], added: &[f32], bias: &[f32]) {
    vectorized(
        arch,
        #[inline(always)]
        || {
            let width = bias.len();
            for (row, added) in rows.chunks_exact_mut(width).zip(added.chunks_exact(width)) {
                add_row(row, added, bias);
            }
        },
    );
}

#[inline(always)]
fn add_row(row: &mut [f32], added: &[f32], bias: &[f32]) {
    for ((x, &a), &b) in row.iter_mut().zip(added).zip(bias) {
        *x += a + b;
    }
}

/// Normalises each row of `rows`.
pub(crate) fn layer_norm(arch: Arch, rows: &mut [f32], norm: Norm<'_>) {
    vectorized(
        arch,
        #[inline(always)]
        || {
            for row in rows.chunks_exact_mut(norm.weight.len()) {
                norm_row(row, norm);
            }
        },
    );
}

/// Scales `vector` to length 1; `false` if its length is zero or not finite.
pub(crate) fn to_unit(vector: &mut [f32]) -> bool {
    let length = vector.iter().map(|&x| f64::from(x) * f64::from(x)).sum::<f64>().sqrt();
    // Division in double precision: a tiny length would overflow in single precision.
    for x in vector.iter_mut() {
        *x = (f64::from(*x) / length) as f32;
    }
    length > 0.0 && length.is_finite()
}

/// How to add a product.
#[derive(Debug, Clone, Copy)]
struct Arithmetic {
    /// Whether the processor has an instruction that rounds once. Without one, it would be a slow function.
    is_fused: bool,
}

impl Arithmetic {
    /// a · b + c.
    #[inline(always)]
    fn mul_add(self, a: f32, b: f32, c: f32) -> f32 {
        if self.is_fused { a.mul_add(b, c) } else { a * b + c }
    }

    /// The polynomial with these coefficients, the highest one first.
    #[inline(always)]
    fn polynomial<const N: usize>(self, coefficients: [f32; N], x: f32) -> f32 {
        let mut sum = 0.0;
        for (at, coefficient) in coefficients.into_iter().enumerate() {
            sum = if at == 0 { coefficient } else { self.mul_add(sum, x, coefficient) };
        }
        sum
    }
}

/// Runs `body`, which must be `#[inline(always)]`, compiled for the instruction set of `arch`.
#[inline(always)]
pub(crate) fn vectorized(arch: Arch, mut body: impl FnMut()) {
    vectorized_with(
        arch,
        #[inline(always)]
        |_| body(),
    );
}

/// As [`vectorized`], for a body that adds products.
#[inline(always)]
fn vectorized_with(arch: Arch, body: impl FnMut(Arithmetic)) {
    struct Body<F>(F);

    impl<F: FnMut(Arithmetic)> WithSimd for Body<F> {
        type Output = ();

        // Called by reference: a call by value would go through a separate function that the compiler does not inline
        // here, and code that is not inlined is not compiled for the instruction set.
        #[inline(always)]
        fn with_simd<S: Simd>(mut self, _: S) {
            // All that pulp knows with vectors have the instruction.
            (self.0)(Arithmetic { is_fused: S::F32_LANES > 1 });
        }
    }

    arch.dispatch(Body(body));
}

#[inline(always)]
fn norm_row(row: &mut [f32], norm: Norm<'_>) {
    let count = row.len() as f32;
    let mean = fold(row, 0.0, |sum, x| sum + x) / count;
    for x in row.iter_mut() {
        *x -= mean;
    }
    let variance = fold_mapped(row, 0.0, |x| x * x, |sum, x| sum + x) / count;
    let inverse = 1.0 / (variance + norm.eps).sqrt();
    for ((x, &weight), &bias) in row.iter_mut().zip(norm.weight).zip(norm.bias) {
        *x = *x * inverse * weight + bias;
    }
}

#[inline(always)]
fn map(arch: Arch, rows: &mut [f32], bias: &[f32], f: impl Fn(Arithmetic, f32) -> f32) {
    vectorized_with(
        arch,
        #[inline(always)]
        |arithmetic| {
            for row in rows.chunks_exact_mut(bias.len()) {
                for (x, &b) in row.iter_mut().zip(bias) {
                    *x = f(arithmetic, *x + b);
                }
            }
        },
    );
}

#[inline(always)]
fn map_gated(arch: Arch, rows: &mut [f32], bias: &[f32], f: impl Fn(Arithmetic, f32) -> f32) {
    vectorized_with(
        arch,
        #[inline(always)]
        |arithmetic| {
            let half = bias.len() / 2;
            let (bias, gate_bias) = bias.split_at(half);
            for row in rows.chunks_exact_mut(half * 2) {
                let (first, gates) = row.split_at_mut(half);
                for (((x, &gate), &b), &gate_b) in first.iter_mut().zip(&*gates).zip(bias).zip(gate_bias) {
                    *x = f(arithmetic, *x + b) * (gate + gate_b);
                }
            }
        },
    );
}

/// Folds a row in [`LANES`] independent lanes, then folds the lanes and the remaining elements.
#[inline(always)]
pub(crate) fn fold(row: &[f32], start: f32, combine: impl Fn(f32, f32) -> f32) -> f32 {
    fold_mapped(row, start, |x| x, combine)
}

#[inline(always)]
fn fold_mapped(row: &[f32], start: f32, map: impl Fn(f32) -> f32, combine: impl Fn(f32, f32) -> f32) -> f32 {
    let (chunks, rest) = row.as_chunks::<LANES>();
    let mut lanes = [start; LANES];
    for chunk in chunks {
        for (lane, &x) in lanes.iter_mut().zip(chunk) {
            *lane = combine(*lane, map(x));
        }
    }
    let mut all = start;
    for &lane in &lanes {
        all = combine(all, lane);
    }
    for &x in rest {
        all = combine(all, map(x));
    }
    all
}

/// eˣ within 2 · 10⁻⁷ of its value, for x up to 88; 0 below −87.
///
/// x = n ln 2 + r with |r| ≤ ½ ln 2; the Taylor polynomial of degree 6 for eʳ, and 2ⁿ by its exponent bits.
#[inline(always)]
fn exp(arithmetic: Arithmetic, x: f32) -> f32 {
    /// 1 / n!, from n = 6 on downwards.
    const TAYLOR: [f32; 7] = [1.0 / 720.0, 1.0 / 120.0, 1.0 / 24.0, 1.0 / 6.0, 0.5, 1.0, 1.0];
    /// 1.5 · 2²³: adding it leaves a rounded integer in the lowest bits.
    const ROUND: f32 = 12_582_912.0;
    /// ln 2 in two parts, so that n · `LN_2_HIGH` is exact.
    const LN_2_HIGH: f32 = 355.0 / 512.0;
    const LN_2_LOW: f32 = -2.121_944_4e-4;
    const LOWEST: f32 = -87.0;

    let clamped = if x > LOWEST { x } else { LOWEST };
    let clamped = if clamped < 88.0 { clamped } else { 88.0 };
    let shifted = arithmetic.mul_add(clamped, std::f32::consts::LOG2_E, ROUND);
    let n = shifted - ROUND;
    let r = arithmetic.mul_add(n, -LN_2_LOW, arithmetic.mul_add(n, -LN_2_HIGH, clamped));
    let sum = arithmetic.polynomial(TAYLOR, r);
    let power = f32::from_bits((shifted.to_bits() << 23).wrapping_add(1.0f32.to_bits()));
    if x > LOWEST { sum * power } else { 0.0 }
}

/// x · Φ(x) within 2 · 10⁻⁷ · |x|.
///
/// Φ by 1 − erf(z) ≈ (a₁t + … + a₅t⁵) e^(−z²), t = 1 / (1 + pz): Abramowitz and Stegun, Handbook of Mathematical
/// Functions, 7.1.26, with an error of at most 1.5 · 10⁻⁷.
#[inline(always)]
fn gelu(arithmetic: Arithmetic, x: f32) -> f32 {
    const P: f32 = 0.327_591_1 * std::f32::consts::FRAC_1_SQRT_2;
    const A: [f32; 5] = [1.061_405_4, -1.453_152, 1.421_413_7, -0.284_496_74, 0.254_829_6];

    let size = x.abs();
    let t = 1.0 / arithmetic.mul_add(P, size, 1.0);
    let sum = arithmetic.polynomial(A, t) * t;
    let tail = 0.5 * sum * exp(arithmetic, -0.5 * x * x);
    // Φ(x) is `tail` below 0 and 1 − `tail` above.
    arithmetic.mul_add(-size, tail, if x > 0.0 { x } else { 0.0 })
}

/// x/2 · (1 + tanh(√(2/π) (x + 0.044715 x³))), which is x / (1 + e^(−2u)) for the tanh of u.
#[inline(always)]
fn gelu_tanh(arithmetic: Arithmetic, x: f32) -> f32 {
    const ROOT_2_OVER_PI: f32 = 0.797_884_6;
    let u = ROOT_2_OVER_PI * (x + 0.044_715 * x * x * x);
    x / (1.0 + exp(arithmetic, -2.0 * u))
}

/// x / (1 + e⁻ˣ).
#[inline(always)]
fn silu(arithmetic: Arithmetic, x: f32) -> f32 {
    x / (1.0 + exp(arithmetic, -x))
}

/// The greater one of x and 0.
#[inline(always)]
fn relu(_: Arithmetic, x: f32) -> f32 {
    x.max(0.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// All instruction sets of this processor, the baseline first.
    fn archs() -> Vec<Arch> {
        let mut archs = vec![Arch::Scalar];
        if !matches!(Arch::new(), Arch::Scalar) {
            archs.push(Arch::new());
        }
        archs
    }

    fn points(from: i32, to: i32) -> impl Iterator<Item = f32> {
        (from * 64..=to * 64).map(|step| step as f32 / 64.0)
    }

    const ARITHMETICS: [Arithmetic; 2] = [Arithmetic { is_fused: false }, Arithmetic { is_fused: true }];

    #[test]
    fn exp_is_accurate_over_its_range() {
        for arithmetic in ARITHMETICS {
            let exp = |x| exp(arithmetic, x);
            for x in points(-86, 87) {
                let (found, exact) = (f64::from(exp(x)), f64::from(x).exp());
                assert!((found / exact - 1.0).abs() < 3e-7, "exp({x}) = {found}, not {exact}");
            }
            assert_eq!(exp(-1000.0), 0.0);
            assert_eq!(exp(f32::NEG_INFINITY), 0.0);
            assert!(exp(1000.0).is_finite());
        }
    }

    /// Φ(x) by the midpoint rule from −12 in 24,000 steps.
    fn normal_cdf(x: f64) -> f64 {
        let step = (x + 12.0) / 24_000.0;
        let density = |z: f64| (-0.5 * z * z).exp() / (2.0 * std::f64::consts::PI).sqrt();
        (0..24_000).map(|i| density(-12.0 + (f64::from(i) + 0.5) * step) * step).sum()
    }

    #[test]
    fn activations_equal_their_definitions() {
        for (arithmetic, x) in
            ARITHMETICS.iter().flat_map(|&it| points(-8, 8).step_by(16).map(move |x| (it, x)))
        {
            let (gelu, gelu_tanh) = (gelu(arithmetic, x), gelu_tanh(arithmetic, x));
            let wide = f64::from(x);
            let exact = wide * normal_cdf(wide);
            let tolerance = 3e-7 * wide.abs().max(1.0);
            assert!((f64::from(gelu) - exact).abs() < tolerance, "gelu({x}) = {gelu}, not {exact}");
            let inner = (2.0 / std::f64::consts::PI).sqrt() * (wide + 0.044_715 * wide.powi(3));
            let exact = 0.5 * wide * (1.0 + inner.tanh());
            assert!((f64::from(gelu_tanh) - exact).abs() < tolerance * 2.0, "gelu_tanh({x})");
            let exact = wide / (1.0 + (-wide).exp());
            assert!((f64::from(silu(arithmetic, x)) - exact).abs() < tolerance, "silu({x})");
        }
    }

    #[test]
    fn results_are_equal_on_every_instruction_set() {
        // 37 columns leave a remainder after the lanes.
        let rows: Vec<f32> = (0..37 * 3).map(|i| ((i * 29 % 97) as f32 - 48.0) / 9.0).collect();
        let (weight, bias) = (vec![0.5; 37], vec![0.25; 37]);
        let norm = Norm { weight: &weight, bias: &bias, eps: 1e-12 };
        for arch in archs() {
            let mut probabilities = rows.clone();
            softmax(arch, &mut probabilities, 37, 0.5);
            for (row, scores) in probabilities.chunks(37).zip(rows.chunks(37)) {
                let total: f64 = scores.iter().map(|&x| (0.5 * f64::from(x)).exp()).sum();
                for (&p, &x) in row.iter().zip(scores) {
                    assert!((f64::from(p) - (0.5 * f64::from(x)).exp() / total).abs() < 1e-6);
                }
            }
            let mut gated = rows[..74].to_vec();
            activate_gated(arch, Activation::Relu, &mut gated, &[bias.as_slice(), &[1.0; 37]].concat());
            for (column, x) in gated[..37].iter().enumerate() {
                assert_eq!(*x, (rows[column] + 0.25).max(0.0) * (rows[37 + column] + 1.0));
            }
            let mut normed = rows.clone();
            add_and_norm(arch, &mut normed, &rows, &bias, norm);
            for row in normed.chunks(37) {
                let mean = row.iter().sum::<f32>() / 37.0;
                let variance = row.iter().map(|x| (x - mean).powi(2)).sum::<f32>() / 37.0;
                assert!((mean - 0.25).abs() < 1e-5 && (variance - 0.25).abs() < 1e-5, "{mean} {variance}");
            }
        }
    }

    #[test]
    fn to_unit_of_a_zero_vector_is_false() {
        assert!(!to_unit(&mut [0.0, 0.0]));
        assert!(!to_unit(&mut [f32::NAN, 1.0]));
        assert!(!to_unit(&mut [f32::INFINITY, 1.0]));
        let mut tiny = [3e-30, 4e-30];
        assert!(to_unit(&mut tiny));
        assert!((tiny[0] - 0.6).abs() < 1e-6 && (tiny[1] - 0.8).abs() < 1e-6);
    }
}
