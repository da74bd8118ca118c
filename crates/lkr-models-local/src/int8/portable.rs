use super::{GROUP, Kernel, MAX_WIDTH, STEP, Sums, TileRows};

/// Plain code, for every processor.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Portable;

impl Kernel for Portable {
    const WIDTH: usize = 8;
    const MAX_HEIGHT: usize = 2;

    #[inline(always)]
    fn run<T>(self, body: impl FnOnce() -> T) -> T {
        body()
    }

    #[inline(always)]
    fn multiply<const HEIGHT: usize>(self, rows: TileRows<'_, HEIGHT>, panel: &[i8]) -> Sums<HEIGHT> {
        let (panel, _) = panel.as_chunks::<GROUP>();
        let (panel, _) = panel.as_chunks::<{ Self::WIDTH }>();
        let (panel, _) = panel.as_chunks::<STEP>();
        let mut sums = [[0; MAX_WIDTH]; HEIGHT];
        for (at, steps) in panel.iter().enumerate() {
            let groups = rows.map(|row| row.get(at).unwrap_or(&[[0; GROUP]; STEP]));
            for (at, columns) in steps.iter().enumerate() {
                for (sums, groups) in sums.iter_mut().zip(groups) {
                    let group = groups.get(at).copied().unwrap_or_default();
                    for (sum, column) in sums.iter_mut().zip(columns) {
                        for (&a, &b) in group.iter().zip(column) {
                            *sum += i32::from(a) * i32::from(b);
                        }
                    }
                }
            }
        }
        sums
    }
}
