//! Whether response times tell an unreadable document from an unknown one.

mod auc;
mod fixture;

use std::{
    fmt,
    time::{Duration, Instant},
};

use anyhow::{Result, ensure};

use crate::{
    bench::{connection::Connection, material::at_least_one, random::XorShift64},
    connection::Login,
    stats::Latency,
};
use auc::{auc, without_drift};

use fixture::Fixture;

/// The time that the planted leak adds to one class.
const PLANTED_LEAK: Duration = Duration::from_micros(50);

/// The requests of each class that warm up a route.
const WARM_UP: usize = 500;

/// A measured route.
#[derive(Debug)]
struct Route {
    method: &'static str,
    /// The path below `/documents`, with the id in place of `{id}`.
    path: &'static str,
    body: &'static str,
}

/// The routes of documents.
const ROUTES: [Route; 6] = [
    Route { method: "GET", path: "/{id}", body: "" },
    Route { method: "GET", path: "/{id}/text", body: "" },
    Route { method: "GET", path: "/{id}/chunks", body: "" },
    Route { method: "GET", path: "/{id}/file", body: "" },
    Route { method: "PATCH", path: "/{id}", body: r#"{"title":"x"}"# },
    Route { method: "DELETE", path: "/{id}", body: "" },
];

/// The routes of tasks.
const TASK_ROUTES: [Route; 2] = [
    Route { method: "GET", path: "/tasks/{id}", body: "" },
    Route { method: "DELETE", path: "/tasks/{id}", body: "" },
];

#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// Take this many measurements of each class on each route.
    #[arg(long, value_name = "N", default_value_t = 10_000, value_parser = at_least_one)]
    measurements: usize,
    /// Measure the shortest time of this many requests in a row, as somebody would who wants to exclude noise.
    #[arg(long, value_name = "N", default_value_t = 3, value_parser = at_least_one)]
    best_of: usize,
    /// Measure the routes of these methods alone: they differ in duration, and so in how many requests exclude noise.
    #[arg(
        long,
        value_name = "METHODS",
        value_delimiter = ',',
        value_parser = ["GET", "PATCH", "DELETE"],
        ignore_case = true
    )]
    methods: Vec<String>,
    /// Measure tasks too.
    #[arg(long)]
    tasks: bool,
    /// Fail if a classifier separates the two answers better than this.
    #[arg(long, value_name = "AUC", default_value_t = 0.52)]
    max_auc: f64,
    /// Fail if a classifier separates the planted leak worse than this.
    #[arg(long, value_name = "AUC", default_value_t = 0.9)]
    min_control: f64,
    #[command(flatten)]
    login: Login,
}

/// How well a threshold on the response time separates two classes of requests.
#[derive(Debug)]
struct RouteFigures {
    route: String,
    unknown_p50_ms: f64,
    unreadable_p50_ms: f64,
    /// Between unreadable and unknown ids.
    auc: f64,
    /// Between unknown ids, and unknown ids with the planted leak.
    control: f64,
}

/// The figures of all routes.
#[derive(Debug)]
pub(super) struct RightsReport {
    measurements: usize,
    best_of: usize,
    routes: Vec<RouteFigures>,
}

/// Measures on a running server, in a temporary space and with a temporary account.
pub(super) fn measure(args: &Args) -> Result<RightsReport> {
    let admin = args.login.log_in()?;
    let fixture = Fixture::create(&admin, &args.login)?;
    let routes = measure_routes(args, &fixture);
    fixture.remove(&admin)?;
    let Args { measurements, best_of, .. } = *args;
    let report = RightsReport { measurements, best_of, routes: routes? };
    let is_within = |route: &RouteFigures| route.auc <= args.max_auc && route.control >= args.min_control;
    ensure!(
        report.routes.iter().all(is_within),
        "{report}an AUC is above {} or the AUC of a planted leak is below {}",
        args.max_auc,
        args.min_control
    );
    Ok(report)
}

