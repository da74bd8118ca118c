/// Encodes bytes as lower-case hexadecimal text.
///
/// ```
/// assert_eq!(lkr_domain::hex(&[0, 171, 255]), "00abff");
/// ```
#[must_use]
pub fn hex(bytes: &[u8]) -> String {
    let digits = bytes.iter().flat_map(|byte| [byte >> 4, byte & 15]);
    digits.filter_map(|digit| char::from_digit(u32::from(digit), 16)).collect()
}
