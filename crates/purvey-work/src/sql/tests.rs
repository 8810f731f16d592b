use super::{Hub, Param, Session, Store, Value, postgres::Postgres};
use crate::{
    error::Error,
    stage::{on_each_store as on_each, postgres::Schema},
};
use ::postgres::config::Host;
use std::{
    io::{Read, Write},
    net::{Shutdown, TcpListener, TcpStream},
    os::unix::net::UnixStream,
    sync::{
        Arc, Barrier,
        atomic::{AtomicBool, AtomicU32, Ordering},
    },
};

fn runtime() -> tokio::runtime::Runtime {
    tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
        .unwrap()
}

fn put(session: &mut dyn Session, key: &str) -> Result<(), Error> {
    session.execute(
        "INSERT INTO organizations (id, name, created_at) VALUES ($1, 'n', 0)",
        &[Param::Text(key)],
    )?;
    Ok(())
}

fn count(store: &Store) -> i64 {
    let sql = "SELECT COUNT(*) FROM organizations";
    store
        .read_now(|session| session.row(sql, &[])?.unwrap().int(0))
        .unwrap()
}

fn refused() -> Error {
    crate::Code::StateConflict.into()
}

#[test]
fn values_come_back_as_they_were() {
    on_each(|store| {
        let row = store
            .write_now(|session| {
                let sql = "INSERT INTO triggers (id, workspace_id, agent_id, kind, input, cron, enabled, created_by, hash, fire_at, created_at) \
                           VALUES ('t', 'w', 'a', 'k', $1, $2, 1, 'u', $3, $4, $5)";
                put(session, "w")?;
                session.execute("INSERT INTO users (id, organization_id, display_name, state, approved, created_at) VALUES ('u', 'w', 'd', 'active', 1, 0)", &[])?;
                session.execute("INSERT INTO workspaces (id, organization_id, name, owner_id, concurrency_limit, queue_limit, running, queued, next_position, created_at) VALUES ('w', 'w', 'n', 'u', 1, 1, 0, 0, 1, 0)", &[])?;
                session.execute(sql, &[Param::Text("ü$1"), Param::Null, Param::Bytes(&[0, 255]), Param::Null, Param::Int(i64::MIN)])?;
                let rows = session.query("SELECT input, cron, hash, fire_at, created_at, CAST(SUM(enabled) AS BIGINT), created_at < 0 FROM triggers WHERE id = $1 GROUP BY id, input, cron, hash, fire_at, created_at /*pg:ORDER BY id*/", &[Param::Text("t")])?;
                Ok(rows)
            })
            .unwrap();
        let expected = [
            Value::Text("ü$1".into()),
            Value::Null,
            Value::Bytes(vec![0, 255]),
            Value::Null,
            Value::Int(i64::MIN),
            Value::Int(1),
            Value::Int(1),
        ];
        assert_eq!(row[0].values(), expected);
    });
}

#[test]
fn jobs_that_share_a_transaction_fail_alone() {
    on_each(|store| {
        runtime().block_on(async {
            let mut jobs = tokio::task::JoinSet::new();
            for number in 0..200 {
                let store = store.clone();
                jobs.spawn(async move {
                    let job = move |session: &mut dyn Session| {
                        put(session, &format!("k{number}"))?;
                        if number % 10 == 3 {
                            return Err(refused());
                        }
                        Ok(number)
                    };
                    let lane = format!("lane{}", number % 3);
                    match number % 2 {
                        0 => store.write(job).await,
                        _ => store.write_in(&lane, job).await,
                    }
                });
            }
            let outcomes = jobs.join_all().await;
            let done = outcomes.iter().filter(|outcome| outcome.is_ok()).count();
            assert_eq!(done, 180);
            assert!(
                outcomes
                    .iter()
                    .all(|outcome| matches!(outcome, Ok(_) | Err(Error::Refused(_))))
            );
        });
        assert_eq!(count(store), 180);
    });
}

