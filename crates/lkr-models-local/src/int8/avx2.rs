use std::arch::is_x86_feature_detected;
use std::arch::x86_64::{
    __m256i, _mm_loadu_si128, _mm256_add_epi32, _mm256_cvtepi8_epi16, _mm256_madd_epi16, _mm256_set1_epi32,
    _mm256_setzero_si256, _mm256_storeu_si256,
};

use super::quantize::WordStep;
use super::{Kernel, MAX_WIDTH, STEP_TERMS};

/// AVX2: bytes are widened to 16 bits, because the instruction for bytes saturates. Rows are widened once, columns as they are read.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Avx2(());

/// The terms that an instruction adds.
const PAIR: usize = 2;
/// The columns of a vector.
const LANES: usize = 8;
const VECTORS: usize = 2;

impl Avx2 {
    /// The kernel, if the processor has the instructions.
    pub(super) fn new() -> Option<Self> {
        is_x86_feature_detected!("avx2").then_some(Self(()))
    }
}

#[expect(unsafe_code, reason = "instructions beyond the baseline")]
impl Kernel for Avx2 {
    type Group = [u16; PAIR];
    type RowStep = WordStep;
    type Columns = [[i8; LANES * PAIR]; VECTORS];
    type PanelStep = [Self::Columns; STEP_TERMS / PAIR];
    type Loaded = [__m256i; VECTORS];
    type Sums = [__m256i; VECTORS];

    const WIDTH: usize = LANES * VECTORS;
    const GROUP: usize = PAIR;
    // With two vectors a row, the sums occupy 12 of 16 registers.
    const MAX_HEIGHT: usize = 6;

    #[inline(always)]
    fn run<T>(self, body: impl FnOnce() -> T) -> T {
        #[target_feature(enable = "avx2")]
        fn compiled<T>(body: impl FnOnce() -> T) -> T {
            body()
        }
        // SAFETY: the processor has the instructions, or `self` would not exist.
        unsafe { compiled(body) }
    }

    #[inline(always)]
    fn zero(self) -> Self::Sums {
        // SAFETY: the processor has the instruction, or `self` would not exist.
        unsafe { [_mm256_setzero_si256(); VECTORS] }
    }

    #[inline(always)]
    fn load(self, columns: &Self::Columns) -> Self::Loaded {
        columns
            .each_ref()
            // SAFETY: the processor has the instructions, or `self` would not exist; each array has the 16 bytes that are read.
            .map(|bytes| unsafe { _mm256_cvtepi8_epi16(_mm_loadu_si128(bytes.as_ptr().cast())) })
    }

    #[inline(always)]
    fn add(self, mut sums: Self::Sums, group: Self::Group, columns: Self::Loaded) -> Self::Sums {
        for (sum, columns) in sums.iter_mut().zip(columns) {
            // SAFETY: the processor has the instructions, or `self` would not exist.
            *sum = unsafe {
                let group = _mm256_set1_epi32(bytemuck::cast(group));
                _mm256_add_epi32(*sum, _mm256_madd_epi16(group, columns))
            };
        }
        sums
    }

    #[inline(always)]
    fn by_column(self, sums: Self::Sums) -> [i32; MAX_WIDTH] {
        let mut out = [0; MAX_WIDTH];
        for (out, sum) in out.as_chunks_mut::<LANES>().0.iter_mut().zip(sums) {
            // SAFETY: the processor has the instruction, or `self` would not exist; the array has the 32 bytes that are
            // written.
            unsafe { _mm256_storeu_si256(out.as_mut_ptr().cast(), sum) };
        }
        out
    }
}
