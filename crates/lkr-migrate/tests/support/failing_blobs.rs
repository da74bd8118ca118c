//! A decorator of an object store that injects faults.

use std::{fmt, sync::Arc};

use async_trait::async_trait;
use futures_util::{StreamExt, stream, stream::BoxStream};
use object_store::{
    CopyOptions, Error, GetOptions, GetResult, ListResult, MultipartUpload, ObjectMeta, ObjectStore,
    PutMultipartOptions, PutOptions, PutPayload, PutResult, Result, path::Path,
};

/// Whether the next operation fails.
type Fault = Box<dyn Fn() -> bool + Send + Sync>;

/// Fails operations before they have an effect.
pub struct FailingBlobs {
    inner: Arc<dyn ObjectStore>,
    fault: Fault,
}

impl FailingBlobs {
    pub fn new(inner: Arc<dyn ObjectStore>, fault: impl Fn() -> bool + Send + Sync + 'static) -> Self {
        Self { inner, fault: Box::new(fault) }
    }

    fn inject_fault(&self) -> Result<()> {
        match (self.fault)() {
            true => Err(Error::Generic { store: "test", source: "injected fault".into() }),
            false => Ok(()),
        }
    }
}

impl fmt::Debug for FailingBlobs {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("FailingBlobs").finish_non_exhaustive()
    }
}

impl fmt::Display for FailingBlobs {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.inner.fmt(f)
    }
}

#[async_trait]
impl ObjectStore for FailingBlobs {
    async fn put_opts(&self, path: &Path, payload: PutPayload, options: PutOptions) -> Result<PutResult> {
        self.inject_fault()?;
        self.inner.put_opts(path, payload, options).await
    }

    async fn put_multipart_opts(
        &self,
        path: &Path,
        options: PutMultipartOptions,
    ) -> Result<Box<dyn MultipartUpload>> {
        self.inject_fault()?;
        self.inner.put_multipart_opts(path, options).await
    }

    async fn get_opts(&self, path: &Path, options: GetOptions) -> Result<GetResult> {
        self.inject_fault()?;
        self.inner.get_opts(path, options).await
    }

    fn delete_stream(&self, paths: BoxStream<'static, Result<Path>>) -> BoxStream<'static, Result<Path>> {
        match self.inject_fault() {
            Ok(()) => self.inner.delete_stream(paths),
            Err(error) => stream::iter([Err(error)]).boxed(),
        }
    }

    fn list(&self, prefix: Option<&Path>) -> BoxStream<'static, Result<ObjectMeta>> {
        match self.inject_fault() {
            Ok(()) => self.inner.list(prefix),
            Err(error) => stream::iter([Err(error)]).boxed(),
        }
    }

    async fn list_with_delimiter(&self, prefix: Option<&Path>) -> Result<ListResult> {
        self.inject_fault()?;
        self.inner.list_with_delimiter(prefix).await
    }

    async fn copy_opts(&self, from: &Path, to: &Path, options: CopyOptions) -> Result<()> {
        self.inject_fault()?;
        self.inner.copy_opts(from, to, options).await
    }
}
