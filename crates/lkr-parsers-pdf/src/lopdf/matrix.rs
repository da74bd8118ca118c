use crate::page::Rect;

/// A transformation of the plane: `x' = a·x + c·y + e`, `y' = b·x + d·y + f`.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Matrix {
    pub(super) a: f32,
    pub(super) b: f32,
    pub(super) c: f32,
    pub(super) d: f32,
    pub(super) e: f32,
    pub(super) f: f32,
}

impl Matrix {
    pub(super) const IDENTITY: Self = Self::new([1.0, 0.0, 0.0, 1.0, 0.0, 0.0]);

    pub(super) const fn new([a, b, c, d, e, f]: [f32; 6]) -> Self {
        Self { a, b, c, d, e, f }
    }

    pub(super) const fn shift(x: f32, y: f32) -> Self {
        Self::new([1.0, 0.0, 0.0, 1.0, x, y])
    }

    /// This transformation followed by `next`.
    pub(super) fn then(self, next: Self) -> Self {
        Self {
            a: self.a * next.a + self.b * next.c,
            b: self.a * next.b + self.b * next.d,
            c: self.c * next.a + self.d * next.c,
            d: self.c * next.b + self.d * next.d,
            e: self.e * next.a + self.f * next.c + next.e,
            f: self.e * next.b + self.f * next.d + next.f,
        }
    }

    pub(super) fn apply(self, x: f32, y: f32) -> (f32, f32) {
        (self.a * x + self.c * y + self.e, self.b * x + self.d * y + self.f)
    }

    /// The bounding box of a transformed rectangle.
    pub(super) fn transform(self, area: Rect) -> Rect {
        let corners = [
            (area.left, area.bottom),
            (area.right, area.bottom),
            (area.left, area.top),
            (area.right, area.top),
        ];
        let points = corners.map(|(x, y)| self.apply(x, y));
        let fold = |pick: fn(f32, f32) -> f32, part: fn((f32, f32)) -> f32| {
            points.into_iter().map(part).reduce(pick).unwrap_or(f32::NAN)
        };
        Rect {
            left: fold(f32::min, |point| point.0),
            bottom: fold(f32::min, |point| point.1),
            right: fold(f32::max, |point| point.0),
            top: fold(f32::max, |point| point.1),
        }
    }

    /// The scale of horizontal lines.
    pub(super) fn run(self) -> f32 {
        self.a.hypot(self.b)
    }

    /// The scale of vertical lines.
    pub(super) fn rise(self) -> f32 {
        self.c.hypot(self.d)
    }

    /// 1 if horizontal lines become vertical ones upward, -1 if downward, and 0 otherwise.
    pub(super) fn upward(self) -> i32 {
        match self.b {
            _ if self.a.abs() > 0.1 * self.b.abs() => 0,
            b if b > 0.0 => 1,
            b if b < 0.0 => -1,
            _ => 0,
        }
    }

    /// Whether horizontal lines stay horizontal.
    pub(super) fn is_upright(self) -> bool {
        self.b.abs() < 0.1 * self.a.abs()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn then_applies_the_second_transformation_after_the_first() {
        let turn = Matrix::new([0.0, 2.0, -2.0, 0.0, 0.0, 0.0]);
        let both = Matrix::shift(1.0, 0.0).then(turn);
        assert_eq!(both.apply(0.0, 0.0), (0.0, 2.0));
        assert_eq!(turn.then(Matrix::shift(1.0, 0.0)).apply(0.0, 0.0), (1.0, 0.0));
        assert!((both.rise() - 2.0).abs() < 1e-6 && !both.is_upright() && Matrix::IDENTITY.is_upright());
    }
}
