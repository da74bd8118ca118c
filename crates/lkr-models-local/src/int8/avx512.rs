use std::arch::is_x86_feature_detected;
use std::arch::x86_64::{
    __m512i, _mm512_dpbusd_epi32, _mm512_loadu_si512, _mm512_set1_epi32, _mm512_setzero_si512,
    _mm512_storeu_si512,
};

use super::{GROUP, Kernel, MAX_WIDTH, STEP, Sums, TileRows};

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

impl Kernel for Avx512 {
    const WIDTH: usize = LANES * VECTORS;
    const MAX_HEIGHT: usize = 12;

    #[inline(always)]
    fn run<T>(self, body: impl FnOnce() -> T) -> T {
        #[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512dq,avx512vnni")]
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
        let mut sums = unsafe { [[_mm512_setzero_si512(); VECTORS]; HEIGHT] };
        for (at, steps) in panel.iter().enumerate() {
            let groups = rows.map(|row| row.get(at).unwrap_or(&[[0; GROUP]; STEP]));
            for (at, columns) in steps.iter().enumerate() {
                // SAFETY: as above; each array has the 64 bytes that are read.
                let columns: [__m512i; VECTORS] =
                    columns.each_ref().map(|bytes| unsafe { _mm512_loadu_si512(bytes.as_ptr().cast()) });
                for (sums, groups) in sums.iter_mut().zip(groups) {
                    let group = i32::from_le_bytes(groups.get(at).copied().unwrap_or_default());
                    for (sum, columns) in sums.iter_mut().zip(columns) {
                        // SAFETY: the processor has the instructions.
                        *sum = unsafe { _mm512_dpbusd_epi32(*sum, _mm512_set1_epi32(group), columns) };
                    }
                }
            }
        }
        let mut out = [[0; MAX_WIDTH]; HEIGHT];
        for (out, sums) in out.iter_mut().zip(sums) {
            for (out, sum) in out.as_chunks_mut::<LANES>().0.iter_mut().zip(sums) {
                // SAFETY: as above; the array has the 64 bytes that are written.
                unsafe { _mm512_storeu_si512(out.as_mut_ptr().cast(), sum) };
            }
        }
        out
    }
}
