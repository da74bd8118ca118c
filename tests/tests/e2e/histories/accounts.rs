//! Clients that log in and out, change passwords, make and delete API keys, and an admin who disables and enables accounts.

use std::{
    sync::{
        Mutex, MutexGuard,
        atomic::{AtomicBool, Ordering},
    },
    thread,
    time::{Duration, Instant},
};

use lkr_test_history::{AccountCall, AccountOperation, Answer};
use lkr_tests::Seed;
use serde_json::json;

use super::service::{Reply, Request, SERVERS, Service, log_in, password, session_of};

/// The most sessions and the most keys of an account that are remembered to be used again.
const MOST_REMEMBERED: usize = 6;

/// How long it may take until a client has its first account. Hashing a password takes seconds on a busy machine.
const FIRST_ACCOUNT: Duration = Duration::from_secs(120);

/// What the clients did.
#[derive(Default)]
pub(super) struct Accounts {
    history: Mutex<Vec<AccountOperation>>,
}

/// What the one client of an account knows. It makes one request after another.
pub(super) struct Client<'a> {
    service: &'a Service,
    accounts: &'a Accounts,
    seed: Seed,
    name: String,
    /// The numbers of the passwords that may be right, the most likely one last.
    passwords: Vec<u64>,
    /// Also those that were revoked.
    sessions: Vec<Session>,
    keys: Vec<Key>,
}

#[derive(Clone)]
struct Session {
    number: u64,
    token: String,
    /// Whether nothing of it was refused, as far as the client knows.
    is_live: bool,
}

struct Key {
    number: u64,
    id: String,
    secret: String,
}

impl Accounts {
    pub(super) fn history(&self) -> MutexGuard<'_, Vec<AccountOperation>> {
        self.history.lock().unwrap()
    }

    /// A new account, and its client.
    pub(super) fn client<'a>(&'a self, service: &'a Service, seed: Seed) -> Client<'a> {
        let (name, passwords) = (String::new(), Vec::new());
        let (sessions, keys) = (Vec::new(), Vec::new());
        let mut client = Client { service, accounts: self, seed, name, passwords, sessions, keys };
        let begun = Instant::now();
        while client.name.is_empty() {
            assert!(begun.elapsed() < FIRST_ACCOUNT, "an account cannot be made");
            client.begin_account(0);
        }
        client
    }
}

