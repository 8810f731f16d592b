//! The binary starts and says what it is. (Its being here also makes `cargo test` build the binary, which the end-to-end tests drive.)

use std::process::Command;

#[test]
fn it_says_its_version_and_commands() {
    let run = |argument: &str| {
        let output = Command::new(env!("CARGO_BIN_EXE_purvey"))
            .arg(argument)
            .output()
            .unwrap();
        assert!(output.status.success(), "{output:?}");
        String::from_utf8(output.stdout).unwrap()
    };
    assert_eq!(
        run("--version"),
        format!("purvey {}\n", env!("CARGO_PKG_VERSION"))
    );
    let help = run("--help");
    for command in [
        "serve",
        "catalog",
        "inspect",
        "search",
        "invoke",
        "check",
        "mcp",
        "completions",
    ] {
        assert!(help.contains(command), "{help}");
    }
}

#[test]
fn what_is_no_token_is_refused_by_the_name_of_where_it_came_from_and_never_shown() {
    let directory = std::env::temp_dir().join(format!("purvey-binary-{}", std::process::id()));
    std::fs::create_dir_all(&directory).unwrap();
    let file = directory.join("token");
    std::fs::write(&file, "planted secret\n").unwrap();
    let file = file.to_str().unwrap();
    // Nothing listens there: a token that was let through would fail to connect, with another exit code.
    let read: &[&str] = &["inspect", "--local", "http://127.0.0.1:9"];
    let run: &[&str] = &["run", "list", "--server", "http://127.0.0.1:9"];
    for command in [read, run] {
        for token in [
            "planted secret",
            "planted\tsecret",
            "planted-é",
            "Bearer planted",
        ] {
            for (arguments, variable, from) in [
                (&["--token", token][..], None, "--token or PURVEY_TOKEN"),
                (&[][..], Some(token), "--token or PURVEY_TOKEN"),
                (
                    &["--token-file", file][..],
                    None,
                    &*format!("--token-file {file}"),
                ),
            ] {
                let mut purvey = Command::new(env!("CARGO_BIN_EXE_purvey"));
                purvey
                    .args(command)
                    .args(arguments)
                    .env_remove("PURVEY_TOKEN");
                purvey.envs(variable.map(|token| ("PURVEY_TOKEN", token)));
                let output = purvey.output().unwrap();
                let said = String::from_utf8(output.stderr).unwrap();
                assert_eq!(output.status.code(), Some(2), "{command:?} {said}");
                let wrong = format!("{from}: a token is visible ASCII characters without blanks");
                assert!(said.contains(&wrong), "{command:?} {said}");
                assert!(!said.contains("planted"), "{command:?} {said}");
            }
        }
    }
    std::fs::remove_dir_all(&directory).unwrap();
}
