//! Products of a query and stored values, vectorised.

/// The number of independent sums: four registers of eight values.
pub(crate) const LANES: usize = 32;

/// The bytes of a cache line.
#[cfg(target_arch = "x86_64")]
const CACHE_LINE: usize = 64;

/// `Σ query · row`, where `row` contains little-endian values at any alignment.
pub(crate) fn dot(query: &[f32], row: &[[u8; 4]]) -> f32 {
    dot_of(query, row, f32::from_le_bytes)
}

/// `Σ query · row`, where `row` contains little-endian values of half precision at any alignment.
pub(crate) fn dot_halves(query: &[f32], row: &[[u8; 2]]) -> f32 {
    #[cfg(target_arch = "x86_64")]
    if has_extensions() {
        // SAFETY: the check above found the instructions that the function was compiled for.
        #[expect(unsafe_code, reason = "a function compiled for more than the least processor")]
        return unsafe { dot_halves_f16c(query, row) };
    }
    lanes::<false, _>(query, row, half_value)
}

/// The largest number in a query of so many dimensions for [`dot_codes`].
pub(crate) fn max_query_code(dims: usize) -> i16 {
    i16::try_from(((1 << 24) / dims.max(1)).saturating_sub(1)).unwrap_or(i16::MAX)
}

/// `Σ query · codes`, where `codes` are numbers with a sign, and those of the query at most [`max_query_code`].
pub(crate) fn dot_codes(query: &[i16], codes: &[u8]) -> i32 {
    #[cfg(target_arch = "x86_64")]
    if has_vnni() {
        // SAFETY: the check above found the instructions that the function was compiled for.
        #[expect(unsafe_code, reason = "a function compiled for more than the least processor")]
        return unsafe { dot_codes_vnni(query, codes) };
    }
    #[cfg(target_arch = "x86_64")]
    if has_extensions() {
        // SAFETY: the check above found the instructions that the function was compiled for.
        #[expect(unsafe_code, reason = "a function compiled for more than the least processor")]
        return unsafe { dot_codes_avx2(query, codes) };
    }
    sum_of_products(query, codes)
}

