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