#[test]
fn jobs_of_one_lane_keep_their_order() {
    on_each(|store| {
        let seen = Arc::new(parking_lot::Mutex::new(Vec::new()));
        runtime().block_on(async {
            let mut jobs = Vec::new();
            for number in 0..50 {
                let seen = seen.clone();
                let mut job = Box::pin(store.write_in("lane", move |_| {
                    seen.lock().push(number);
                    Ok(())
                }));
                // The first poll hands it over, and on a quick store may see it done.
                match futures_util::poll!(job.as_mut()) {
                    std::task::Poll::Ready(outcome) => outcome.unwrap(),
                    std::task::Poll::Pending => jobs.push(job),
                }
            }
            for job in jobs {
                job.await.unwrap();
            }
        });
        assert_eq!(*seen.lock(), (0..50).collect::<Vec<_>>());
    });
}

#[test]
fn a_failed_statement_fails_its_transaction_even_when_it_is_ignored() {
    on_each(|store| {
        let outcome = store.write_now(|session| {
            put(session, "a")?;
            let _ = session.execute("INSERT INTO no_such_table VALUES (1)", &[]);
            Ok(())
        });
        assert!(matches!(outcome, Err(Error::Store { .. })));
        assert_eq!(count(store), 0);
        store.write_now(|session| put(session, "b")).unwrap();
        assert_eq!(count(store), 1);
    });
}

#[test]
fn a_panic_in_a_job_leaves_the_store_working() {
    on_each(|store| {
        runtime().block_on(async {
            let outcome = store
                .write(|session| -> Result<(), Error> {
                    put(session, "a")?;
                    panic!("on purpose")
                })
                .await;
            assert!(matches!(outcome, Err(Error::Store { .. })));
            store.write(|session| put(session, "b")).await.unwrap();
        });
        assert_eq!(count(store), 1);
    });
}

#[test]
fn news_comes_once_what_it_tells_of_is_durable() {
    on_each(|store| {
        runtime().block_on(async {
            let mut watch = store.hub().watch("topic");
            let failed = store.write(|session| {
                session.notify("topic")?;
                Err::<(), _>(refused())
            });
            assert!(failed.await.is_err());
            let told = store.write(|session| {
                put(session, "a")?;
                session.notify("topic")
            });
            told.await.unwrap();
            watch.changed().await;
            assert_eq!(count_async(store).await, 1);
            assert_eq!(store.hub().topics(), 1);
            drop(watch);
            assert_eq!(store.hub().topics(), 0);
        });
    });
}

async fn count_async(store: &Store) -> i64 {
    let sql = "SELECT COUNT(*) FROM organizations";
    store
        .read(move |session| session.row(sql, &[])?.unwrap().int(0))
        .await
        .unwrap()
}

#[test]
fn readers_see_one_state() {
    on_each(|store| {
        store.write_now(|session| put(session, "a")).unwrap();
        let written = store.read_now(|session| put(session, "b"));
        // A read in memory uses the writer's connection, and is undone.
        drop(written);
        assert_eq!(count(store), 1);
    });
}

#[test]
fn a_file_belongs_to_one_process_and_is_kept() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("work.db");
    let store = Store::sqlite(&path).unwrap();
    store.write_now(|session| put(session, "a")).unwrap();
    let second = Store::sqlite(&path).err().unwrap().to_string();
    assert!(second.contains("in use by another process"), "{second}");
    drop(store);
    assert_eq!(count(&Store::sqlite(&path).unwrap()), 1);
}

#[test]
fn a_newer_store_is_refused() {
    on_each(|store| {
        let raise = "INSERT INTO migrations (version) VALUES (999)";
        store
            .write_now(|session| session.execute(raise, &[]))
            .unwrap();
        let again = store.write_now(|session| super::schema::migrate(session));
        let detail = again.unwrap_err().to_string();
        assert!(detail.contains("written by a newer Purvey"), "{detail}");
    });
}

