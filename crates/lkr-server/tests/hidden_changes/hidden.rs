//! Operations that only the busy service gets: their effects are in spaces that no observer may read.

use actix_web::http::Method;
use serde_json::json;

use crate::{
    generator::{Generator, request, with_body},
    service::{Caller, Operation},
};

/// The spaces that Wim writes to. Documents that observers saw may be moved to `archive`, and Wim has no right to those.
const SPACES: [&str; 3] = ["legal", "vault", "archive"];

impl Generator {
    /// An operation without an effect that an observer may see.
    pub(crate) fn hidden_operation(&mut self) -> Operation {
        let document = format!("/documents/{}", self.hidden_document());
        match self.below(100) {
            0..40 => self.add_hidden(),
            40..48 => with_body(Caller::Wim, Method::PATCH, document, self.properties()),
            48..56 => {
                let space = json!({ "space": self.pick(&SPACES) });
                with_body(Caller::Wim, Method::PATCH, document, space)
            }
            56..62 => {
                let mut body = self.document("");
                body.as_object_mut().unwrap().remove("upsert");
                with_body(Caller::Wim, Method::PUT, document, body)
            }
            62..69 => request(Caller::Wim, Method::DELETE, document),
            69..71 => {
                let space = json!({ "field": "space", "eq": self.pick(&SPACES) });
                let body = json!({ "where": { "and": [space, self.condition()] }, "dry_run": false });
                with_body(Caller::Wim, Method::POST, "/documents/delete", body)
            }
            71..77 => self.change_hidden_task(),
            77..83 => with_body(Caller::Wim, Method::POST, "/search", json!({ "query": self.query() })),
            _ => self.administer_hidden(),
        }
    }

    fn hidden_document(&mut self) -> String {
        let hidden = self.hidden.documents.clone();
        if hidden.is_empty() { "2".repeat(32) } else { self.pick(&hidden) }
    }

    fn add_hidden(&mut self) -> Operation {
        let (caller, space) = match self.below(8) {
            0 => (Caller::Admin, format!("hidden-{}", self.made)),
            _ => (Caller::Wim, self.pick(&SPACES).to_owned()),
        };
        let body = self.document(&space);
        let idempotency_key = self.idempotency_key(15);
        Operation { idempotency_key, ..with_body(caller, Method::POST, "/documents", body) }
    }

    fn change_hidden_task(&mut self) -> Operation {
        let hidden = self.hidden.tasks.clone();
        let task = if hidden.is_empty() { "2".repeat(32) } else { self.pick(&hidden) };
        let path = format!("/documents/tasks/{task}");
        match self.below(3) {
            0 => request(Caller::Wim, Method::DELETE, path),
            _ => request(Caller::Wim, Method::POST, format!("{path}/retry")),
        }
    }

    fn administer_hidden(&mut self) -> Operation {
        let (admin, made) = (Caller::Admin, self.made);
        let (space, group) = (format!("/spaces/hidden-{made}"), format!("/groups/group-{made}"));
        match self.below(11) {
            0 | 1 => {
                self.made += 1;
                with_body(admin, Method::POST, "/spaces", json!({ "space": format!("hidden-{}", made + 1) }))
            }
            2 => request(admin, Method::DELETE, format!("{space}?documents=delete")),
            3 => with_body(admin, Method::PATCH, space, json!({ "title": self.word() })),
            4 => with_body(admin, Method::POST, "/groups", json!({ "group": format!("group-{made}") })),
            // A member of a group that is a member of no space.
            5 => request(admin, Method::PUT, format!("{group}/members/bob")),
            6 => request(admin, Method::DELETE, group),
            7 => {
                let member = self.pick(&["user:wim", "user:alice"]);
                let role = json!({ "role": self.pick(&["reader", "writer", "manager"]) });
                with_body(admin, Method::PUT, format!("{space}/members/{member}"), role)
            }
            // A member that the others of the space do not see.
            8 => with_body(admin, Method::PUT, "/spaces/team/members/user:wim", json!({ "role": "reader" })),
            9 => with_body(
                admin,
                Method::POST,
                "/knowledge/reclassify",
                json!({ "space": self.pick(&SPACES) }),
            ),
            _ => {
                let body = json!({ "name": "k", "spaces": [self.pick(&SPACES)] });
                with_body(Caller::Wim, Method::POST, "/auth/keys", body)
            }
        }
    }
}
