use std::io::Write;

use crate::{Response, Server};

const BOUNDARY: &str = "lkr-form-boundary-7b1d";

impl Server {
    /// Uploads a file as admin.
    ///
    /// # Panics
    /// If no response arrives.
    #[must_use]
    pub fn upload(&self, name: &str, bytes: &[u8]) -> Response {
        let response = self.try_upload(name, bytes, &[], self.admin());
        response.unwrap_or_else(|e| panic!("upload of {name}: {e}\n{}", self.log()))
    }

    /// Uploads a file to a server that may be down, with other form parts before it.
    pub fn try_upload(
        &self,
        name: &str,
        bytes: &[u8],
        parts: &[(&str, &str)],
        token: &str,
    ) -> Result<Response, ureq::Error> {
        let mut body = Vec::with_capacity(bytes.len() + 1024);
        for (part, text) in parts {
            write!(
                body,
                "--{BOUNDARY}\r\nContent-Disposition: form-data; name=\"{part}\"\r\n\r\n{text}\r\n"
            )?;
        }
        let disposition = format!("form-data; name=\"file\"; filename=\"{name}\"");
        write!(body, "--{BOUNDARY}\r\nContent-Disposition: {disposition}\r\n\r\n")?;
        body.extend_from_slice(bytes);
        write!(body, "\r\n--{BOUNDARY}--\r\n")?;
        let headers = [
            ("Authorization", format!("Bearer {token}")),
            ("Content-Type", format!("multipart/form-data; boundary={BOUNDARY}")),
        ];
        self.try_send("POST", "/api/v1/documents/upload", &headers, Some(body))
    }

    /// Uploads a file as admin, waits until it is searchable, and returns the details of its document.
    ///
    /// # Panics
    /// If the upload is rejected or its task fails.
    #[must_use]
    pub fn upload_and_wait(&self, name: &str, bytes: &[u8]) -> serde_json::Value {
        let response = self.upload(name, bytes);
        assert_eq!(response.status, 202, "{name}: {}", response.message());
        let task = self.wait_for_task(response.data()["task_id"].as_str().expect("an id"));
        assert_eq!(task["status"], "done", "{task}");
        let doc_id = task["result"]["doc_id"].as_str().expect("an id");
        self.get(&format!("/documents/{doc_id}")).data().clone()
    }
}
