use super::Gate;
use crate::{code::Code, error::Error, sql::Store, stage::on_each_store};
use futures_util::{FutureExt, future::join_all};
use parking_lot::Mutex;
use std::sync::{Arc, mpsc};

fn runtime() -> tokio::runtime::Runtime {
    tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap()
}

/// What one transaction each was asked.
type Asked = Arc<Mutex<Vec<Vec<u32>>>>;

/// A gate that answers ten times as much; 0 waits for leave, 7 is refused, 13 panics, 17 takes the store away, 19 fails the whole.
fn gate(store: &Store) -> (Gate<u32, u32>, Asked, mpsc::Sender<()>) {
    let asked = Asked::default();
    let (go, wait) = mpsc::channel();
    let wait = Mutex::new(wait);
    let gate = Gate::new(store.clone(), {
        let asked = asked.clone();
        move |session, questions| {
            session.row("SELECT 1", &[])?;
            asked.lock().push(questions.to_vec());
            let answer = |question: &u32| match question {
                0 => {
                    wait.lock().recv().unwrap();
                    Ok(Ok(0))
                }
                7 => Ok(Err(Code::QueueFull.into())),
                13 => panic!("a defect"),
                17 => Err(Error::Unavailable {
                    detail: "gone".into(),
                }),
                19 => Err(Code::NotFound.into()),
                other => Ok(Ok(other * 10)),
            };
            questions.iter().map(answer).collect()
        }
    });
    (gate, asked, go)
}

fn said(answer: Result<u32, Error>) -> String {
    match answer {
        Ok(answer) => answer.to_string(),
        Err(Error::Refused(refusal)) => refusal.code.text().into(),
        Err(Error::Store { detail } | Error::Unavailable { detail }) => detail,
        Err(other) => panic!("{other}"),
    }
}

/// What becomes of questions that come while the first is under way; and what each transaction was asked.
fn gathered(store: &Store, questions: &[u32]) -> (Vec<String>, Vec<Vec<u32>>) {
    let (gate, asked, go) = gate(store);
    let answers = runtime().block_on(async {
        let mut all = std::iter::once(&0)
            .chain(questions)
            .map(|question| gate.ask("w", *question))
            .collect::<Vec<_>>();
        let mut all = Box::pin(join_all(all.drain(..)));
        assert!(all.as_mut().now_or_never().is_none());
        go.send(()).unwrap();
        let answers = all.await;
        // Nothing is left behind that others would wait for.
        assert_eq!(said(gate.ask("w", 5).await), "50");
        answers
    });
    let mut asked = asked.lock().clone();
    assert_eq!(asked.pop(), Some(vec![5]));
    let mut answers: Vec<_> = answers.into_iter().map(said).collect();
    assert_eq!(answers.remove(0), "0");
    (answers, asked)
}

#[test]
fn what_comes_meanwhile_goes_together_each_with_its_own_answer() {
    on_each_store(|store| {
        let (answers, asked) = gathered(store, &[1, 7, 2]);
        assert_eq!(answers, ["10", "queue.full", "20"]);
        assert_eq!(asked, [vec![0], vec![1, 7, 2]]);
    });
}

#[test]
fn a_burst_goes_in_bounded_transactions_in_its_order() {
    on_each_store(|store| {
        let (answers, asked) = gathered(store, &(1_000..1_300).collect::<Vec<_>>());
        assert_eq!(answers[299], "12990");
        let rest: Vec<u32> = (1_256..1_300).collect();
        assert_eq!(asked, [vec![0], (1_000..1_256).collect(), rest]);
    });
}

#[test]
fn a_store_that_cannot_be_used_answers_all() {
    on_each_store(|store| {
        let (answers, asked) = gathered(store, &[1, 17, 2]);
        assert_eq!(answers, ["gone", "gone", "gone"]);
        assert_eq!(asked.len(), 2);
    });
}

#[test]
fn one_that_breaks_the_transaction_breaks_only_its_own() {
    on_each_store(|store| {
        let (answers, _) = gathered(store, &[1, 13, 2, 19, 3]);
        let broken = "a transaction panicked";
        assert_eq!(answers, ["10", broken, "20", "resource.not_found", "30"]);
    });
}

#[test]
fn who_gives_up_while_it_gathers_is_not_asked_for() {
    on_each_store(|store| {
        let (gate, asked, go) = gate(store);
        runtime().block_on(async {
            let mut first = Box::pin(gate.ask("w", 0));
            assert!(first.as_mut().now_or_never().is_none());
            for question in [1, 2] {
                assert!(gate.ask("w", question).now_or_never().is_none());
            }
            let mut last = Box::pin(gate.ask("w", 3));
            assert!(last.as_mut().now_or_never().is_none());
            go.send(()).unwrap();
            assert_eq!(said(first.await), "0");
            assert_eq!(said(last.await), "30");
        });
        assert_eq!(*asked.lock(), [vec![0], vec![3]]);
    });
}

#[test]
fn what_gathered_is_answered_though_its_platform_is_gone() {
    on_each_store(|store| {
        let (gate, _, go) = gate(store);
        runtime().block_on(async {
            let asks = [0, 1].map(|question| {
                let gate = gate.clone();
                tokio::spawn(async move { gate.ask("w", question).await })
            });
            tokio::task::yield_now().await;
            drop(gate);
            go.send(()).unwrap();
            let [first, second] = asks;
            assert_eq!(said(first.await.unwrap()), "0");
            assert_eq!(said(second.await.unwrap()), "10");
        });
    });
}
