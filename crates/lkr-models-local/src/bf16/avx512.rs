use std::arch::is_x86_feature_detected;
use std::arch::x86_64::{
    __m128bh, __m512, __m512bh, __m512i, _mm256_cvtneps_pbh, _mm256_loadu_ps, _mm512_dpbf16_ps,
    _mm512_loadu_si512, _mm512_set1_epi32, _mm512_setzero_ps, _mm512_storeu_ps,
};
use std::mem::transmute;

use super::pairs::{Pair, STEP, STEP_TERMS, WIDTH};

/// AVX-512 with BF16: each instruction adds 32 products.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Avx512(());

/// The columns of a vector.
const LANES: usize = 16;
const VECTORS: usize = WIDTH / LANES;

/// A pair of terms of each column of a panel, in registers.
pub(super) type Columns = [__m512bh; VECTORS];
/// The sums of a row with the columns of a panel, in registers.
pub(super) type Sums = [__m512; VECTORS];

#[expect(unsafe_code, reason = "instructions beyond the baseline")]
impl Avx512 {
    /// The kernel, if the processor has the instructions.
    pub(super) fn new() -> Option<Self> {
        let detected = is_x86_feature_detected!("avx512f")
            && is_x86_feature_detected!("avx512bw")
            && is_x86_feature_detected!("avx512vl")
            && is_x86_feature_detected!("avx512dq")
            && is_x86_feature_detected!("avx512bf16");
        detected.then_some(Self(()))
    }

    /// Calls `body`, compiled for the instruction set.
    #[inline(always)]
    pub(super) fn run<T>(self, body: impl FnOnce() -> T) -> T {
        #[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512dq,avx512bf16")]
        fn compiled<T>(body: impl FnOnce() -> T) -> T {
            body()
        }
        // SAFETY: the processor has the instructions, or `self` would not exist.
        unsafe { compiled(body) }
    }

    /// Rounds numbers as [`super::rounded`] does.
    #[inline(always)]
    pub(super) fn round(self, numbers: &[f32; STEP_TERMS]) -> [Pair; STEP] {
        // SAFETY: the processor has the instructions, or `self` would not exist; the array has the 32 bytes that are read, and
        // both types are 16 plain bytes.
        unsafe { transmute::<__m128bh, [Pair; STEP]>(_mm256_cvtneps_pbh(_mm256_loadu_ps(numbers.as_ptr()))) }
    }

    /// Sums of no terms.
    #[inline(always)]
    pub(super) fn zero(self) -> Sums {
        // SAFETY: the processor has the instruction, or `self` would not exist.
        unsafe { [_mm512_setzero_ps(); VECTORS] }
    }

    /// Loads a pair of terms of each column.
    #[inline(always)]
    pub(super) fn load(self, columns: &[Pair; WIDTH]) -> Columns {
        let (vectors, _) = columns.as_chunks::<LANES>();
        std::array::from_fn(|at| {
            let pairs = vectors.get(at).unwrap_or(&[0; LANES]);
            // SAFETY: the processor has the instruction, or `self` would not exist; the array has the 64 bytes that are read,
            // and both types are 64 plain bytes.
            unsafe { transmute(_mm512_loadu_si512(pairs.as_ptr().cast())) }
        })
    }

    /// Adds the products of a pair of terms of a row and of the columns.
    #[inline(always)]
    pub(super) fn add(self, mut sums: Sums, pair: Pair, columns: Columns) -> Sums {
        for (sum, columns) in sums.iter_mut().zip(columns) {
            // SAFETY: the processor has the instructions, or `self` would not exist; both types of the pairs are 64 plain bytes.
            *sum = unsafe {
                _mm512_dpbf16_ps(
                    *sum,
                    transmute::<__m512i, __m512bh>(_mm512_set1_epi32(pair.cast_signed())),
                    columns,
                )
            };
        }
        sums
    }

    /// Writes the sums of as many columns as `out` has.
    #[inline(always)]
    pub(super) fn store(self, sums: Sums, out: &mut [f32]) {
        let mut rest = out;
        for sum in sums {
            let (own, after) = rest.split_at_mut(LANES.min(rest.len()));
            // An array of a fixed size, because copying a slice calls a function.
            match own.as_chunks_mut::<LANES>() {
                ([whole], _) => write(sum, whole),
                (_, part) => {
                    let mut numbers = [0.0; LANES];
                    write(sum, &mut numbers);
                    part.iter_mut().zip(numbers).for_each(|(place, number)| *place = number);
                }
            }
            rest = after;
        }

        #[inline(always)]
        fn write(sum: __m512, out: &mut [f32; LANES]) {
            // SAFETY: the processor has the instruction, or there would be no sum; the array has the 64 bytes that are written.
            unsafe { _mm512_storeu_ps(out.as_mut_ptr(), sum) };
        }
    }
}
