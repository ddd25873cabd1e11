//! The same supervision of jobs behind each wall that this machine builds.

use lanewright_model::{Wall, WallBuilder};
use lanewright_programs::wall::{check, choose};

use super::*;

/// Runs `test` with the wall of each builder that works here.
fn behind_each_wall(test: impl Fn(&dyn Fn(&str) -> Job)) {
    let first = choose(&std::env::var("PATH").unwrap()).builder;
    let landlock = Some(WallBuilder::Landlock).filter(|landlock| first.as_ref() != Some(landlock));
    for builder in first.into_iter().chain(landlock).filter(|builder| check(builder).is_ok()) {
        test(&|line| {
            let mut job = Job::shell(line);
            job.spec.wall = Some(Wall {
                builder: builder.clone(),
                writable: vec![job.scratch.path().to_owned()],
                fixed: vec![],
                hidden: vec![],
                network: true,
            });
            job
        });
    }
}

fn is_bubblewrap(job: &Job) -> bool {
    matches!(&job.spec.wall, Some(Wall { builder: WallBuilder::Bubblewrap(_), .. }))
}

#[test]
fn exits_behind_walls_are_as_without() {
    behind_each_wall(|job| {
        for (line, code) in [("exit 7", 7), ("kill -9 $$", 137), ("exit 0", 0)] {
            let exit = job(line).run();
            assert_eq!((exit.cause, exit.exit_code, exit.notes.as_str()), (ExitCause::Exited, code, ""), "{line}");
        }
    });
}

#[test]
fn programs_missing_behind_walls_are_named_as_without() {
    behind_each_wall(|make| {
        let mut job = make("");
        job.spec.steps = vec![CommandLine::Arguments(vec!["no-such-program".to_owned()])];
        let exit = job.run();
        assert_eq!((exit.cause, exit.exit_code), (ExitCause::NotStarted, 127));
        assert!(exit.notes.starts_with("cannot start `no-such-program` in "), "{}", exit.notes);
        // Bubblewrap finds it and cannot start it.
        let mut job = make("");
        let script = job.file("script");
        fs::write(&script, "#!/no/such/interpreter\n").unwrap();
        fs::set_permissions(&script, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
        job.spec.steps = vec![CommandLine::Arguments(vec![script.display().to_string()])];
        let exit = job.run();
        assert!(exit.notes.contains("No such file or directory"), "{}", exit.notes);
        assert!(!exit.notes.contains("the sandbox cannot be built"), "{}", exit.notes);
    });
}

#[test]
fn a_wall_that_cannot_be_built_starts_nothing() {
    let mut job = Job::shell("echo x > started");
    let builder = WallBuilder::Bubblewrap(job.file("bwrap"));
    fs::write(job.file("bwrap"), "#!/bin/sh\necho 'bwrap: No permissions to create new namespace' >&2\nexit 1\n")
        .unwrap();
    fs::set_permissions(job.file("bwrap"), std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    job.spec.wall = Some(Wall { builder, writable: vec![], fixed: vec![], hidden: vec![], network: true });
    let exit = job.run();
    assert_eq!((exit.cause, exit.exit_code), (ExitCause::NotStarted, 127));
    assert!(exit.notes.contains("the sandbox cannot be built: bwrap: No permissions"), "{}", exit.notes);
    assert!(!job.file("started").exists());
}

#[test]
fn agents_behind_walls_end_when_they_are_asked_to() {
    behind_each_wall(|job| {
        let job = job("trap 'echo x > asked; exit 0' TERM; sleep 1000 & echo x > ready; wait");
        let launched = job.launch();
        job.until_written("ready");
        stop(&job.directory, false).unwrap();
        let exit = wait(&job.directory, Some(launched)).unwrap();
        assert_eq!((exit.cause, exit.exit_code), (ExitCause::Stopped, 143));
        assert_eq!(job.text("asked"), "x\n");
        assert_eq!(job.survivors(), [] as [i32; 0]);
    });
}

#[test]
fn stubborn_agents_behind_walls_are_killed() {
    behind_each_wall(|job| {
        let mut timed = job("trap '' TERM; (trap '' TERM; setsid sleep 1000) & echo x > ready; sleep 1000");
        timed.spec.timeout = Some(Duration::from_millis(500));
        timed.spec.kill_after = Duration::from_millis(100);
        let exit = timed.run();
        assert_eq!((exit.cause, exit.exit_code), (ExitCause::TimedOut, 137));
        assert_eq!(timed.survivors(), [] as [i32; 0]);

        let forced = job("trap '' TERM; echo x > ready; while :; do sleep 1; done");
        let launched = forced.launch();
        forced.until_written("ready");
        stop(&forced.directory, true).unwrap();
        let exit = wait(&forced.directory, Some(launched)).unwrap();
        assert_eq!((exit.cause, exit.exit_code), (ExitCause::Stopped, 137));
        assert_eq!(forced.survivors(), [] as [i32; 0]);
    });
}

#[test]
fn programs_left_behind_walls_are_ended_and_counted() {
    behind_each_wall(|job| {
        let job =
            job("setsid sh -c 'trap \"echo x > asked; exit\" TERM; echo x > ready; while :; do sleep 0.05; done' & \
            while ! test -s ready; do sleep 0.01; done");
        let exit = job.run();
        assert_eq!((exit.cause, exit.exit_code), (ExitCause::Exited, 0));
        assert!(exit.notes.starts_with("ended ") && exit.notes.contains("background program"), "{}", exit.notes);
        assert_eq!(job.text("asked"), "x\n", "{}", exit.notes);
        assert_eq!(job.survivors(), [] as [i32; 0]);
    });
}

#[test]
fn agents_behind_walls_end_after_their_supervisor() {
    behind_each_wall(|job| {
        let job = job("trap '' TERM; echo x > ready; while :; do sleep 1; done");
        let launched = job.launch();
        let supervisor = job.supervisor();
        job.until_written("ready");
        kill(supervisor.pid);
        let exit = wait(&job.directory, Some(launched)).unwrap();
        assert_eq!(exit.cause, ExitCause::Lost);
        assert_eq!(job.survivors(), [] as [i32; 0]);
    });
}

#[test]
fn jobs_behind_walls_have_their_own_temporary_files() {
    behind_each_wall(|job| {
        let job =
            job("echo x > $TMPDIR/file && ls $TMPDIR | wc -l > count && echo $TMPDIR > place; echo x > ../outside");
        let exit = job.run();
        assert_ne!(exit.exit_code, 0);
        assert_eq!(job.text("count").trim(), "1");
        assert!(!job.scratch.path().parent().unwrap().join("outside").exists());
        let place = job.text("place");
        let is_shared = is_bubblewrap(&job) && place.trim() == "/tmp";
        assert!(is_shared || !Path::new(place.trim()).exists(), "{place}");
    });
}
