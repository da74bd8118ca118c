use std::arch::is_x86_feature_detected;
use std::arch::x86_64::{
    __m256i, _mm256_dpbusd_avx_epi32, _mm256_loadu_si256, _mm256_set1_epi32, _mm256_setzero_si256,
    _mm256_storeu_si256,
};

use super::{ByteStep, GROUP, Group, Kernel, MAX_WIDTH, STEP};

/// AVX-VNNI, which processors without AVX-512 may have: each instruction adds 32 products.
#[derive(Debug, Clone, Copy)]
pub(crate) struct AvxVnni(());

/// The columns of a vector.
const LANES: usize = 8;
const VECTORS: usize = 2;

impl AvxVnni {
    /// The kernel, if the processor has the instructions.
    pub(super) fn new() -> Option<Self> {
        (is_x86_feature_detected!("avx2") && is_x86_feature_detected!("avxvnni")).then_some(Self(()))
    }
}

#[expect(unsafe_code, reason = "instructions beyond the baseline")]
impl Kernel for AvxVnni {
    type Group = Group;
    type RowStep = ByteStep;
    type Columns = [[i8; LANES * GROUP]; VECTORS];
    type PanelStep = [Self::Columns; STEP];
    type Loaded = [__m256i; VECTORS];
    type Sums = [__m256i; VECTORS];

    const WIDTH: usize = LANES * VECTORS;
    // With two vectors a row, the sums occupy 12 of 16 registers.
    const MAX_HEIGHT: usize = 6;

    #[inline(always)]
    fn run<T>(self, body: impl FnOnce() -> T) -> T {
        #[target_feature(enable = "avx2,avxvnni")]
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
        // SAFETY: the processor has the instruction, or `self` would not exist; each array has the 32 bytes that are read.
        columns.each_ref().map(|bytes| unsafe { _mm256_loadu_si256(bytes.as_ptr().cast()) })
    }

    #[inline(always)]
    fn add(self, mut sums: Self::Sums, group: Group, columns: Self::Loaded) -> Self::Sums {
        for (sum, columns) in sums.iter_mut().zip(columns) {
            // SAFETY: the processor has the instructions, or `self` would not exist.
            *sum = unsafe {
                _mm256_dpbusd_avx_epi32(*sum, _mm256_set1_epi32(i32::from_le_bytes(group)), columns)
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
