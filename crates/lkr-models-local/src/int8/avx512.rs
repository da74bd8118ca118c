use std::arch::is_x86_feature_detected;
use std::arch::x86_64::{
    __m512i, _mm512_dpbusd_epi32, _mm512_loadu_si512, _mm512_set1_epi32, _mm512_setzero_si512,
    _mm512_storeu_si512,
};

use super::{ByteStep, GROUP, Group, Kernel, MAX_WIDTH, STEP};

/// AVX-512 with VNNI: each instruction adds 64 products.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Avx512(());

/// The columns of a vector.
const LANES: usize = 16;
const VECTORS: usize = 2;

impl Avx512 {
    /// The kernel, if the processor has the instructions.
    pub(super) fn new() -> Option<Self> {
        let detected = is_x86_feature_detected!("avx512f")
            && is_x86_feature_detected!("avx512bw")
            && is_x86_feature_detected!("avx512vl")
            && is_x86_feature_detected!("avx512dq")
            && is_x86_feature_detected!("avx512vnni");
        detected.then_some(Self(()))
    }
}

#[expect(unsafe_code, reason = "instructions beyond the baseline")]
impl Kernel for Avx512 {
    type Group = Group;
    type RowStep = ByteStep;
    type Columns = [[i8; LANES * GROUP]; VECTORS];
    type PanelStep = [Self::Columns; STEP];
    type Loaded = [__m512i; VECTORS];
    type Sums = [__m512i; VECTORS];

    const WIDTH: usize = LANES * VECTORS;
    const MAX_HEIGHT: usize = 12;

    #[inline(always)]
    fn run<T>(self, body: impl FnOnce() -> T) -> T {
        #[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512dq,avx512vnni")]
        fn compiled<T>(body: impl FnOnce() -> T) -> T {
            body()
        }
        // SAFETY: the processor has the instructions, or `self` would not exist.
        unsafe { compiled(body) }
    }

    #[inline(always)]
    fn zero(self) -> Self::Sums {
        // SAFETY: the processor has the instruction, or `self` would not exist.
        unsafe { [_mm512_setzero_si512(); VECTORS] }
    }

    #[inline(always)]
    fn load(self, columns: &Self::Columns) -> Self::Loaded {
        // SAFETY: the processor has the instruction, or `self` would not exist; each array has the 64 bytes that are read.
        columns.each_ref().map(|bytes| unsafe { _mm512_loadu_si512(bytes.as_ptr().cast()) })
    }

    #[inline(always)]
    fn add(self, mut sums: Self::Sums, group: Group, columns: Self::Loaded) -> Self::Sums {
        for (sum, columns) in sums.iter_mut().zip(columns) {
            // SAFETY: the processor has the instructions, or `self` would not exist.
            *sum =
                unsafe { _mm512_dpbusd_epi32(*sum, _mm512_set1_epi32(i32::from_le_bytes(group)), columns) };
        }
        sums
    }

    #[inline(always)]
    fn by_column(self, sums: Self::Sums) -> [i32; MAX_WIDTH] {
        let mut out = [0; MAX_WIDTH];
        for (out, sum) in out.as_chunks_mut::<LANES>().0.iter_mut().zip(sums) {
            // SAFETY: the processor has the instruction, or `self` would not exist; the array has the 64 bytes that are
            // written.
            unsafe { _mm512_storeu_si512(out.as_mut_ptr().cast(), sum) };
        }
        out
    }
}
