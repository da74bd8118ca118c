//! The dot product of a query and stored values, vectorised.

/// The number of independent sums: four registers of eight values.
const LANES: usize = 32;

/// `Σ query · row`, where `row` contains little-endian values at any alignment.
pub(crate) fn dot(query: &[f32], row: &[u8]) -> f32 {
    #[cfg(target_arch = "x86_64")]
    if std::arch::is_x86_feature_detected!("avx2") && std::arch::is_x86_feature_detected!("fma") {
        // SAFETY: the check above found the instructions that the function was compiled for.
        #[expect(unsafe_code, reason = "a function compiled for more than the least processor")]
        return unsafe { dot_avx2(query, row) };
    }
    lanes::<false>(query, row)
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2,fma")]
fn dot_avx2(query: &[f32], row: &[u8]) -> f32 {
    lanes::<true>(query, row)
}

/// Lanes are independent, so that the compiler can vectorise the loop.
#[inline(always)]
fn lanes<const FUSED: bool>(query: &[f32], row: &[u8]) -> f32 {
    let (queries, query_rest) = query.as_chunks::<LANES>();
    let (rows, row_rest) = row.as_chunks::<{ 4 * LANES }>();
    let mut sums = [0.0; LANES];
    for (query, row) in queries.iter().zip(rows) {
        for ((sum, a), b) in sums.iter_mut().zip(query).zip(row.as_chunks::<4>().0) {
            *sum = add_product::<FUSED>(*sum, *a, f32::from_le_bytes(*b));
        }
    }
    let rest = query_rest.iter().zip(row_rest.as_chunks::<4>().0);
    let rest = rest.fold(0.0, |sum, (a, b)| add_product::<FUSED>(sum, *a, f32::from_le_bytes(*b)));
    sums.iter().sum::<f32>() + rest
}

#[inline(always)]
fn add_product<const FUSED: bool>(sum: f32, a: f32, b: f32) -> f32 {
    if FUSED { a.mul_add(b, sum) } else { sum + a * b }
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
            for found in [dot(&a, &bytes[1..]), lanes::<false>(&a, &bytes[1..])] {
                prop_assert!((f64::from(found) - exact).abs() < 1e-4, "{} for {}", found, exact);
            }
        }
    }
}
