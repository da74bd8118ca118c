use crate::error::ApiError;

/// The least score of a result, by default 0.
///
/// # Errors
/// `Invalid` if it is not from 0 to 1.
pub(crate) fn score_threshold(name: &str, threshold: Option<f32>) -> Result<f32, ApiError> {
    let threshold = threshold.unwrap_or_default();
    if (0.0..=1.0).contains(&threshold) {
        return Ok(threshold);
    }
    Err(ApiError::invalid_parameter(name, format!("{threshold} is out of bounds, 0 to 1 is allowed")))
}
