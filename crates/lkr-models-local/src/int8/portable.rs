use super::{ByteStep, GROUP, Group, Kernel, MAX_WIDTH, STEP};

/// Plain code, for every processor.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Portable;

/// The columns of a panel.
const WIDTH: usize = 8;

impl Kernel for Portable {
    type Group = Group;
    type RowStep = ByteStep;
    type Columns = [[i8; GROUP]; WIDTH];
    type PanelStep = [Self::Columns; STEP];
    type Loaded = Self::Columns;
    type Sums = [i32; WIDTH];

    const WIDTH: usize = WIDTH;
    const MAX_HEIGHT: usize = 2;

    #[inline(always)]
    fn run<T>(self, body: impl FnOnce() -> T) -> T {
        body()
    }

    #[inline(always)]
    fn zero(self) -> Self::Sums {
        [0; WIDTH]
    }

    #[inline(always)]
    fn load(self, columns: &Self::Columns) -> Self::Loaded {
        *columns
    }

    #[inline(always)]
    fn add(self, mut sums: Self::Sums, group: Group, columns: Self::Loaded) -> Self::Sums {
        for (sum, column) in sums.iter_mut().zip(columns) {
            for (a, b) in group.into_iter().zip(column) {
                *sum += i32::from(a) * i32::from(b);
            }
        }
        sums
    }

    #[inline(always)]
    fn by_column(self, sums: Self::Sums) -> [i32; MAX_WIDTH] {
        let mut out = [0; MAX_WIDTH];
        out.iter_mut().zip(sums).for_each(|(out, sum)| *out = sum);
        out
    }
}
