/// A fault that a provider injects into its response.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Fault {
    /// Responds with this status, headers and body.
    Answer {
        /// The status.
        status: u16,
        /// Further headers, each a complete line.
        headers: Vec<String>,
        /// The body.
        body: String,
    },
    /// Reads the request and never responds.
    Hang,
    /// Closes the connection without a response.
    HangUp,
    /// Sends this many parts of a stream, or bytes of another response, and then nothing more.
    HangAfter(usize),
    /// Sends this many parts of a stream, or bytes of another response, and closes the connection.
    CutAfter(usize),
    /// Ends a stream properly after this many parts.
    EndAfter(usize),
    /// Part of the stream, or the response, is not valid JSON.
    InvalidJson,
    /// Reports an error in the middle of a stream, or in a response with status 200.
    ErrorWithin(String),
    /// Vectors have this many dimensions.
    WrongDims(usize),
    /// Omits the last vector.
    MissingVector,
    /// The last vector has the index of the first.
    RepeatedIndex,
    /// A value of a vector exceeds the range of `f32`.
    NotFinite,
    /// A vector is zero.
    Zero,
    /// Vectors come in reverse order, with correct indices.
    Shuffled,
    /// The index of the first vector is omitted, because it is 0.
    ZeroIndexOmitted,
}

impl Fault {
    /// Responds with a status and an error without details.
    #[must_use]
    pub fn status(status: u16) -> Self {
        Self::error(status, "refused on request of the test", "")
    }

    /// Responds with a status and an error of this message and code.
    #[must_use]
    pub fn error(status: u16, message: &str, code: &str) -> Self {
        let body = serde_json::json!({
            "error": { "message": message, "type": "injected", "param": null, "code": code },
        });
        Self::Answer { status, headers: Vec::new(), body: body.to_string() }
    }

    /// Redirects to `address`.
    #[must_use]
    pub fn redirect(address: &str) -> Self {
        Self::Answer { status: 307, headers: vec![format!("Location: {address}")], body: String::new() }
    }

    /// Adds a header line; faults without a response are unchanged.
    #[must_use]
    pub fn header(mut self, line: &str) -> Self {
        if let Self::Answer { headers, .. } = &mut self {
            headers.push(line.to_owned());
        }
        self
    }
}
