/// Declares the `Error` type of a library. It contains the kind of failure, the operation that failed, and the source,
/// which is part of the message. The calling module must define an enum named `ErrorKind`.
///
/// `retryable:` lists the kinds after which the same call may succeed later. Without it, no error is retryable.
///
/// ```
/// use std::error::Error as _;
///
/// #[derive(Debug, Clone, Copy, PartialEq, Eq)]
/// pub enum ErrorKind {
///     Busy,
///     Broken,
/// }
///
/// lkr_domain::declare_error! {
///     /// A failure of the machine.
///     retryable: ErrorKind::Busy
/// }
///
/// let error = Error::new(ErrorKind::Busy, "turn the wheel", "the wheel is in use");
/// assert_eq!(error.to_string(), "turn the wheel: the wheel is in use");
/// assert_eq!((error.kind(), error.operation()), (ErrorKind::Busy, "turn the wheel"));
/// assert!(error.is_retryable() && error.source().is_some());
/// ```
#[macro_export]
macro_rules! declare_error {
    ($(#[$doc:meta])* $(retryable: $retryable:pat $(,)?)?) => {
        $(#[$doc])*
        #[derive(Debug)]
        pub struct Error {
            kind: ErrorKind,
            operation: &'static str,
            source: ::std::boxed::Box<dyn ::std::error::Error + Send + Sync>,
        }

        impl Error {
            /// An error of `kind` in `operation`, caused by `source`.
            pub fn new(
                kind: ErrorKind,
                operation: &'static str,
                source: impl Into<::std::boxed::Box<dyn ::std::error::Error + Send + Sync>>,
            ) -> Self {
                Self { kind, operation, source: source.into() }
            }

            /// The kind of failure.
            #[must_use]
            pub const fn kind(&self) -> ErrorKind {
                self.kind
            }

            /// The operation that failed.
            #[must_use]
            pub const fn operation(&self) -> &'static str {
                self.operation
            }

            /// Why it failed, in one line: the message without the operation.
            #[must_use]
            pub fn reason(&self) -> ::std::string::String {
                self.source.to_string()
            }

            /// Whether the same call may succeed later.
            #[must_use]
            pub const fn is_retryable(&self) -> bool {
                false $(|| matches!(self.kind, $retryable))?
            }
        }

        impl ::std::fmt::Display for Error {
            fn fmt(&self, f: &mut ::std::fmt::Formatter<'_>) -> ::std::fmt::Result {
                write!(f, "{}: {}", self.operation, self.source)
            }
        }

        impl ::std::error::Error for Error {
            fn source(&self) -> Option<&(dyn ::std::error::Error + 'static)> {
                Some(self.source.as_ref())
            }
        }
    };
}
