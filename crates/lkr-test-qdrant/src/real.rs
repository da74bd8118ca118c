use qdrant_client::qdrant::{
    DeleteCollection, ListCollectionsRequest, collections_client::CollectionsClient,
};

use crate::block_on;

/// The collections of a test on a real server, which have a prefix of their own. Dropping this removes them.
#[derive(Debug)]
pub struct RealCollections {
    url: String,
    prefix: String,
}

impl RealCollections {
    /// The collections whose names begin with `prefix` at the server with this address.
    #[must_use]
    pub fn new(url: impl Into<String>, prefix: impl Into<String>) -> Self {
        Self { url: url.into(), prefix: prefix.into() }
    }

    /// The address of the server.
    #[must_use]
    pub fn url(&self) -> &str {
        &self.url
    }
}

impl Drop for RealCollections {
    fn drop(&mut self) {
        // A failed test has a failure to show already.
        if !std::thread::panicking() {
            block_on(remove(self.url.clone(), self.prefix.clone()));
        }
    }
}

async fn remove(url: String, prefix: String) {
    let mut client = CollectionsClient::connect(url).await.unwrap();
    let listed = client.list(ListCollectionsRequest {}).await.unwrap().into_inner().collections;
    for collection in listed.into_iter().filter(|collection| collection.name.starts_with(&prefix)) {
        client.delete(DeleteCollection { collection_name: collection.name, timeout: None }).await.unwrap();
    }
}
