//! Operations that both services get.

use actix_web::http::Method;
use serde_json::{Value, json};

use crate::{
    generator::{Generator, encoded, request, with_body},
    service::{AGENTS, Caller, Operation},
};

impl Generator {
    /// An operation of an observer, or one of somebody else that observers may see the effect of.
    pub(crate) fn visible_operation(&mut self) -> Operation {
        // A repeated search is answered from the cache, unless a change came between that it can show.
        if self.chance(60)
            && let Some(search) = self.last_search.take()
        {
            return search;
        }
        match self.below(100) {
            0..13 => self.add(),
            13..16 => self.add_batch(),
            16..21 => self.replace(),
            21..28 => self.change(),
            28..34 => self.delete(),
            34..37 => self.delete_where(),
            37..40 => self.change_task(),
            40..50 => self.search("/search"),
            50..54 => self.other_protocol(),
            54..58 => self.context(),
            58..61 => self.search("/search/stream"),
            61..72 => self.list_documents(),
            72..80 => self.read_document(),
            80..88 => self.read_tasks(),
            88..92 => self.read_spaces(),
            92..94 => self.refused(),
            94..97 => self.move_document(),
            _ => self.administer(),
        }
    }

    /// Who writes and where: mostly an observer.
    fn writer(&mut self) -> (Caller, String) {
        match self.below(10) {
            0..5 => (Caller::Bob, self.pick(&["default", "", "desk"]).to_owned()),
            5 => (Caller::Bob, self.space_name()),
            6 => (Caller::BobsKey, self.pick(&["default", "team", "desk", "legal"]).to_owned()),
            7 => (Caller::Carl, self.pick(&["default", "desk", "legal"]).to_owned()),
            _ => (Caller::Alice, "team".to_owned()),
        }
    }

    fn add(&mut self) -> Operation {
        let (caller, space) = self.writer();
        let body = self.document(&space);
        let idempotency_key = self.idempotency_key(15);
        Operation { idempotency_key, ..with_body(caller, Method::POST, "/documents", body) }
    }

    fn add_batch(&mut self) -> Operation {
        let (caller, space) = self.writer();
        let documents: Vec<_> = (0..2 + self.below(2)).map(|_| self.document(&space)).collect();
        let idempotency_key = self.idempotency_key(15);
        let body = json!({ "documents": documents });
        Operation { idempotency_key, ..with_body(caller, Method::POST, "/documents/batch", body) }
    }

    fn replace(&mut self) -> Operation {
        let (caller, _) = self.writer();
        let path = format!("/documents/{}", self.any_document());
        let mut body = self.document("");
        body.as_object_mut().unwrap().remove("upsert");
        let idempotency_key = self.idempotency_key(10);
        Operation { idempotency_key, ..with_body(caller, Method::PUT, path, body) }
    }

    fn change(&mut self) -> Operation {
        let (caller, _) = self.writer();
        let path = format!("/documents/{}", self.any_document());
        let body = self.properties();
        with_body(caller, Method::PATCH, path, body)
    }

    fn delete(&mut self) -> Operation {
        let (caller, _) = self.writer();
        request(caller, Method::DELETE, format!("/documents/{}", self.any_document()))
    }

    fn delete_where(&mut self) -> Operation {
        let caller = self.pick(&[Caller::Bob, Caller::BobsKey, Caller::Carl]);
        let body = json!({ "where": self.condition(), "dry_run": self.chance(60) });
        with_body(caller, Method::POST, "/documents/delete", body)
    }

    fn change_task(&mut self) -> Operation {
        let caller = self.pick(&[Caller::Bob, Caller::Bob, Caller::BobsKey, Caller::Carl]);
        let path = format!("/documents/tasks/{}", self.any_task());
        match self.below(3) {
            0 => request(caller, Method::POST, format!("{path}/retry")),
            1 => request(caller, Method::POST, format!("{path}/cancel")),
            _ => request(caller, Method::DELETE, path),
        }
    }

