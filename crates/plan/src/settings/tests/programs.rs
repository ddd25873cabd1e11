//! Runners and executors in settings files.

use super::*;

#[test]
fn repository_runners_take_precedence() {
    let repository = file("[runners.mine]\ncommand = [\"agent\", \"--fast\"]\n");
    let user = ConfigFile {
        path: "/user.toml".into(),
        text: "[runners]\nmine.command = \"other\"\nhome.command = \"echo $HOME\"".into(),
    };
    let layers = Layers::read(Layer::default(), &Environment::new(), &[repository, user], &invocation()).unwrap();
    let runners = layers.resolve(None).runners;
    assert_eq!(
        runners["mine"].value.command.clone().unwrap(),
        CommandLine::Arguments(vec!["agent".into(), "--fast".into()])
    );
    assert_eq!(runners["mine"].origin.to_string(), "/home/u/repo/lanewright.toml:2:11");
    assert_eq!(runners["home"].value.command.clone().unwrap(), CommandLine::Shell("echo $HOME".into()));
}

#[test]
fn runner_without_usable_command_is_an_error() {
    for (text, expected) in [
        ("runners = 3", "1:11: `runners` holds tables"),
        ("[runners]\nx = 3", "2:5: write `[runners.x]`"),
        ("[runners.x]", "1:10: the runner `x` has no `command`"),
        ("[runners.x]\ncommand = 'a'\nprompt = 'mail'", "3:10: the runner `x`: unknown variant `mail`"),
        (
            "[runners.claude]\n[[runners.claude.event]]\nsession = 'id'",
            "2:1: the runner `claude`: `id` is no JSON pointer",
        ),
        ("[runners.x]\ncommand = []", "2:11: the `command` of `x` is the program"),
        ("[runners.x]\ncommand = [\"a\", 1]", "2:11: the `command` of `x` is the program"),
        ("[runners.\"../x\"]\ncommand = \"a\"", "1:10: `../x` is no runner's name"),
    ] {
        let found = faults(text);
        assert!(found.len() == 1 && found[0].starts_with(expected), "{text}: {found:?}");
    }
    assert_eq!(
        faults("[runners.x]\ncommand = \"a\"\ncomand = \"b\""),
        ["3:1: unknown key `comand` (did you mean `command`?)"]
    );
}

#[test]
fn repository_executors_take_precedence() {
    let repository = file(
        "[executors.a]\nkind = 'slurm'\npartition = 'main'\narguments = ['--gres=gpu:1']\nmax_lanes = 4\n\
         environment = { API_KEY = '$API_KEY', MODE = 'fast' }",
    );
    let user = ConfigFile {
        path: "/user.toml".into(),
        text: "[executors]\na.kind = 'slurm'\nb = { kind = 'slurm', cache = '/scratch' }".into(),
    };
    let layers = Layers::read(Layer::default(), &Environment::new(), &[repository, user], &invocation()).unwrap();
    let settings = layers.resolve(None);
    assert_eq!(settings.executors["a"].value.partition.as_deref(), Some("main"));
    assert_eq!(settings.executors["b"].value.cache.as_deref(), Some(Path::new("/scratch")));
    let row = settings.rows().into_iter().find(|row| row.key == "executors.a").unwrap();
    let shown = serde_json::json!({
        "kind": "slurm", "partition": "main", "arguments": ["--gres=gpu:1"], "max_lanes": 4,
        "environment": { "API_KEY": "$API_KEY", "MODE": "fast" },
    });
    assert_eq!((row.value, row.origin.to_string().as_str()), (shown, "/home/u/repo/lanewright.toml:1:12"));
}

#[test]
fn executor_fault_has_its_position() {
    for (text, expected) in [
        ("executors = 3", "1:13: `executors` holds tables"),
        ("[executors]\nx = 3", "2:5: write `[executors.x]`"),
        ("[executors.x]", "1:12: the executor `x` has no `kind`"),
        (
            "[executors.x]\nkind = 'slrum'",
            "2:8: the executor `x`: unknown variant `slrum`, expected `slurm` or `kubernetes`",
        ),
        ("[executors.x]\nkind = 'slurm'\npartitoin = 'a'", "3:1: unknown key `partitoin` (did you mean `partition`?)"),
        ("[executors.x]\nkind = 'slurm'\nqos = '-x'", "3:7: the `qos` of the executor `x`: \"-x\" is not a name"),
        ("[executors.x]\nkind = 'slurm'\nmax_lanes = 0", "3:13: the executor `x`: invalid value: integer `0`"),
        ("[executors.x]\nkind = 'slurm'\ncache = 'c'", "3:9: the `cache` of the executor `x`: it is a directory"),
        ("[executors.x]\nkind = 'slurm'\narguments = '-x'", "3:13: the executor `x`: invalid type: string \"-x\""),
        (
            "[executors.x]\nkind = 'slurm'\nenvironment = { A_KEY = 'k' }",
            "3:15: the `environment` of the executor `x`: A_KEY looks like a secret; write `A_KEY = \"$A_KEY\"`",
        ),
        ("[executors.x]\nkind = 'kubernetes'", "1:12: the `image` of the executor `x`: it is missing; write `image = "),
        ("[executors.x]\nkind = 'kubernetes'\nimage = ''", "3:9: the `image` of the executor `x`: \"\" is not a name"),
        (
            "[executors.x]\nkind = 'kubernetes'\nimage = 'i'\nqos = 'high'",
            "4:7: the `qos` of the executor `x`: only executors of kind `slurm` have it",
        ),
        (
            "[executors.x]\nkind = 'slurm'\npod_patch.spec.hostNetwork = true",
            "3:1: the `pod_patch` of the executor `x`: only executors of kind `kubernetes` have it",
        ),
        ("[executors.local]\nkind = 'slurm'", "1:12: `local` is no executor's name: it stands for this machine"),
        ("exchange = 'https://me:pw@host/r.git'", "1:12: `exchange` is a string: it has a password in it"),
    ] {
        let found = faults(text);
        assert!(found.len() == 1 && found[0].starts_with(expected), "{text}: {found:?}");
    }
}