#[test]
fn a_deadlock_is_run_again() {
    let Some(schema) = Schema::fresh() else {
        return;
    };
    let store = Store::postgres(&schema.url()).unwrap();
    store
        .write_now(|session| {
            put(session, "a")?;
            put(session, "b")
        })
        .unwrap();
    let barrier = Arc::new(Barrier::new(2));
    let threads = [["a", "b"], ["b", "a"]].map(|keys| {
        let (store, barrier) = (store.clone(), barrier.clone());
        std::thread::spawn(move || {
            let mut first = true;
            store.write_now(|session| {
                for key in keys {
                    let sql = "UPDATE organizations SET created_at = created_at + 1 WHERE id = $1";
                    session.execute(sql, &[Param::Text(key)])?;
                    if std::mem::take(&mut first) {
                        barrier.wait();
                    }
                }
                Ok(())
            })
        })
    });
    for thread in threads {
        thread.join().unwrap().unwrap();
    }
    let sum = "SELECT CAST(SUM(created_at) AS BIGINT) FROM organizations";
    let sum = store.read_now(|session| session.row(sum, &[])?.unwrap().int(0));
    assert_eq!(sum.unwrap(), 4);
}

#[test]
fn a_cut_connection_is_made_anew_and_its_job_done_once() {
    let Some(schema) = Schema::fresh() else {
        return;
    };
    let store = Store::postgres(&schema.url()).unwrap();
    let runs = AtomicU32::new(0);
    store
        .write_now(|session| {
            put(session, "a")?;
            if runs.fetch_add(1, Ordering::Relaxed) == 0 {
                let pid = session
                    .row("SELECT pg_backend_pid()", &[])?
                    .unwrap()
                    .int(0)?;
                schema.execute(&format!("SELECT pg_terminate_backend({pid}, 10000)"));
            }
            put(session, "b")
        })
        .unwrap();
    assert_eq!(runs.load(Ordering::Relaxed), 2);
    assert_eq!(count(&store), 2);
}

#[test]
fn a_transaction_that_stood_still_for_too_long_is_run_again() {
    let Some(schema) = Schema::fresh() else {
        return;
    };
    let store = Store::postgres(&schema.url()).unwrap();
    let runs = AtomicU32::new(0);
    store
        .write_now(|session| {
            put(session, "a")?;
            if runs.fetch_add(1, Ordering::Relaxed) == 0 {
                session.execute("SET LOCAL idle_in_transaction_session_timeout = 1", &[])?;
                std::thread::sleep(std::time::Duration::from_millis(100));
            }
            put(session, "b")
        })
        .unwrap();
    assert_eq!(runs.load(Ordering::Relaxed), 2);
    assert_eq!(count(&store), 2);
}

#[test]
fn what_nobody_waits_for_any_more_is_not_done() {
    let Some(schema) = Schema::fresh() else {
        return;
    };
    let store = Store::postgres(&schema.url()).unwrap();
    let (begins, mut begun) = tokio::sync::mpsc::unbounded_channel();
    let (release, released) = std::sync::mpsc::channel::<()>();
    let first = store.write_in("lane", move |_| {
        let _ = begins.send(());
        let _ = released.recv();
        Ok(())
    });
    let others = async {
        begun.recv().await;
        let behind = store.write_in("lane", |session| put(session, "a"));
        let given_up = tokio::time::timeout(std::time::Duration::ZERO, behind).await;
        assert!(given_up.is_err());
        drop(release);
    };
    runtime().block_on(async {
        let (first, ()) = tokio::join!(first, others);
        first.unwrap();
        let last = store.write_in("lane", |session| put(session, "b"));
        last.await.unwrap();
    });
    assert_eq!(count(&store), 1);
}

#[test]
fn a_server_that_is_not_there_is_unavailable() {
    // Bound and never accepted from again: nobody else gets the port.
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    drop(listener);
    let opened = Store::postgres(&format!("postgres://u@127.0.0.1:{port}/d"));
    assert!(matches!(opened.err(), Some(Error::Unavailable { .. })));
}