    fn context(&mut self) -> Operation {
        let mut body = json!({ "query": self.query(), "max_tokens": 50 + self.below(500) });
        if self.chance(20) {
            body["spaces"] = json!([self.space_name()]);
        }
        if self.chance(20) {
            body["where"] = self.condition();
        }
        with_body(self.observer(), Method::POST, "/context", body)
    }

    fn search(&mut self, path: &str) -> Operation {
        let mut body = json!({ "query": self.query() });
        if self.chance(60) {
            body["explain"] = json!(true);
        }
        if self.chance(20) {
            body["summarize"] = json!(true);
        }
        if self.chance(15) {
            body["mode"] = json!("flat");
        }
        if self.chance(20) {
            body["group_by"] = json!("document");
        }
        if self.chance(15) {
            body["spaces"] = json!([self.space_name()]);
        }
        if self.chance(20) {
            body["where"] = self.condition();
        }
        if self.chance(15) {
            body["top_k"] = json!(1 + self.below(5));
        }
        if self.chance(10) {
            body["filters"] = json!({ "source": self.source() });
        }
        if self.chance(10) {
            body["fusion"] = json!("rrf");
        }
        let search = with_body(self.observer(), Method::POST, path, body);
        self.last_search = Some(search.clone());
        search
    }

    /// A request of a client that speaks another protocol.
    fn other_protocol(&mut self) -> Operation {
        let (observer, space) = (self.observer(), self.space_name());
        let stores = "/openai/vector_stores";
        match self.below(9) {
            0 => request(observer, Method::GET, format!("{stores}?limit={}", 1 + self.below(4))),
            1 => request(observer, Method::GET, format!("{stores}?after={space}&order=asc")),
            2 => request(observer, Method::GET, format!("{stores}/{space}/files?order=asc")),
            3 => {
                let path = format!("{stores}/{space}/files/{}/content", self.any_document());
                request(observer, Method::GET, path)
            }
            4 => {
                let body = json!({ "query": self.query() });
                with_body(observer, Method::POST, format!("{stores}/{space}/search"), body)
            }
            5 => {
                let body = json!({ "knowledge_id": space, "query": self.query() });
                with_body(observer, Method::POST, "/dify/retrieval", body)
            }
            _ => self.agent(observer, &space),
        }
    }

    /// A message of an agent.
    fn agent(&mut self, observer: Caller, space: &str) -> Operation {
        let (id, query) = (self.any_document(), self.query());
        let tool =
            |name: &str, arguments: Value| ("tools/call", json!({ "name": name, "arguments": arguments }));
        let (method, params) = match self.below(7) {
            0 => tool("search", json!({ "query": query })),
            1 => tool("search", json!({ "query": query, "space": space })),
            2 => tool("context", json!({ "query": query, "max_tokens": 300 })),
            3 => tool("fetch", json!({ "id": id })),
            4 => tool("list", json!({ "limit": 3 })),
            5 => ("resources/list", json!({})),
            _ => ("resources/read", json!({ "uri": format!("lkr://documents/{id}") })),
        };
        let message = json!({ "jsonrpc": "2.0", "id": 1, "method": method, "params": params });
        with_body(observer, Method::POST, AGENTS, message)
    }

    fn list_documents(&mut self) -> Operation {
        if self.chance(35) && !self.next_pages.is_empty() {
            let next_pages = self.next_pages.clone();
            return self.pick(&next_pages);
        }
        let mut path = format!("/documents?limit={}", 1 + self.below(6));
        match self.below(6) {
            0 => path += &format!("&space={}", self.space_name()),
            1 => path += &format!("&where={}", encoded(&self.condition().to_string())),
            2 => path += &format!("&source={}", encoded(&self.source())),
            3 => path += &format!("&q={}", self.word()),
            _ => {}
        }
        request(self.observer(), Method::GET, path)
    }

    fn read_document(&mut self) -> Operation {
        let tail = self.pick(&["", "", "/chunks?limit=2", "/text", "/file"]);
        let path = format!("/documents/{}{tail}", self.any_document());
        request(self.observer(), Method::GET, path)
    }

