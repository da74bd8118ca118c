use std::arch::{
    aarch64::{
        int8x16_t, int32x4_t, vaddq_s32, vdupq_n_s32, vget_low_s8, vld1q_s8, vmull_high_s8, vmull_s8,
        vpaddlq_s16, vpaddq_s32, vreinterpretq_s8_s32, vst1q_s32,
    },
    asm, is_aarch64_feature_detected,
};

use super::{ByteStep, GROUP, Group, Kernel, MAX_WIDTH, STEP};

/// The columns of a vector.
const LANES: usize = 4;
const VECTORS: usize = 4;

/// A group of terms of each column of a panel.
type Columns = [[i8; LANES * GROUP]; VECTORS];

/// What is subtracted from the terms of rows: the instructions multiply signed bytes.
const OFFSET: i32 = 128;

/// NEON without further instructions, which every 64-bit ARM processor has.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Neon;

/// NEON with dot products (`FEAT_DotProd`): each instruction adds 16 products.
#[derive(Debug, Clone, Copy)]
pub(crate) struct NeonDot(());

impl NeonDot {
    /// The kernel, if the processor has the instruction.
    pub(super) fn new() -> Option<Self> {
        is_aarch64_feature_detected!("dotprod").then_some(Self(()))
    }
}

/// A group of terms less [`OFFSET`], for each column of a vector.
#[inline(always)]
fn signed(group: Group) -> int8x16_t {
    let signed = u32::from_le_bytes(group) ^ u32::from_le_bytes([OFFSET as u8; GROUP]);
    // SAFETY: every processor of this architecture has NEON.
    #[expect(unsafe_code, reason = "instructions are unsafe functions")]
    unsafe {
        vreinterpretq_s8_s32(vdupq_n_s32(signed as i32))
    }
}

#[inline(always)]
fn zero() -> [int32x4_t; VECTORS] {
    // SAFETY: every processor of this architecture has NEON.
    #[expect(unsafe_code, reason = "instructions are unsafe functions")]
    unsafe {
        [vdupq_n_s32(0); VECTORS]
    }
}

#[inline(always)]
fn load(columns: &Columns) -> [int8x16_t; VECTORS] {
    // SAFETY: every processor of this architecture has NEON; each array has the 16 bytes that are read.
    #[expect(unsafe_code, reason = "instructions are unsafe functions")]
    columns.each_ref().map(|bytes| unsafe { vld1q_s8(bytes.as_ptr()) })
}

#[inline(always)]
fn by_column(sums: [int32x4_t; VECTORS]) -> [i32; MAX_WIDTH] {
    let mut out = [0; MAX_WIDTH];
    for (out, sum) in out.as_chunks_mut::<LANES>().0.iter_mut().zip(sums) {
        // SAFETY: every processor of this architecture has NEON; the array has the 16 bytes that are written.
        #[expect(unsafe_code, reason = "instructions are unsafe functions")]
        unsafe {
            vst1q_s32(out.as_mut_ptr(), sum);
        }
    }
    out
}

impl Kernel for Neon {
    type Group = Group;
    type RowStep = ByteStep;
    type Columns = Columns;
    type PanelStep = [Columns; STEP];
    type Loaded = [int8x16_t; VECTORS];
    type Sums = [int32x4_t; VECTORS];

    const WIDTH: usize = LANES * VECTORS;
    const MAX_HEIGHT: usize = 4;
    const OFFSET: i32 = OFFSET;

    #[inline(always)]
    fn run<T>(self, body: impl FnOnce() -> T) -> T {
        body()
    }

    #[inline(always)]
    fn zero(self) -> Self::Sums {
        zero()
    }

    #[inline(always)]
    fn load(self, columns: &Self::Columns) -> Self::Loaded {
        load(columns)
    }

    #[inline(always)]
    fn add(self, mut sums: Self::Sums, group: Group, columns: Self::Loaded) -> Self::Sums {
        let row = signed(group);
        for (sum, columns) in sums.iter_mut().zip(columns) {
            // SAFETY: every processor of this architecture has NEON.
            #[expect(unsafe_code, reason = "instructions are unsafe functions")]
            unsafe {
                // Products of bytes fit into 16 bits: 128 · 127 < 2¹⁵.
                let first = vpaddlq_s16(vmull_s8(vget_low_s8(row), vget_low_s8(columns)));
                let second = vpaddlq_s16(vmull_high_s8(row, columns));
                *sum = vaddq_s32(*sum, vpaddq_s32(first, second));
            }
        }
        sums
    }

    #[inline(always)]
    fn by_column(self, sums: Self::Sums) -> [i32; MAX_WIDTH] {
        by_column(sums)
    }
}

impl Kernel for NeonDot {
    type Group = Group;
    type RowStep = ByteStep;
    type Columns = Columns;
    type PanelStep = [Columns; STEP];
    type Loaded = [int8x16_t; VECTORS];
    type Sums = [int32x4_t; VECTORS];

    const WIDTH: usize = LANES * VECTORS;
    /// The sums occupy 24 of 32 registers.
    const MAX_HEIGHT: usize = 6;
    const OFFSET: i32 = OFFSET;

    #[inline(always)]
    fn run<T>(self, body: impl FnOnce() -> T) -> T {
        #[target_feature(enable = "neon,dotprod")]
        fn compiled<T>(body: impl FnOnce() -> T) -> T {
            body()
        }
        // SAFETY: the processor has the instructions, or `self` would not exist.
        #[expect(unsafe_code, reason = "instructions beyond the baseline")]
        unsafe {
            compiled(body)
        }
    }

    #[inline(always)]
    fn zero(self) -> Self::Sums {
        zero()
    }

    #[inline(always)]
    fn load(self, columns: &Self::Columns) -> Self::Loaded {
        load(columns)
    }

    #[inline(always)]
    fn add(self, mut sums: Self::Sums, group: Group, columns: Self::Loaded) -> Self::Sums {
        let row = signed(group);
        for (sum, columns) in sums.iter_mut().zip(columns) {
            // The function for the instruction is unstable in Rust: rust-lang/rust#117224.
            // SAFETY: the processor has the instruction, or `self` would not exist. It reads and writes these registers alone.
            #[expect(unsafe_code, reason = "an instruction beyond the baseline")]
            unsafe {
                asm!(
                    ".arch_extension dotprod",
                    "sdot {sum:v}.4s, {row:v}.16b, {columns:v}.16b",
                    sum = inout(vreg) *sum,
                    row = in(vreg) row,
                    columns = in(vreg) columns,
                    options(pure, nomem, nostack, preserves_flags)
                );
            }
        }
        sums
    }

    #[inline(always)]
    fn by_column(self, sums: Self::Sums) -> [i32; MAX_WIDTH] {
        by_column(sums)
    }
}
