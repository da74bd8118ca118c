//! The longest common subsequence of two short sequences.

/// The longest common subsequence, as pairs of indices. Time and space are the product of the lengths.
pub(super) fn common_subsequence(a: &[char], b: &[char]) -> Vec<(usize, usize)> {
    let columns = b.len() + 1;
    let mut lengths = vec![0_u32; (a.len() + 1) * columns];
    let get = |lengths: &[u32], row: usize, column: usize| {
        lengths.get(row * columns + column).copied().unwrap_or(0)
    };
    for (row, x) in a.iter().enumerate().rev() {
        for (column, y) in b.iter().enumerate().rev() {
            let length = if x == y {
                get(&lengths, row + 1, column + 1) + 1
            } else {
                get(&lengths, row + 1, column).max(get(&lengths, row, column + 1))
            };
            if let Some(cell) = lengths.get_mut(row * columns + column) {
                *cell = length;
            }
        }
    }
    let (mut row, mut column, mut pairs) = (0, 0, Vec::new());
    while let (Some(x), Some(y)) = (a.get(row), b.get(column)) {
        if x == y {
            pairs.push((row, column));
            (row, column) = (row + 1, column + 1);
        } else if get(&lengths, row + 1, column) >= get(&lengths, row, column + 1) {
            row += 1;
        } else {
            column += 1;
        }
    }
    pairs
}