impl Client<'_> {
    /// Makes requests until `stop`.
    pub(super) fn run(&mut self, stop: &AtomicBool) {
        while !stop.load(Ordering::SeqCst) {
            let server = self.server();
            match self.seed.below(30) {
                _ if self.live().is_none() => self.log_in(server),
                0..=1 => self.log_in(server),
                2..=4 => self.log_out(server),
                5 => self.change_password(server),
                6 => self.disable_and_enable(server, stop),
                7..=8 => self.make_key(server),
                9 => self.delete_key(server),
                10 => self.try_old_password(server),
                11..=14 => self.use_key(server),
                _ => self.use_session(server),
            }
            thread::sleep(Duration::from_millis(self.seed.below(40)));
        }
    }

    /// Uses every credential that is remembered at each server, with at least one session among them.
    pub(super) fn finish(&mut self) {
        if self.live().is_none() {
            self.log_in(0);
        }
        for server in 0..SERVERS {
            self.use_everything(server);
        }
    }

    /// Goes on with a new account, if it can be made.
    fn begin_account(&mut self, server: usize) {
        let (name, first) = (format!("user{}", self.seed.below(1 << 40)), self.service.number());
        let body = json!({"username": name, "password": password(first), "must_change_password": false});
        let made = self.service.ask(server, Request::post("/users", body).with(&self.service.admin));
        if made.status == 201 {
            (self.name, self.passwords) = (name, vec![first]);
            self.sessions.clear();
            self.keys.clear();
        }
    }

    fn server(&mut self) -> usize {
        self.seed.below(SERVERS as u64) as usize
    }

    fn use_everything(&mut self, server: usize) {
        for place in 0..self.sessions.len() {
            self.use_session_at(server, place);
        }
        for key in &self.keys {
            self.try_credential(server, &key.secret, AccountCall::UseKey(key.number));
        }
    }

    /// Uses what a revocation was about at the servers that have not been asked.
    fn use_elsewhere(&mut self, server: usize) {
        (0..SERVERS).filter(|other| *other != server).for_each(|other| self.use_everything(other));
    }

    fn try_credential(&self, server: usize, credential: &str, call: AccountCall) -> Answer {
        let reply = self.service.ask(server, Request::get("/auth/me", credential));
        let answer = answer(reply.status);
        self.note(server, &reply, answer, call);
        answer
    }

    fn use_session(&mut self, server: usize) {
        if let Some(place) = self.live() {
            self.use_session_at(server, place);
        }
    }

    fn use_session_at(&mut self, server: usize, place: usize) {
        let Session { number, token, .. } = self.sessions[place].clone();
        let answer = self.try_credential(server, &token, AccountCall::UseSession(number));
        self.sessions[place].is_live &= answer != Answer::Refused;
    }

    /// The place of a session that should be accepted.
    fn live(&mut self) -> Option<usize> {
        let places = (0..self.sessions.len()).filter(|place| self.sessions[*place].is_live);
        let live: Vec<usize> = places.collect();
        self.pick(live.len()).map(|place| live[place])
    }

    fn use_key(&mut self, server: usize) {
        if let Some(place) = self.pick(self.keys.len()) {
            let key = &self.keys[place];
            self.try_credential(server, &key.secret, AccountCall::UseKey(key.number));
        }
    }

    fn log_in(&mut self, server: usize) {
        for &number in self.passwords.clone().iter().rev() {
            let reply = self.service.ask(server, log_in(&self.name, &password(number)));
            let answered =
                self.begin(server, &reply, |session| AccountCall::LogIn { password: number, session });
            match answered {
                Answer::Done => return self.passwords = vec![number],
                // After ten wrong passwords, all are refused for a quarter of an hour.
                Answer::Unknown if reply.status == 429 => return self.begin_account(server),
                Answer::Unknown => return,
                Answer::Refused => {}
            }
        }
        // A change of the password or a disabling may have been merged later than it was answered.
        self.set_disabled(server, false);
    }

    fn try_old_password(&mut self, server: usize) {
        let oldest = self.accounts.history().iter().find_map(|operation| match operation.call {
            AccountCall::LogIn { password, .. } if operation.account == self.name => Some(password),
            _ => None,
        });
        if let Some(number) = oldest.filter(|oldest| !self.passwords.contains(oldest)) {
            let reply = self.service.ask(server, log_in(&self.name, &password(number)));
            self.begin(server, &reply, |session| AccountCall::LogIn { password: number, session });
        }
    }

    fn log_out(&mut self, server: usize) {
        if let Some(place) = self.live() {
            // Another server has seen it before.
            let other = self.server();
            self.use_session_at(other, place);
            let Session { number, token, .. } = self.sessions[place].clone();
            let request = Request::get("/auth/logout", &token).method("POST");
            let reply = self.service.ask(server, request);
            self.note(server, &reply, answer(reply.status), AccountCall::LogOut(number));
            self.use_elsewhere(server);
        }
    }

    fn change_password(&mut self, server: usize) {
        let (Some(place), Some(&current)) = (self.live(), self.passwords.last()) else { return };
        let Session { number: session, token, .. } = self.sessions[place].clone();
        let number = self.service.number();
        let body = json!({"current_password": password(current), "new_password": password(number)});
        let reply = self.service.ask(server, Request::post("/auth/password", body).with(&token));
        let call = |session| AccountCall::ChangePassword { password: number, session };
        match self.begin(server, &reply, call) {
            Answer::Done => {
                self.note(server, &reply, Answer::Done, AccountCall::UseSession(session));
                self.passwords = vec![number];
            }
            Answer::Unknown => self.passwords.push(number),
            Answer::Refused => {}
        }
        self.use_elsewhere(server);
    }

    fn disable_and_enable(&mut self, server: usize, stop: &AtomicBool) {
        self.set_disabled(server, true);
        self.use_elsewhere(server);
        loop {
            let other = self.server();
            if self.set_disabled(other, false) || stop.load(Ordering::SeqCst) {
                return;
            }
            thread::sleep(Duration::from_millis(100));
        }
    }

    fn set_disabled(&self, server: usize, disabled: bool) -> bool {
        let path = format!("/users/{}", self.name);
        let request = Request::post(&path, json!({"disabled": disabled})).method("PATCH");
        let reply = self.service.ask(server, request.with(&self.service.admin));
        let call = if disabled { AccountCall::Disable } else { AccountCall::Enable };
        let answer = answer(reply.status);
        self.note(server, &reply, answer, call);
        answer == Answer::Done
    }

    fn make_key(&mut self, server: usize) {
        let Some(place) = self.live() else { return };
        let token = self.sessions[place].token.clone();
        let request = Request::post("/auth/keys", json!({"name": "history"})).with(&token);
        let reply = self.service.ask(server, request);
        let number = self.service.number();
        let text = |key: &str| reply.data[key].as_str().map(str::to_owned);
        if let (Some(id), Some(secret)) = (text("id"), text("key")) {
            self.note(server, &reply, Answer::Done, AccountCall::CreateKey(number));
            remember(&mut self.keys, Key { number, id, secret });
        }
    }

    fn delete_key(&mut self, server: usize) {
        let (Some(place), Some(key)) = (self.live(), self.pick(self.keys.len())) else { return };
        let path = format!("/auth/keys/{}", self.keys[key].id);
        let request = Request::get(&path, &self.sessions[place].token).method("DELETE");
        let reply = self.service.ask(server, request);
        self.note(server, &reply, answer(reply.status), AccountCall::DeleteKey(self.keys[key].number));
        self.use_elsewhere(server);
    }

    /// Notes a request that may begin a session.
    fn begin(&mut self, server: usize, reply: &Reply, call: impl Fn(Option<u64>) -> AccountCall) -> Answer {
        let token = session_of(reply);
        let number = token.is_some().then(|| self.service.number());
        let answer = answer(reply.status);
        self.note(server, reply, answer, call(number));
        if let Some((number, token)) = number.zip(token) {
            remember(&mut self.sessions, Session { number, token, is_live: true });
        }
        answer
    }

    fn pick(&mut self, count: usize) -> Option<usize> {
        (count > 0).then(|| self.seed.below(count as u64) as usize)
    }

    fn note(&self, server: usize, reply: &Reply, answer: Answer, call: AccountCall) {
        let end = (answer != Answer::Unknown).then_some(reply.end);
        let account = self.name.clone();
        let operation =
            AccountOperation { process: server as u32, account, start: reply.start, end, call, answer };
        self.accounts.history().push(operation);
    }
}

fn remember<T>(remembered: &mut Vec<T>, more: T) {
    if remembered.len() >= MOST_REMEMBERED {
        remembered.remove(0);
    }
    remembered.push(more);
}

const fn answer(status: u16) -> Answer {
    match status {
        200..=299 => Answer::Done,
        401 => Answer::Refused,
        _ => Answer::Unknown,
    }
}