#[test]
fn nodes_may_start_together_and_hear_of_each_other() {
    let Some(schema) = Schema::fresh() else {
        return;
    };
    let starts = [(); 4].map(|()| {
        let url = schema.url();
        std::thread::spawn(move || Store::postgres(&url).unwrap())
    });
    let stores = starts.map(|start| start.join().unwrap());
    // This hub does not poll: only a notification can wake it.
    let hub = Hub::local();
    let listening = Postgres::open(&schema.url(), hub.clone()).unwrap();
    runtime().block_on(async {
        let mut watch = hub.watch("topic");
        // Beginning to listen wakes everyone once; the second time is the notification's.
        for store in &stores[..2] {
            tokio::select! {
                () = watch.changed() => {}
                () = keep_telling(store) => {}
            }
        }
    });
    drop(listening);
}

async fn keep_telling(store: &Store) {
    loop {
        let told = store.write(|session| session.notify("topic")).await;
        told.unwrap();
        tokio::time::sleep(std::time::Duration::from_millis(20)).await;
    }
}

#[test]
fn a_commit_whose_answer_is_lost_is_never_success_and_never_made_again() {
    let Some(schema) = Schema::fresh() else {
        return;
    };
    let direct = Store::postgres(&schema.url()).unwrap();
    let (url, armed) = cut_behind_commit(&schema.url());
    let store = Store::postgres(&url).unwrap();
    let runs = AtomicU32::new(0);
    armed.store(true, Ordering::SeqCst);
    let outcome = store.write_now(|session| {
        runs.fetch_add(1, Ordering::Relaxed);
        put(session, "a")
    });
    assert!(matches!(outcome, Err(Error::Unavailable { .. })));
    assert_eq!(runs.load(Ordering::Relaxed), 1);
    // The server did it all the same, as soon as it came to it.
    while count(&direct) == 0 {
        std::thread::yield_now();
    }
    armed.store(false, Ordering::SeqCst);
    store.write_now(|session| put(session, "b")).unwrap();
    assert_eq!(count(&direct), 2);
}

/// A way to the server that, when it is armed, is cut on the caller's side as soon as a commit has passed.
fn cut_behind_commit(url: &str) -> (String, Arc<AtomicBool>) {
    let config: ::postgres::Config = url.parse().unwrap();
    let near = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = near.local_addr().unwrap().port();
    let user = config.get_user().unwrap();
    let password = String::from_utf8_lossy(config.get_password().unwrap_or_default()).into_owned();
    let options = config.get_options().unwrap().replace('=', "%3D");
    let url = format!(
        "postgres://{user}:{password}@127.0.0.1:{port}/{}?sslmode=disable&options={options}",
        config.get_dbname().unwrap()
    );
    let armed = Arc::new(AtomicBool::new(false));
    let arm = armed.clone();
    std::thread::spawn(move || {
        for caller in near.incoming().map_while(Result::ok) {
            let (mut answers, mut server) = reach(&config);
            let mut back = caller.try_clone().unwrap();
            std::thread::spawn(move || std::io::copy(&mut answers, &mut back));
            let arm = arm.clone();
            std::thread::spawn(move || {
                let mut caller = caller;
                let mut bytes = [0; 16_384];
                while let Ok(read @ 1..) = caller.read(&mut bytes) {
                    if server.write_all(&bytes[..read]).is_err() {
                        break;
                    }
                    let commit = bytes[..read].windows(6).any(|word| word == b"COMMIT");
                    if commit && arm.load(Ordering::SeqCst) {
                        let _ = caller.shutdown(Shutdown::Both);
                    }
                }
            });
        }
    });
    (url, armed)
}

type Reach = (Box<dyn Read + Send>, Box<dyn Write + Send>);

fn reach(config: &::postgres::Config) -> Reach {
    let port = config.get_ports().first().copied().unwrap_or(5432);
    match &config.get_hosts()[0] {
        Host::Tcp(name) => {
            let server = TcpStream::connect((name.as_str(), port)).unwrap();
            (Box::new(server.try_clone().unwrap()), Box::new(server))
        }
        Host::Unix(directory) => {
            let socket = directory.join(format!(".s.PGSQL.{port}"));
            let server = UnixStream::connect(socket).unwrap();
            (Box::new(server.try_clone().unwrap()), Box::new(server))
        }
    }
}
