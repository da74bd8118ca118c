//! Whether decoded text of East Asian encodings looks like text.

use encoding_rs::{BIG5, EUC_JP, EUC_KR, Encoding, GB18030, GBK, SHIFT_JIS};

/// Texts with fewer characters are doubtful.
const MIN_CHARS: usize = 4;

/// Whether text of an East Asian encoding is doubtful; `None` for other encodings.
///
/// These encodings list frequent characters first and rare ones after them. Text in another encoding has characters from
/// both lists.
pub(super) fn is_doubtful(bytes: &[u8], encoding: &'static Encoding) -> Option<bool> {
    let is_frequent: fn(u8, u8) -> bool = if encoding == GBK || encoding == GB18030 {
        |lead, trail| matches!(lead, 0xa1..=0xa9 | 0xb0..=0xd7) && trail >= 0xa1
    } else if encoding == BIG5 {
        |lead, _| matches!(lead, 0xa1..=0xc8)
    } else if encoding == SHIFT_JIS {
        |lead, _| matches!(lead, 0x81..=0x84 | 0x88..=0x98)
    } else if encoding == EUC_JP {
        |lead, _| matches!(lead, 0xa1..=0xa8 | 0xb0..=0xcf)
    } else if encoding == EUC_KR {
        |lead, trail| matches!(lead, 0xa1..=0xa8 | 0xb0..=0xc8) && trail >= 0xa1
    } else {
        return None;
    };
    let is_single = |byte: u8| byte.is_ascii() || (encoding == SHIFT_JIS && (0xa1..=0xdf).contains(&byte));
    let (mut all, mut rare, mut rest) = (0_usize, 0_usize, bytes);
    while let [lead, after @ ..] = rest {
        if is_single(*lead) {
            rest = after;
            continue;
        }
        let trail = after.first().copied().unwrap_or_default();
        all += 1;
        rare += usize::from(!is_frequent(*lead, trail));
        rest = after.get(1..).unwrap_or_default();
    }
    Some(all < MIN_CHARS || rare.saturating_mul(8) > all)
}
