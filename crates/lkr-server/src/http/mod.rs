//! What every route is made of: reading a request, admitting its caller, answering in the envelope.

mod access;
mod address;
mod body;
mod cx;
mod endpoint;
mod events;
mod form;
mod incoming;
mod long;
mod outer;
mod part_headers;
mod patient;
mod query;
mod reply;
mod room;

pub use access::Access;
pub(crate) use access::{Admin, Caller, Flagged, Member, Open, Owner, Reader, TaskOwner, Unlisted};
pub(crate) use body::{BodyBudget, Secret, object, texts};
pub(crate) use cx::{Cx, unknown_document, unknown_task};
pub use endpoint::Endpoint;
pub(crate) use endpoint::{refuse, refuse_method};
pub(crate) use events::{KEEP_ALIVE, event, events};
pub(crate) use form::{Form, FormFile, FormRules};
pub(crate) use long::enveloped;
pub(crate) use outer::{InFlight, outer};
pub(crate) use patient::Patient;
pub(crate) use query::{Query, cursor};
pub(crate) use reply::{Answer, Reply, RequestId};
pub(crate) use room::AnswerRoom;