    fn read_tasks(&mut self) -> Operation {
        let path = match self.below(6) {
            0..3 => {
                let mut path = format!("/documents/tasks?limit={}", 1 + self.below(6));
                match self.below(4) {
                    0 => path += &format!("&space={}", self.space_name()),
                    1 => path += &format!("&status={}", self.pick(&["done", "failed", "pending"])),
                    _ => {}
                }
                path
            }
            3..5 => format!("/documents/tasks/{}", self.any_task()),
            _ => format!("/documents/tasks/{}/events", self.any_task()),
        };
        request(self.observer(), Method::GET, path)
    }

    fn read_spaces(&mut self) -> Operation {
        let path = match self.below(7) {
            0 => "/spaces".to_owned(),
            1 => format!("/spaces/{}", self.space_name()),
            2 => format!("/spaces/{}/members", self.space_name()),
            3 => format!("/knowledge/stats?space={}", self.space_name()),
            4 => "/knowledge/categories".to_owned(),
            _ => "/knowledge/stats".to_owned(),
        };
        request(self.observer(), Method::GET, path)
    }

    /// An operation that an observer has no right to, about something that may exist.
    fn refused(&mut self) -> Operation {
        let (space, group) = (self.space_name(), format!("/groups/group-{}", self.below(self.made + 1)));
        let observer = self.observer();
        match self.below(6) {
            0 => with_body(observer, Method::PATCH, format!("/spaces/{space}"), json!({ "title": "T" })),
            1 => {
                let path = format!("/spaces/{space}/members/user:wim");
                with_body(observer, Method::PUT, path, json!({ "role": "reader" }))
            }
            2 => with_body(observer, Method::POST, "/spaces", json!({ "space": space })),
            3 => request(observer, Method::GET, format!("{group}/members")),
            4 => request(observer, Method::DELETE, group),
            _ => {
                let body = json!({ "name": "k", "spaces": [self.pick(&["legal", "hidden-1", "nowhere"])] });
                with_body(observer, Method::POST, "/auth/keys", body)
            }
        }
    }

    /// A move between readable spaces, or between a readable one and `archive`.
    fn move_document(&mut self) -> Operation {
        let path = format!("/documents/{}", self.any_visible_document());
        let (caller, space) = match self.below(8) {
            0..3 => (Caller::Bob, self.pick(&["default", "desk"])),
            3 => (Caller::Bob, self.pick(&["legal", "team", "nowhere"])),
            4..6 => (Caller::Alice, self.pick(&["team", "archive"])),
            _ => (Caller::Admin, self.pick(&["default", "team", "archive"])),
        };
        with_body(caller, Method::PATCH, path, json!({ "space": space }))
    }

    /// The id of a document that was seen; hidden operations do not touch it.
    fn any_visible_document(&mut self) -> String {
        let visible = self.visible.documents.clone();
        if visible.is_empty() { "1".repeat(32) } else { self.pick(&visible) }
    }

    /// A change of an admin that observers may see.
    fn administer(&mut self) -> Operation {
        let bob_in_team = "/spaces/team/members/user:bob";
        match self.below(6) {
            0 => request(Caller::Admin, Method::DELETE, bob_in_team.to_owned()),
            1 | 2 => {
                let role = json!({ "role": self.pick(&["reader", "reader", "writer"]) });
                with_body(Caller::Admin, Method::PUT, bob_in_team, role)
            }
            3 => with_body(Caller::Admin, Method::PATCH, "/spaces/team", json!({ "title": self.word() })),
            4 => {
                let write = self.pick(&["accounts", "accounts", "members"]);
                with_body(Caller::Admin, Method::PATCH, "/spaces/default", json!({ "write": write }))
            }
            _ => {
                let name = self.pick(&["legal", "team", "desk", "nowhere"]);
                request(Caller::Bob, Method::DELETE, format!("/spaces/{name}"))
            }
        }
    }
}
