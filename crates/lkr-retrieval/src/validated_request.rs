//! Requests that passed validation.

use std::{ops::Deref, sync::Arc};

use crate::{Result, SearchRequest};

/// A request whose bounds were checked, in the normal form that equivalent requests share: the query without
/// surrounding white space, document ids sorted and without duplicates. Cheap to clone.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ValidatedRequest(Arc<SearchRequest>);

impl ValidatedRequest {
    /// Validates `request` and copies it into its normal form.
    ///
    /// # Errors
    /// Those of [`SearchRequest::validate`].
    pub(crate) fn new(request: &SearchRequest) -> Result<Self> {
        request.validate()?;
        let mut normalised = request.clone();
        normalised.query = request.query.trim().to_owned();
        if let Some(ids) = &mut normalised.filters.doc_ids {
            ids.sort_unstable();
            ids.dedup();
        }
        Ok(Self(Arc::new(normalised)))
    }

    /// The normalised request, shared with the cache key.
    pub(crate) fn shared(&self) -> Arc<SearchRequest> {
        Arc::clone(&self.0)
    }
}

impl Deref for ValidatedRequest {
    type Target = SearchRequest;

    fn deref(&self) -> &SearchRequest {
        &self.0
    }
}

#[cfg(test)]
mod tests {
    use lkr_domain::DocId;

    use super::*;

    #[test]
    fn normal_form_is_equal_only_for_equivalent_requests() {
        let (a, b) = (DocId::from_bytes([1; 16]), DocId::from_bytes([2; 16]));
        let validated = |query: &str, ids: &[DocId]| {
            let mut request = SearchRequest::new(query);
            request.filters.doc_ids = Some(ids.to_vec());
            ValidatedRequest::new(&request).unwrap()
        };
        assert_eq!(validated(" q ", &[b, a, b]), validated("q", &[a, b]));
        assert_ne!(validated("q", &[a]), validated("q", &[a, b]));
        assert_ne!(validated("q", &[]), ValidatedRequest::new(&SearchRequest::new("q")).unwrap());
    }

    #[test]
    fn request_out_of_bounds_is_refused() {
        assert!(ValidatedRequest::new(&SearchRequest::new(" ")).is_err());
    }
}
