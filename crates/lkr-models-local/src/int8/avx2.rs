use std::arch::is_x86_feature_detected;
use std::arch::x86_64::{
    _mm_loadu_si128, _mm_set1_epi32, _mm256_add_epi32, _mm256_cvtepi8_epi16, _mm256_cvtepu8_epi16,
    _mm256_madd_epi16, _mm256_setzero_si256, _mm256_storeu_si256,
};

use super::{GROUP, Kernel, MAX_WIDTH, STEP, Sums, TileRows};

/// AVX2: bytes are widened to 16 bits, because the instruction for bytes saturates.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Avx2(());

/// The columns of a vector: of each, two sums of two terms.
const LANES: usize = 4;
const VECTORS: usize = 4;

impl Avx2 {
    /// The kernel, if the processor has the instructions.
    pub(super) fn new() -> Option<Self> {
        is_x86_feature_detected!("avx2").then_some(Self(()))
    }
}

impl Kernel for Avx2 {
    const WIDTH: usize = LANES * VECTORS;
    const MAX_HEIGHT: usize = 2;

    #[inline(always)]
    fn run<T>(self, body: impl FnOnce() -> T) -> T {
        #[target_feature(enable = "avx2")]
        fn compiled<T>(body: impl FnOnce() -> T) -> T {
            body()
        }
        #[expect(unsafe_code, reason = "instructions beyond the baseline")]
        // SAFETY: the processor has the instructions, or `self` would not exist.
        unsafe {
            compiled(body)
        }
    }

    #[expect(unsafe_code, reason = "instructions beyond the baseline")]
    #[inline(always)]
    fn multiply<const HEIGHT: usize>(self, rows: TileRows<'_, HEIGHT>, panel: &[i8]) -> Sums<HEIGHT> {
        let (panel, _) = panel.as_chunks::<{ LANES * GROUP }>();
        let (panel, _) = panel.as_chunks::<VECTORS>();
        let (panel, _) = panel.as_chunks::<STEP>();
        // SAFETY: the processor has the instructions, or `self` would not exist.
        let mut sums = unsafe { [[_mm256_setzero_si256(); VECTORS]; HEIGHT] };
        for (at, steps) in panel.iter().enumerate() {
            let groups = rows.map(|row| row.get(at).unwrap_or(&[[0; GROUP]; STEP]));
            for (at, columns) in steps.iter().enumerate() {
                // SAFETY: as above; each array has the 16 bytes that are read.
                let columns = columns
                    .each_ref()
                    .map(|bytes| unsafe { _mm256_cvtepi8_epi16(_mm_loadu_si128(bytes.as_ptr().cast())) });
                for (sums, groups) in sums.iter_mut().zip(groups) {
                    let group = i32::from_le_bytes(groups.get(at).copied().unwrap_or_default());
                    for (sum, columns) in sums.iter_mut().zip(columns) {
                        // SAFETY: the processor has the instructions.
                        *sum = unsafe {
                            let group = _mm256_cvtepu8_epi16(_mm_set1_epi32(group));
                            _mm256_add_epi32(*sum, _mm256_madd_epi16(group, columns))
                        };
                    }
                }
            }
        }
        let mut out = [[0; MAX_WIDTH]; HEIGHT];
        for (out, sums) in out.iter_mut().zip(sums) {
            for (out, sum) in out.as_chunks_mut::<LANES>().0.iter_mut().zip(sums) {
                let mut halves = [[0; 2]; LANES];
                // SAFETY: as above; the array has the 32 bytes that are written.
                unsafe { _mm256_storeu_si256(halves.as_mut_ptr().cast(), sum) };
                *out = halves.map(|[a, b]| a + b);
            }
        }
        out
    }
}
