//! What disturbs the processes and Redis.

use std::{
    collections::BTreeMap,
    thread,
    time::{Duration, Instant},
};

use lkr_tests::Seed;
use rustix::process::Signal;

use super::service::{Member, SERVERS, Service};

/// The largest distance of a process's clock from the real time in seconds.
const FARTHEST: u64 = 600;

/// A worker that is stopped for so long has lost its leases, which last a minute.
const BEYOND_LEASES: Duration = Duration::from_secs(65);

/// The shortest history in which a worker is stopped for so long.
const LONG: Duration = Duration::from_secs(90);

/// A disturbance.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Disturbance {
    /// A process is killed and started again.
    Kill,
    /// A process stands still for a moment.
    Stop,
    /// A worker stands still for longer than its leases.
    StopBeyondLeases,
    /// The connections of a process to Redis end.
    Cut,
    /// A process cannot reach Redis for some seconds.
    Close,
    /// Some answers of Redis to a process get lost.
    LoseAnswers,
    /// Copies of some requests of a process to Redis arrive later.
    RepeatRequests,
    /// Requests of a process to Redis are delayed, or no longer.
    Delay,
    /// Redis is killed and started again.
    KillRedis,
    /// Redis stands still.
    StopRedis,
    /// The clock of a process is set.
    SetClock,
}

impl Disturbance {
    /// Whether workers may lose what they have claimed, until the leases end.
    const fn may_lose_claims(self) -> bool {
        matches!(self, Self::StopBeyondLeases | Self::KillRedis | Self::StopRedis)
    }

    const fn is_of_connections(self) -> bool {
        matches!(self, Self::Cut | Self::Close | Self::LoseAnswers | Self::RepeatRequests | Self::Delay)
    }
}

/// Each with its weight.
const WEIGHTS: [(Disturbance, u64); 11] = [
    (Disturbance::Kill, 3),
    (Disturbance::Stop, 3),
    (Disturbance::StopBeyondLeases, 1),
    (Disturbance::Cut, 3),
    (Disturbance::Close, 4),
    (Disturbance::LoseAnswers, 4),
    (Disturbance::RepeatRequests, 4),
    (Disturbance::Delay, 3),
    (Disturbance::KillRedis, 1),
    (Disturbance::StopRedis, 1),
    (Disturbance::SetClock, 3),
];

/// What is disturbed at the moment, and what was how often.
pub(super) struct Disturber<'a> {
    service: &'a Service,
    seed: Seed,
    is_long: bool,
    places: Vec<Place>,
    pub(super) counts: BTreeMap<Disturbance, usize>,
}

/// When what is disturbed at one process ends.
#[derive(Default)]
struct Place {
    continues: Option<Instant>,
    opens: Option<Instant>,
}

impl<'a> Disturber<'a> {
    pub(super) fn new(service: &'a Service, seed: Seed) -> Self {
        let places = service.members.iter().map(|_| Place::default()).collect();
        Self { service, seed, is_long: false, places, counts: BTreeMap::new() }
    }

    /// Disturbs the service for so long, and then ends all disturbances.
    pub(super) fn run(&mut self, time: Duration) {
        let begun = Instant::now();
        self.is_long = time >= LONG;
        while begun.elapsed() < time {
            self.end_before(Instant::now());
            if self.disturb() {
                thread::sleep(self.millis(200, 900));
            }
        }
        self.heal();
    }

    fn heal(&mut self) {
        let latest = self.places.iter().filter_map(|place| place.continues).max();
        if let Some(latest) = latest.filter(|_| self.is_long) {
            // Otherwise a worker that is stopped beyond its leases would go on before they end.
            thread::sleep(latest.saturating_duration_since(Instant::now()));
        }
        let ended = Instant::now().checked_add(BEYOND_LEASES);
        ended.into_iter().for_each(|ended| self.end_before(ended));
        for member in &self.service.members {
            member.proxy.heal();
            member.set_clock(0);
        }
    }

    /// Ends what lasts no longer than until `now`.
    fn end_before(&mut self, now: Instant) {
        for (place, member) in self.places.iter_mut().zip(&self.service.members) {
            if place.continues.take_if(|at| *at <= now).is_some() {
                member.signal(Signal::CONT);
            }
            if place.opens.take_if(|at| *at <= now).is_some() {
                member.proxy.open();
            }
        }
    }

    /// Disturbs one process or Redis, unless the chosen one is disturbed like that already.
    fn disturb(&mut self) -> bool {
        let what = self.draw();
        if !self.is_long && what.may_lose_claims() {
            return false;
        }
        let number = match what {
            Disturbance::StopBeyondLeases => SERVERS + self.seed.below(2) as usize,
            // A claim whose answer is lost is free when its lease ends, which is too late for a short history.
            _ if !self.is_long && what.is_of_connections() => self.seed.below(SERVERS as u64) as usize,
            _ => self.seed.below(self.places.len() as u64) as usize,
        };
        let (service, count) = (self.service, 1 + self.seed.below(3) as usize);
        let (short, pause) = (self.millis(0, 300), self.millis(700, 2_000));
        let (member, place) = (&service.members[number], &mut self.places[number]);
        match what {
            Disturbance::Kill if place.continues.is_none() => {
                place.opens = None;
                restart(member);
            }
            Disturbance::StopBeyondLeases if place.continues.is_none() => {
                member.signal(Signal::STOP);
                place.continues = Instant::now().checked_add(BEYOND_LEASES);
            }
            Disturbance::Stop if place.continues.is_none() => {
                member.signal(Signal::STOP);
                place.continues = Instant::now().checked_add(pause);
            }
            Disturbance::Kill | Disturbance::Stop | Disturbance::StopBeyondLeases => return false,
            Disturbance::Cut => member.proxy.cut(),
            Disturbance::Close => {
                member.proxy.close();
                place.opens = Instant::now().checked_add(pause * 2);
            }
            Disturbance::LoseAnswers => member.proxy.lose_answers(count),
            Disturbance::RepeatRequests => member.proxy.copy_requests(count),
            // Often none, so that delays end.
            Disturbance::Delay => member.proxy.delay(self.seed.below(300).saturating_sub(150)),
            Disturbance::KillRedis => {
                let redis = &mut service.stores.lock().unwrap().redis;
                redis.kill();
                thread::sleep(short);
                redis.restart();
            }
            Disturbance::StopRedis => {
                let redis = &service.stores.lock().unwrap().redis;
                redis.stop();
                thread::sleep(pause);
                redis.cont();
            }
            Disturbance::SetClock if member.clock.is_none() => return false,
            Disturbance::SetClock => {
                let seconds = self.seed.below(2 * FARTHEST) as i64 - FARTHEST as i64;
                member.set_clock(seconds);
            }
        }
        *self.counts.entry(what).or_default() += 1;
        true
    }

    fn draw(&mut self) -> Disturbance {
        let mut drawn = self.seed.below(WEIGHTS.iter().map(|(_, weight)| weight).sum());
        for (disturbance, weight) in WEIGHTS {
            if drawn < weight {
                return disturbance;
            }
            drawn -= weight;
        }
        Disturbance::Kill
    }

    fn millis(&mut self, from: u64, to: u64) -> Duration {
        Duration::from_millis(from + self.seed.below(to - from))
    }
}

/// Kills a process and starts it again in its data folder. It needs Redis for that.
fn restart(member: &Member) {
    member.kill();
    member.proxy.heal();
    member.wait_until_kill_is_noted();
    member.server.restart();
}