fn measure_routes(args: &Args, fixture: &Fixture) -> Result<Vec<RouteFigures>> {
    let mut connection = Connection::open(&args.login.address()?)?;
    let mut random = XorShift64::new(0x5eed);
    let mut measure = |Route { method, path, body }: &Route, hidden: &[String]| {
        let encode = |ids: &[String]| -> Vec<Vec<u8>> {
            let path = |id: &String| format!("/api/v1/documents{}", path.replace("{id}", id));
            ids.iter().map(|id| connection.encode(method, &path(id), &fixture.token, body)).collect()
        };
        let (unreadable, unknown) = (encode(hidden), encode(&fixture.unknown));
        let mut sample = |first: &[Vec<u8>], second: &[Vec<u8>], leak: Duration, pairs: usize| {
            let classes = [(first, Duration::ZERO), (second, leak)];
            interleaved(&mut connection, &mut random, classes, (pairs, args.best_of))
        };
        sample(&unknown, &unreadable, Duration::ZERO, WARM_UP)?;
        let [absent, hidden] = sample(&unknown, &unreadable, Duration::ZERO, args.measurements)?;
        let [clean, leaky] = sample(&unknown, &unknown, PLANTED_LEAK, args.measurements)?;
        Ok(RouteFigures {
            route: format!("{method} {path}"),
            auc: auc(&without_drift([&absent, &hidden])),
            control: auc(&without_drift([&clean, &leaky])),
            unknown_p50_ms: Latency::of(absent).p50_ms,
            unreadable_p50_ms: Latency::of(hidden).p50_ms,
        })
    };
    let documents = ROUTES.iter().map(|route| (route, &fixture.unreadable));
    let tasks = TASK_ROUTES.iter().filter(|_| args.tasks).map(|route| (route, &fixture.tasks));
    let is_asked = |method: &str| {
        args.methods.is_empty() || args.methods.iter().any(|asked| asked.eq_ignore_ascii_case(method))
    };
    let asked = documents.chain(tasks).filter(|(route, _)| is_asked(route.method));
    asked.map(|(route, hidden)| measure(route, hidden)).collect()
}

/// Takes pairs of measurements, one of each class, in random order, and returns those of both classes.
fn interleaved(
    connection: &mut Connection,
    random: &mut XorShift64,
    classes: [(&[Vec<u8>], Duration); 2],
    (pairs, best_of): (usize, usize),
) -> Result<[Vec<Duration>; 2]> {
    let mut times = [Vec::with_capacity(pairs), Vec::with_capacity(pairs)];
    for pair in 0..pairs {
        let mut order = classes.iter().zip(&mut times).collect::<Vec<_>>();
        if random.next() >> 63 == 0 {
            order.reverse();
        }
        for ((requests, leak), times) in order {
            let Some(request) = requests.get(pair % requests.len().max(1)) else { continue };
            let mut shortest = Duration::MAX;
            for _ in 0..best_of {
                shortest = shortest.min(response_time(connection, request, *leak)?);
            }
            times.push(shortest);
        }
    }
    Ok(times)
}

/// The response time of a request, including busy waiting for the time of a planted leak.
fn response_time(connection: &mut Connection, request: &[u8], leak: Duration) -> Result<Duration> {
    let started = Instant::now();
    let status = connection.send(request)?.status;
    let answered = Instant::now();
    while answered.elapsed() < leak {
        std::hint::spin_loop();
    }
    let took = started.elapsed();
    // A refused credential, for example, is answered alike for all documents. Deleting an unknown one is no error.
    ensure!(matches!(status, 200 | 404), "a measured request was answered with HTTP {status}");
    Ok(took)
}

impl fmt::Display for RightsReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { measurements, best_of, .. } = self;
        writeln!(f, "{measurements} measurements of each class, each the best of {best_of} requests")?;
        writeln!(f, "route                unknown   unreadable    AUC  AUC of {PLANTED_LEAK:?} more")?;
        for route in &self.routes {
            let RouteFigures { route, unknown_p50_ms, unreadable_p50_ms, auc, control } = route;
            writeln!(
                f,
                "{route:<17} {unknown_p50_ms:>7.3} ms  {unreadable_p50_ms:>7.3} ms  {auc:.3}  {control:.3}"
            )?;
        }
        Ok(())
    }
}
