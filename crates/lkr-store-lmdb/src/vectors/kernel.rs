//! Products of a query and stored values, vectorised.

/// The number of independent sums: four registers of eight values.
pub(crate) const LANES: usize = 32;

/// `Σ query · row`, where `row` contains little-endian values at any alignment.
pub(crate) fn dot(query: &[f32], row: &[u8]) -> f32 {
    dot_of(query, row.as_chunks::<4>().0, f32::from_le_bytes)
}

/// `Σ query · codes`.
pub(crate) fn dot_codes(query: &[f32], codes: &[i8]) -> f32 {
    dot_of(query, codes, f32::from)
}

/// `Σ query · row` and `Σ row · row` in double precision, where `row` contains little-endian values at any alignment.
pub(crate) fn exact_products(query: &[f32], row: &[u8]) -> (f64, f64) {
    let row = row.as_chunks::<4>().0;
    #[cfg(target_arch = "x86_64")]
    if has_avx2() {
        // SAFETY: the check above found the instructions that the function was compiled for.
        #[expect(unsafe_code, reason = "a function compiled for more than the least processor")]
        return unsafe { exact_products_avx2(query, row) };
    }
    exact_lanes(query, row)
}

#[inline(always)]
fn dot_of<T: Copy>(query: &[f32], row: &[T], value: impl Fn(T) -> f32 + Copy) -> f32 {
    #[cfg(target_arch = "x86_64")]
    if has_avx2() {
        // SAFETY: the check above found the instructions that the function was compiled for.
        #[expect(unsafe_code, reason = "a function compiled for more than the least processor")]
        return unsafe { dot_avx2(query, row, value) };
    }
    lanes::<false, T>(query, row, value)
}

#[cfg(target_arch = "x86_64")]
fn has_avx2() -> bool {
    std::arch::is_x86_feature_detected!("avx2") && std::arch::is_x86_feature_detected!("fma")
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2,fma")]
fn dot_avx2<T: Copy>(query: &[f32], row: &[T], value: impl Fn(T) -> f32 + Copy) -> f32 {
    lanes::<true, T>(query, row, value)
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2,fma")]
fn exact_products_avx2(query: &[f32], row: &[[u8; 4]]) -> (f64, f64) {
    exact_lanes(query, row)
}

/// Lanes are independent, so that the compiler can vectorise the loop.
#[inline(always)]
fn lanes<const FUSED: bool, T: Copy>(query: &[f32], row: &[T], value: impl Fn(T) -> f32 + Copy) -> f32 {
    let (queries, query_rest) = query.as_chunks::<LANES>();
    let (rows, row_rest) = row.as_chunks::<LANES>();
    let mut sums = [0.0; LANES];
    for (query, row) in queries.iter().zip(rows) {
        for ((sum, a), b) in sums.iter_mut().zip(query).zip(row) {
            *sum = add_product::<FUSED>(*sum, *a, value(*b));
        }
    }
    let rest = query_rest.iter().zip(row_rest);
    let rest = rest.fold(0.0, |sum, (a, b)| add_product::<FUSED>(sum, *a, value(*b)));
    sums.iter().sum::<f32>() + rest
}

#[inline(always)]
fn add_product<const FUSED: bool>(sum: f32, a: f32, b: f32) -> f32 {
    if FUSED { a.mul_add(b, sum) } else { sum + a * b }
}

/// The lanes of [`exact_products`]: two registers of four values for each sum.
const EXACT_LANES: usize = 8;

#[inline(always)]
fn exact_lanes(query: &[f32], row: &[[u8; 4]]) -> (f64, f64) {
    let (queries, query_rest) = query.as_chunks::<EXACT_LANES>();
    let (rows, row_rest) = row.as_chunks::<EXACT_LANES>();
    let (mut dots, mut squares) = ([0.0; EXACT_LANES], [0.0; EXACT_LANES]);
    let add = |dot: &mut f64, square: &mut f64, a: f32, b: [u8; 4]| {
        let b = f64::from(f32::from_le_bytes(b));
        *dot += f64::from(a) * b;
        *square += b * b;
    };
    for (query, row) in queries.iter().zip(rows) {
        for (((dot, square), a), b) in dots.iter_mut().zip(&mut squares).zip(query).zip(row) {
            add(dot, square, *a, *b);
        }
    }
    let (mut dot, mut square) = (dots.iter().sum(), squares.iter().sum());
    for (a, b) in query_rest.iter().zip(row_rest) {
        add(&mut dot, &mut square, *a, *b);
    }
    (dot, square)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn dot_equals_the_sum_of_products(pairs in proptest::collection::vec((-1f32..1.0, -1f32..1.0), 0..200)) {
            let (a, b): (Vec<f32>, Vec<f32>) = pairs.into_iter().unzip();
            // A byte before the values makes them unaligned.
            let bytes: Vec<u8> = std::iter::once(0).chain(b.iter().flat_map(|b| b.to_le_bytes())).collect();
            let exact = a.iter().zip(&b).map(|(a, b)| f64::from(*a) * f64::from(*b)).sum::<f64>();
            let portable = lanes::<false, _>(&a, bytes[1..].as_chunks::<4>().0, f32::from_le_bytes);
            for found in [dot(&a, &bytes[1..]), portable] {
                prop_assert!((f64::from(found) - exact).abs() < 1e-4, "{} for {}", found, exact);
            }
            let square = b.iter().map(|b| f64::from(*b).powi(2)).sum::<f64>();
            let portable = exact_lanes(&a, bytes[1..].as_chunks::<4>().0);
            for (dot, found) in [exact_products(&a, &bytes[1..]), portable] {
                prop_assert!((dot - exact).abs() < 1e-12 && (found - square).abs() < 1e-12);
            }
        }

        #[test]
        fn dot_of_codes_equals_the_sum_of_products(pairs in proptest::collection::vec((-1f32..1.0, any::<i8>()), 0..200)) {
            let (a, b): (Vec<f32>, Vec<i8>) = pairs.into_iter().unzip();
            let exact = a.iter().zip(&b).map(|(a, b)| f64::from(*a) * f64::from(*b)).sum::<f64>();
            for found in [dot_codes(&a, &b), lanes::<false, _>(&a, &b, f32::from)] {
                prop_assert!((f64::from(found) - exact).abs() < 1e-2, "{} for {}", found, exact);
            }
        }
    }
}