/// Prefetches as many bytes as `bytes` has, from `ahead` bytes behind its beginning on. They need not exist.
pub(crate) fn prefetch(bytes: &[u8], ahead: usize) {
    #[cfg(target_arch = "x86_64")]
    for line in (0..bytes.len()).step_by(CACHE_LINE) {
        let address = bytes.as_ptr().wrapping_add(ahead + line);
        // SAFETY: every processor of this architecture has the instruction, which reads nothing that the program sees and ignores
        // addresses that are not mapped.
        #[expect(unsafe_code, reason = "an instruction that takes an address")]
        unsafe {
            std::arch::x86_64::_mm_prefetch::<{ std::arch::x86_64::_MM_HINT_T0 }>(address.cast());
        }
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = (bytes, ahead);
}

/// Multiplies and adds pairs by the instruction for it, of whose registers compilers fill the half.
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2")]
#[expect(unsafe_code, reason = "values are moved between memory and registers")]
fn dot_codes_avx2(query: &[i16], codes: &[u8]) -> i32 {
    use std::arch::x86_64::{
        _mm_loadu_si128, _mm256_add_epi32, _mm256_cvtepi8_epi16, _mm256_loadu_si256, _mm256_madd_epi16,
        _mm256_setzero_si256, _mm256_storeu_si256,
    };

    let (queries, query_rest) = query.as_chunks::<16>();
    let (rows, row_rest) = codes.as_chunks::<16>();
    let mut sums = _mm256_setzero_si256();
    for (query, row) in queries.iter().zip(rows) {
        // SAFETY: both arrays have as many bytes as are read, at any alignment.
        let (query, row) =
            unsafe { (_mm256_loadu_si256(query.as_ptr().cast()), _mm_loadu_si128(row.as_ptr().cast())) };
        sums = _mm256_add_epi32(sums, _mm256_madd_epi16(query, _mm256_cvtepi8_epi16(row)));
    }
    let mut lanes = [0_i32; REGISTER];
    // SAFETY: the array has as many bytes as are written, at any alignment.
    unsafe { _mm256_storeu_si256(lanes.as_mut_ptr().cast(), sums) };
    lanes.iter().fold(sum_of_products(query_rest, row_rest), |sum, lane| sum.wrapping_add(*lane))
}

/// Multiplies and adds 32 pairs at a time, into two sums, so that none waits for the one before it.
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx512f,avx512bw,avx512vnni")]
#[expect(unsafe_code, reason = "values are moved between memory and registers")]
fn dot_codes_vnni(query: &[i16], codes: &[u8]) -> i32 {
    use std::arch::x86_64::{
        _mm256_loadu_si256, _mm512_add_epi32, _mm512_cvtepi8_epi16, _mm512_dpwssd_epi32, _mm512_loadu_si512,
        _mm512_reduce_add_epi32, _mm512_setzero_si512,
    };

    let (queries, query_rest) = query.as_chunks::<64>();
    let (rows, row_rest) = codes.as_chunks::<64>();
    let mut sums = [_mm512_setzero_si512(); 2];
    for (query, row) in queries.iter().zip(rows) {
        let halves = query.as_chunks::<32>().0.iter().zip(row.as_chunks::<32>().0);
        for (sum, (query, row)) in sums.iter_mut().zip(halves) {
            // SAFETY: both arrays have as many bytes as are read, at any alignment.
            let (query, row) = unsafe {
                (_mm512_loadu_si512(query.as_ptr().cast()), _mm256_loadu_si256(row.as_ptr().cast()))
            };
            *sum = _mm512_dpwssd_epi32(*sum, query, _mm512_cvtepi8_epi16(row));
        }
    }
    let [even, odd] = sums;
    let sum = _mm512_reduce_add_epi32(_mm512_add_epi32(even, odd));
    sum.wrapping_add(sum_of_products(query_rest, row_rest))
}

#[inline(always)]
fn sum_of_products(query: &[i16], codes: &[u8]) -> i32 {
    let products = query.iter().zip(codes).map(|(a, b)| i32::from(*a) * i32::from(b.cast_signed()));
    products.fold(0, i32::wrapping_add)
}

/// `Σ query · row` and `Σ row · row` in double precision, where `row` contains little-endian values at any alignment.
pub(crate) fn exact_products(query: &[f32], row: &[[u8; 4]]) -> (f64, f64) {
    #[cfg(target_arch = "x86_64")]
    if has_extensions() {
        // SAFETY: the check above found the instructions that the function was compiled for.
        #[expect(unsafe_code, reason = "a function compiled for more than the least processor")]
        return unsafe { exact_products_avx2(query, row) };
    }
    exact_lanes(query, row, |values| values.map(f32::from_le_bytes))
}

/// The same of little-endian values of half precision.
pub(crate) fn exact_products_of_halves(query: &[f32], row: &[[u8; 2]]) -> (f64, f64) {
    #[cfg(target_arch = "x86_64")]
    if has_extensions() && std::arch::is_x86_feature_detected!("avx512f") {
        // SAFETY: the check above found the instructions that the function was compiled for.
        #[expect(unsafe_code, reason = "a function compiled for more than the least processor")]
        return unsafe { exact_products_of_halves_avx512(query, row) };
    }
    #[cfg(target_arch = "x86_64")]
    if has_extensions() {
        // SAFETY: the check above found the instructions that the function was compiled for.
        #[expect(unsafe_code, reason = "a function compiled for more than the least processor")]
        return unsafe { exact_products_of_halves_avx2(query, row) };
    }
    exact_lanes(query, row, |values| values.map(half_value))
}

/// A finite value of half precision. Compilers can vectorise it.
#[inline(always)]
fn half_value(bytes: [u8; 2]) -> f32 {
    /// The sign, and the exponent and the fraction of half precision moved to where single precision has them.
    const SIGN_AND_VALUE: u32 = 0x8FFF_E000;
    // The exponents of single precision are offset by 127, those of half precision by 15. The product is right for the values
    // without a leading one, too.
    const OFFSET: f32 = f32::from_bits((127 + 127 - 15) << 23);
    let bits = (i32::from(i16::from_le_bytes(bytes)) << 13) as u32;
    f32::from_bits(bits & SIGN_AND_VALUE) * OFFSET
}

#[inline(always)]
fn dot_of<T: Copy>(query: &[f32], row: &[T], value: impl Fn(T) -> f32 + Copy) -> f32 {
    #[cfg(target_arch = "x86_64")]
    if has_extensions() {
        // SAFETY: the check above found the instructions that the function was compiled for.
        #[expect(unsafe_code, reason = "a function compiled for more than the least processor")]
        return unsafe { dot_avx2(query, row, value) };
    }
    lanes::<false, T>(query, row, value)
}

/// Whether the processor has what the functions below use. Each one with AVX2 has F16C.
#[cfg(target_arch = "x86_64")]
fn has_extensions() -> bool {
    std::arch::is_x86_feature_detected!("avx2")
        && std::arch::is_x86_feature_detected!("fma")
        && std::arch::is_x86_feature_detected!("f16c")
}

/// Whether the processor has what [`dot_codes_vnni`] uses.
#[cfg(target_arch = "x86_64")]
fn has_vnni() -> bool {
    std::arch::is_x86_feature_detected!("avx512f")
        && std::arch::is_x86_feature_detected!("avx512bw")
        && std::arch::is_x86_feature_detected!("avx512vnni")
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2,fma")]
fn dot_avx2<T: Copy>(query: &[f32], row: &[T], value: impl Fn(T) -> f32 + Copy) -> f32 {
    lanes::<true, T>(query, row, value)
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2,fma")]
fn exact_products_avx2(query: &[f32], row: &[[u8; 4]]) -> (f64, f64) {
    exact_lanes(query, row, |values| values.map(f32::from_le_bytes))
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2,fma,f16c")]
fn exact_products_of_halves_avx2(query: &[f32], row: &[[u8; 2]]) -> (f64, f64) {
    exact_lanes(query, row, |values| values_of_halves(values))
}

/// With registers that are twice as wide.
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx512f,avx2,fma,f16c")]
fn exact_products_of_halves_avx512(query: &[f32], row: &[[u8; 2]]) -> (f64, f64) {
    exact_lanes(query, row, |values| values_of_halves(values))
}

/// Converts by the instruction for it, which compilers do not choose.
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2,fma,f16c")]
fn dot_halves_f16c(query: &[f32], row: &[[u8; 2]]) -> f32 {
    let (queries, query_rest) = query.as_chunks::<LANES>();
    let (rows, row_rest) = row.as_chunks::<LANES>();
    let mut sums = [[0.0; REGISTER]; LANES / REGISTER];
    for (query, row) in queries.iter().zip(rows) {
        let registers = query.as_chunks::<REGISTER>().0.iter().zip(row.as_chunks::<REGISTER>().0);
        for (sum, (query, row)) in sums.iter_mut().zip(registers) {
            for ((sum, a), b) in sum.iter_mut().zip(query).zip(values_of_halves(row)) {
                *sum = a.mul_add(b, *sum);
            }
        }
    }
    sums.as_flattened().iter().sum::<f32>() + lanes::<true, _>(query_rest, row_rest, half_value)
}

/// The values of 32 bits in a register.
#[cfg(target_arch = "x86_64")]
const REGISTER: usize = 8;

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx,f16c")]
#[expect(unsafe_code, reason = "values are moved between memory and registers")]
fn values_of_halves(halves: &[[u8; 2]; REGISTER]) -> [f32; REGISTER] {
    use std::arch::x86_64::{_mm_loadu_si128, _mm256_cvtph_ps, _mm256_storeu_ps};

    let mut values = [0.0; REGISTER];
    // SAFETY: both arrays have as many bytes as are read and written, at any alignment.
    unsafe {
        let halves = _mm_loadu_si128(halves.as_ptr().cast());
        _mm256_storeu_ps(values.as_mut_ptr(), _mm256_cvtph_ps(halves));
    }
    values
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

/// The lanes of exact products: two registers of four values for each sum, or one of eight. The order of the sums does not depend
/// on the registers, so the products are the same on all processors.
const EXACT_LANES: usize = 8;

/// `values` are those of eight elements of the row.
#[inline(always)]
fn exact_lanes<T: Copy + Default>(
    query: &[f32],
    row: &[T],
    values: impl Fn(&[T; EXACT_LANES]) -> [f32; EXACT_LANES],
) -> (f64, f64) {
    let (queries, query_rest) = query.as_chunks::<EXACT_LANES>();
    let (rows, row_rest) = row.as_chunks::<EXACT_LANES>();
    let (mut dots, mut squares) = ([0.0; EXACT_LANES], [0.0; EXACT_LANES]);
    let mut add = |query: &[f32; EXACT_LANES], row: &[T; EXACT_LANES]| {
        for (((dot, square), a), b) in dots.iter_mut().zip(&mut squares).zip(query).zip(values(row)) {
            let b = f64::from(b);
            *dot += f64::from(*a) * b;
            *square += b * b;
        }
    };
    queries.iter().zip(rows).for_each(|(query, row)| add(query, row));
    // Zeros in place of what the last ones lack add nothing.
    let (mut last_query, mut last_row) = ([0.0; EXACT_LANES], [T::default(); EXACT_LANES]);
    last_query.iter_mut().zip(query_rest).for_each(|(to, from)| *to = *from);
    last_row.iter_mut().zip(row_rest).for_each(|(to, from)| *to = *from);
    add(&last_query, &last_row);
    (dots.iter().sum(), squares.iter().sum())
}

#[cfg(test)]
mod tests {
    use half::f16;
    use proptest::prelude::*;

    use super::*;

    fn exact_dot(a: &[f32], b: &[f32]) -> f64 {
        a.iter().zip(b).map(|(a, b)| f64::from(*a) * f64::from(*b)).sum()
    }

    fn exact_square(vector: &[f32]) -> f64 {
        exact_dot(vector, vector)
    }

    #[test]
    fn each_finite_half_has_its_value() {
        for half in (0..=u16::MAX).map(f16::from_bits).filter(|half| half.is_finite()) {
            assert_eq!(half_value(half.to_le_bytes()).to_bits(), half.to_f32().to_bits(), "{half}");
        }
    }

    proptest! {
        #[test]
        fn dot_equals_the_sum_of_products(pairs in proptest::collection::vec((-1f32..1.0, -1f32..1.0), 0..200)) {
            let (a, b): (Vec<f32>, Vec<f32>) = pairs.into_iter().unzip();
            // A byte before the values makes them unaligned.
            let bytes: Vec<u8> = std::iter::once(0).chain(b.iter().flat_map(|b| b.to_le_bytes())).collect();
            let row = bytes[1..].as_chunks::<4>().0;
            let (exact, square) = (exact_dot(&a, &b), exact_square(&b));
            for found in [dot(&a, row), lanes::<false, _>(&a, row, f32::from_le_bytes)] {
                prop_assert!((f64::from(found) - exact).abs() < 1e-4, "{} for {}", found, exact);
            }
            for (dot, found) in [exact_products(&a, row), exact_lanes(&a, row, |values| values.map(f32::from_le_bytes))] {
                prop_assert!((dot - exact).abs() < 1e-12 && (found - square).abs() < 1e-12);
            }
        }

        #[test]
        fn dot_of_halves_equals_the_sum_of_products(
            pairs in proptest::collection::vec((-1f32..1.0, prop_oneof![-1f32..1.0, -1e-4f32..1e-4]), 0..200),
        ) {
            let (a, b): (Vec<f32>, Vec<f32>) = pairs.into_iter().unzip();
            let halves: Vec<f16> = b.into_iter().map(f16::from_f32).collect();
            let b: Vec<f32> = halves.iter().copied().map(f16::to_f32).collect();
            let bytes: Vec<u8> = std::iter::once(0).chain(halves.iter().flat_map(|b| b.to_le_bytes())).collect();
            let row = bytes[1..].as_chunks::<2>().0;
            let (exact, square) = (exact_dot(&a, &b), exact_square(&b));
            for found in [dot_halves(&a, row), lanes::<false, _>(&a, row, half_value)] {
                prop_assert!((f64::from(found) - exact).abs() < 1e-4, "{} for {}", found, exact);
            }
            let (dot, found) = exact_products_of_halves(&a, row);
            prop_assert!((dot - exact).abs() < 1e-12 && (found - square).abs() < 1e-12);
            prop_assert_eq!((dot, found), exact_lanes(&a, row, |values| values.map(half_value)), "on all processors");
            #[cfg(target_arch = "x86_64")]
            if has_extensions() {
                // SAFETY: the check above found the instructions that the function was compiled for.
                #[expect(unsafe_code, reason = "the function that processors without AVX-512 use")]
                let avx2 = unsafe { exact_products_of_halves_avx2(&a, row) };
                prop_assert_eq!((dot, found), avx2);
            }
        }

        #[test]
        fn dot_of_codes_is_exact(pairs in proptest::collection::vec((any::<i16>(), any::<u8>()), 0..600)) {
            let (a, b): (Vec<i16>, Vec<u8>) = pairs.into_iter().unzip();
            let most = max_query_code(a.len());
            let a: Vec<i16> = a.into_iter().map(|value| value.clamp(-most, most)).collect();
            let exact: i64 = a.iter().zip(&b).map(|(a, b)| i64::from(*a) * i64::from(*b as i8)).sum();
            prop_assert_eq!(i64::from(dot_codes(&a, &b)), exact);
            prop_assert_eq!(i64::from(sum_of_products(&a, &b)), exact);
            #[cfg(target_arch = "x86_64")]
            if has_extensions() {
                // SAFETY: the check above found the instructions that the function was compiled for.
                #[expect(unsafe_code, reason = "the function that processors without VNNI use")]
                let avx2 = unsafe { dot_codes_avx2(&a, &b) };
                prop_assert_eq!(i64::from(avx2), exact);
            }
        }
    }

    #[test]
    fn dot_of_the_largest_codes_does_not_overflow() {
        for dims in [1, 384, 511, 512, 513, 1_024, 4_096, 65_535] {
            let most = max_query_code(dims);
            let exact = -128 * i64::from(most) * dims as i64;
            assert_eq!(i64::from(dot_codes(&vec![most; dims], &vec![0x80; dims])), exact);
        }
    }
}
