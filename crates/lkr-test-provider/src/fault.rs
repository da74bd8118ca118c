/// What a provider does instead of answering well.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Fault {
    /// It answers with this status line, headers and body.
    Answer {
        /// The status.
        status: u16,
        /// Further headers, each a whole line.
        headers: Vec<String>,
        /// The body.
        body: String,
    },
    /// It reads the request and never answers.
    Hang,
    /// It hangs up without a word.
    HangUp,
    /// It sends so many parts of a stream, or bytes of another answer, and then nothing more.
    HangAfter(usize),
    /// It sends so many parts of a stream, or bytes of another answer, and breaks the connection off.
    CutAfter(usize),
    /// It ends a stream after so many parts, in good order but for what is missing.
    EndAfter(usize),
    /// A part of its stream, or its answer, is none of JSON.
    InvalidJson,
    /// It tells of a failure in the middle of a stream, or in an answer that is a success by its status.
    ErrorWithin(String),
    /// Its vectors have so many dimensions.
    WrongDims(usize),
    /// It leaves the last vector out.
    MissingVector,
    /// It gives the first vector twice, the second time as the last.
    RepeatedIndex,
    /// A vector holds what no number of 32 bits can.
    NotFinite,
    /// A vector has no length.
    Zero,
    /// It answers, and its vectors come in another order; their indices say which.
    Shuffled,
}

impl Fault {
    /// It answers with a status and an error that says nothing.
    #[must_use]
    pub fn status(status: u16) -> Self {
        Self::error(status, "told to refuse", "")
    }

    /// It answers with a status and an error of this message and code.
    #[must_use]
    pub fn error(status: u16, message: &str, code: &str) -> Self {
        let body = serde_json::json!({
            "error": { "message": message, "type": "told", "param": null, "code": code },
        });
        Self::Answer { status, headers: Vec::new(), body: body.to_string() }
    }

    /// It leads on to `address`.
    #[must_use]
    pub fn redirect(address: &str) -> Self {
        Self::Answer { status: 307, headers: vec![format!("Location: {address}")], body: String::new() }
    }

    /// The same with a header more; what is no answer has none.
    #[must_use]
    pub fn header(mut self, line: &str) -> Self {
        if let Self::Answer { headers, .. } = &mut self {
            headers.push(line.to_owned());
        }
        self
    }
}
