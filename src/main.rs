//! The program: hands the command line to the library and its exit code to the system.

use std::path::Path;
use std::process::ExitCode;

fn main() -> ExitCode {
    lanewright_programs::process::set_descriptors_close_on_exec();
    let mut arguments: Vec<_> = std::env::args_os().collect();
    // Before anything else, because supervisors are many and have to be small and quick to start.
    if let [_, command, job_directory] = arguments.as_slice()
        && command == "supervise"
    {
        return lanewright_programs::process::supervisor::main(Path::new(job_directory));
    }
    if arguments.get(1).is_some_and(|word| word == lanewright_programs::process::DETACHED) {
        lanewright_programs::process::leave_session();
        arguments.remove(1);
        if let [_, command, root] = arguments.as_slice()
            && command == lanewright_programs::process::DELETE_TRASH
        {
            return lanewright::cli::delete_trash(Path::new(root));
        }
    }
    lanewright::cli::main(arguments)
}
