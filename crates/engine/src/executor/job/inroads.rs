//! What in a worktree leads programs that run there to code of another checkout: a gate would judge that.

use std::fs;
use std::io::Read;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use lanewright_files::directory;
use lanewright_files::regular_file::{self, Links};
use lanewright_git::{INCLUDE_FILE, is_ignored};
use lanewright_model::{JobId, JobRole};

use super::manifests;
use super::python::CheckoutPython;
use crate::executor::{Executor, ExecutorError, Result};

/// How much of a program is read for the interpreter and the places of packages that it names, in bytes.
const FIRST_LINES: u64 = 4096;

/// How much of a file that names places of packages is read, in bytes.
const FILE_LIMIT: u64 = 1 << 20;

/// How deep below the top of a worktree that set-up or copies filled, and in how many directories of one depth, it is
/// looked at.
const NESTED: usize = 2;
const MOST_DIRECTORIES: usize = 500;

impl Executor {
    /// Refuses a job other than set-up, which may repair it, where `worktree` or the active Python leads into another
    /// checkout.
    pub(super) fn refuse_inroads(&self, job: &JobId, worktree: &Path) -> Result<()> {
        // The final gate's job begins with the set-up that all lanes have.
        if matches!(job.role, JobRole::Setup { .. }) || job.lane.is_none() && !self.common_setup().is_empty() {
            return Ok(());
        }
        let lane = job.lane.as_ref().and_then(|lane| self.plan.find(lane));
        let own = lane.map(|lane| self.plan.lane(lane).env.clone()).unwrap_or_default();
        let is_set_up = lane.is_some_and(|lane| !self.plan.lane(lane).setup.is_empty());
        if !CheckoutPython::is_replaced_in(worktree)
            && let Some(python) = self.surroundings.uses_python(worktree, &own)
            && !(is_set_up && python.can_be_left_out())
        {
            return Err(ExecutorError::Precondition(python.refusal()));
        }
        self.refuse_inner_inroads(job, worktree)
    }

    /// Refuses a job in `worktree` where what is in it leads into another checkout.
    pub(super) fn refuse_inner_inroads(&self, job: &JobId, worktree: &Path) -> Result<()> {
        let depth = if self.is_filled(job) { NESTED } else { 0 };
        let inroads = self.inroads(worktree);
        // What an agent wrote is for its next attempt to repair.
        let is_meant = |manifest: &Manifest| {
            let name = manifest.place.strip_prefix(&inroads.worktree).unwrap_or(&manifest.place).to_string_lossy();
            !job.is_attempt() || manifest.is_the_users || is_ignored(worktree, &name).unwrap_or(true)
        };
        let found = match inroads.find(depth, is_meant).or_else(|| inroads.above()) {
            None => self.surroundings.first_committed_link(worktree, |link| inroads.of_link(link))?,
            found => found,
        };
        let Some(Inroad { place, target, remedy }) = found else { return Ok(()) };
        Err(ExecutorError::Precondition(format!(
            "{} leads to {} in another checkout, whose code would be run and judged; {remedy}, then resume",
            place.display(),
            target.display()
        )))
    }

    /// Why the work of an agent, which `changed` these files of `worktree`, cannot be judged: gates would run the code of another
    /// checkout.
    pub(in crate::executor) fn manifest_leading_out(&self, worktree: &Path, changed: &[String]) -> Option<String> {
        let inroads = self.inroads(worktree);
        let changed = changed.iter().map(|path| inroads.worktree.join(path));
        let manifests = changed.filter(|place| manifests::is_manifest(place));
        let mut leading = manifests.filter_map(|place| inroads.in_manifest(place)).filter(|it| !it.is_the_users);
        let Manifest { place, line, target, .. } = leading.next()?;
        let place = place.strip_prefix(&inroads.worktree).unwrap_or(&place).display();
        let target = target.display();
        Some(format!(
            "{place}:{line} names {target} in another checkout; write a relative path that stays in the worktree"
        ))
    }

    fn inroads(&self, worktree: &Path) -> Inroads<'_> {
        Inroads { slots: Some(self.pool.root()), ..Inroads::new(self.surroundings.checkouts(), worktree) }
    }

    /// Whether set-up or copies put something into the worktree of a job that is not in git.
    fn is_filled(&self, job: &JobId) -> bool {
        let lane = job.lane.as_ref().and_then(|lane| self.plan.find(lane));
        let mut lanes = self.plan.lanes.iter().enumerate().filter(|(at, _)| lane.is_none_or(|lane| lane.at() == *at));
        lanes.any(|(_, lane)| !lane.setup.is_empty() || !lane.copy.is_empty())
            || self.repository.main_worktree().join(INCLUDE_FILE).exists()
    }
}

/// What leads to another checkout, and where.
pub(super) struct Inroad {
    pub(super) place: PathBuf,
    pub(super) target: PathBuf,
    remedy: String,
}

/// A manifest that expects a package in another checkout.
struct Manifest {
    place: PathBuf,
    line: usize,
    target: PathBuf,
    /// The manifest in a checkout of the user's names it as well.
    is_the_users: bool,
}

pub(super) struct Inroads<'a> {
    checkouts: &'a [PathBuf],
    /// Those below it are no user's.
    slots: Option<&'a Path>,
    worktree: PathBuf,
}

impl<'a> Inroads<'a> {
    pub(super) fn new(checkouts: &'a [PathBuf], worktree: &Path) -> Self {
        Self { checkouts, slots: None, worktree: worktree.canonicalize().unwrap_or_else(|_| worktree.to_owned()) }
    }

    /// The first place that leads into another checkout, and where it leads; looked for at the top of the worktree and up to
    /// `depth` directories below.
    fn find(&self, depth: usize, is_meant: impl Fn(&Manifest) -> bool) -> Option<Inroad> {
        // `direnv` makes its virtual environments in a directory of its own.
        let mut places = [vec![self.worktree.clone()], contents(&self.worktree.join(".direnv")).inner].concat();
        let mut level = vec![self.worktree.clone()];
        let mut manifests = Vec::new();
        for _ in 0..=depth {
            let mut below = Vec::new();
            for directory in &level {
                let contents = contents(directory);
                below.extend(contents.inner);
                manifests.extend(contents.manifests);
            }
            let is_source = |place: &&PathBuf| {
                let name = place.file_name().unwrap_or_default();
                !place.is_symlink() && name != "node_modules" && !name.as_bytes().starts_with(b".")
            };
            level = below.iter().filter(is_source).take(MOST_DIRECTORIES).cloned().collect();
            places.extend(below);
        }
        let found = places.into_iter().find_map(|place| match place.file_name() {
            Some(name) if name == "node_modules" => self.in_packages(&place),
            _ if place.join("pyvenv.cfg").is_file() => self.in_virtual_environment(&place),
            _ => None,
        });
        let remedy = "remove it, have `setup` install in the worktree (`npm ci`, `uv sync`)";
        let found = found.map(|(place, target)| Inroad { place, target, remedy: remedy.to_owned() });
        found.or_else(|| self.in_manifests(manifests, is_meant))
    }

    /// The first of `manifests` that expects a package in another checkout, unless `is_meant` lets it pass.
    fn in_manifests(&self, manifests: Vec<PathBuf>, is_meant: impl Fn(&Manifest) -> bool) -> Option<Inroad> {
        let mut found = manifests.into_iter().filter_map(|place| self.in_manifest(place)).filter(is_meant);
        found.next().map(|Manifest { place, line, target, is_the_users }| {
            let remedy = match is_the_users {
                true => format!(
                    "write a relative path in line {line} of it in your checkout that stays there, commit that if git has the file"
                ),
                false => {
                    format!("have a relative path in line {line} of it that stays there, from `setup` or in a commit")
                }
            };
            Inroad { place, target, remedy: format!("{remedy}, and roll the lane back") }
        })
    }

    fn in_manifest(&self, place: PathBuf) -> Option<Manifest> {
        let directory = place.parent()?;
        let leads_out = |path: &Path| {
            let target = directory.join(path).canonicalize().ok()?;
            (self.is_elsewhere(&target) && self.has_too(&target)).then_some(target)
        };
        let mut named = named_in_manifest(&place).into_iter();
        let (line, path, target) =
            named.find_map(|(line, path)| leads_out(&path).map(|target| (line, path, target)))?;
        let name = place.strip_prefix(&self.worktree).ok()?;
        let mut users = self.checkouts.iter().filter(|it| !self.slots.is_some_and(|slots| it.starts_with(slots)));
        // A relative one leads elsewhere from there.
        let names_it = |checkout: &PathBuf| named_in_manifest(&checkout.join(name)).iter().any(|(_, it)| *it == path);
        let is_the_users = path.is_absolute() && users.any(names_it);
        Some(Manifest { place, line, target, is_the_users })
    }

    /// Whether the worktree has what is at `target` in the checkout. Data that git ignores is nowhere else.
    fn has_too(&self, target: &Path) -> bool {
        self.below(target).is_some_and(|below| self.worktree.join(below).exists())
    }

    /// Links in the `node_modules` of directories above the worktree, where Node.js looks for what the worktree's own lacks.
    fn above(&self) -> Option<Inroad> {
        if !self.worktree.join("package.json").exists() {
            return None;
        }
        let own = self.worktree.join("node_modules");
        let mut above = self.worktree.ancestors().skip(1).map(|directory| directory.join("node_modules"));
        above.find_map(|packages| {
            let is_lacking = |link: &PathBuf| {
                let name = link.strip_prefix(&packages).unwrap_or(link);
                !name.starts_with(".bin") && own.join(name).symlink_metadata().is_err()
            };
            let (place, target) = self.first_link(links_of_packages(&packages).into_iter().filter(is_lacking))?;
            let name = Path::new("node_modules").join(place.strip_prefix(&packages).ok()?);
            let remedy = format!(
                "Node.js finds it from worktrees there: give each its own (`setup = ['mkdir -p {} && ln -sfn \"{}\" {}']`), or \
                 choose another `worktree_root`",
                name.parent()?.display(),
                Path::new("$PWD").join(self.below(&target)?).components().as_path().display(),
                name.display(),
            );
            Some(Inroad { place, target, remedy })
        })
    }

    /// A committed link, which leads to the same place from each worktree.
    fn of_link(&self, link: &Path) -> Option<Inroad> {
        let target = link.canonicalize().ok().filter(|target| self.is_elsewhere(target) && self.has_too(target))?;
        let (name, below) = (link.strip_prefix(&self.worktree).ok()?, self.below(&target)?);
        let up = "../".repeat(name.components().count() - 1);
        let remedy = format!(
            "make it relative in your checkout (`ln -sfn {up}{} {}`), commit that and roll the lane back",
            below.display(),
            name.display()
        );
        Some(Inroad { place: link.to_owned(), target, remedy })
    }

    /// A worktree may be below a checkout.
    fn is_elsewhere(&self, target: &Path) -> bool {
        !target.starts_with(&self.worktree) && self.checkouts.iter().any(|checkout| target.starts_with(checkout))
    }

    /// The path of `target` relative to the innermost checkout that it is in.
    fn below<'t>(&self, target: &'t Path) -> Option<&'t Path> {
        self.checkouts.iter().find_map(|checkout| target.strip_prefix(checkout).ok())
    }

    /// Links of workspaces, and of `npm link`. What is installed in another `node_modules` is no code of the checkout; but
    /// programs of pnpm have Node.js look for packages where they were installed, workspaces among them.
    fn in_packages(&self, packages: &Path) -> Option<(PathBuf, PathBuf)> {
        let programs = entries(&packages.join(".bin")).into_iter().filter(|program| !program.is_symlink());
        let mut named = programs.filter_map(|program| {
            let text = beginning(&program, FIRST_LINES)?;
            let mut places = self.checkouts.iter().flat_map(|checkout| named_in(&text, checkout));
            let target = places.find(|target| self.is_elsewhere(target))?;
            Some((program, target))
        });
        if let Some(found) = named.next() {
            return Some(found);
        }
        // Where pnpm keeps what it installed.
        let stored = packages.join(".pnpm/node_modules");
        self.first_link(links_of_packages(packages).into_iter().chain(links_of_packages(&stored)))
    }

    fn first_link(&self, links: impl Iterator<Item = PathBuf>) -> Option<(PathBuf, PathBuf)> {
        let mut leading = links.filter_map(|link| link.canonicalize().ok().map(|target| (link, target)));
        leading.find(|(_, target)| {
            self.is_elsewhere(target) && !target.components().any(|part| part.as_os_str() == "node_modules")
        })
    }

    fn in_virtual_environment(&self, place: &Path) -> Option<(PathBuf, PathBuf)> {
        // What it names of itself leads nowhere else, also if it is reached by a link.
        let own = place.canonicalize().ok()?;
        let leads = |target: &Path| self.is_elsewhere(target) && !target.starts_with(&own);
        let python = place.join("bin/python");
        if let Some(target) = fs::read_link(&python).ok().filter(|target| leads(target)) {
            return Some((python, target));
        }
        let mut programs = entries(&place.join("bin")).into_iter().filter_map(|file| {
            let text = beginning(&file, FIRST_LINES)?;
            let mut named = self.checkouts.iter().flat_map(|checkout| named_in(&text, checkout));
            let target = named.find(|target| leads(target))?;
            Some((file, target))
        });
        programs.next().or_else(|| self.in_site_packages(place))
    }

    /// What at the top level of the packages of a Python environment leads elsewhere: editable packages.
    pub(super) fn in_site_packages(&self, place: &Path) -> Option<(PathBuf, PathBuf)> {
        let own = place.canonicalize().ok()?;
        let leads = |target: &Path| self.is_elsewhere(target) && !target.starts_with(&own);
        let versions = ["lib", "lib64"].into_iter().flat_map(|name| entries(&place.join(name)));
        let versions = versions.filter(|lib| lib.file_name().unwrap_or_default().as_bytes().starts_with(b"py"));
        let packages = versions.flat_map(|lib| ["site-packages", "dist-packages"].map(|name| entries(&lib.join(name))));
        let (links, packages): (Vec<PathBuf>, Vec<PathBuf>) = packages.flatten().partition(|place| place.is_symlink());
        let mut links = links.into_iter().filter_map(|place| Some((place.clone(), place.canonicalize().ok()?)));
        if let Some(found) = links.find(|(_, target)| leads(target)) {
            return Some(found);
        }
        let mut packages = packages.into_iter().filter(|file| {
            let name = file.file_name().unwrap_or_default().to_string_lossy();
            // Each tool gives its loader another name, such as `__editable___x_finder.py` or `_x_editable_loader.py`.
            name.ends_with(".pth") || name.ends_with(".egg-link") || name.contains("editable") && name.ends_with(".py")
        });
        packages.find_map(|file| {
            let text = beginning(&file, FILE_LIMIT)?;
            let named = self.checkouts.iter().flat_map(|checkout| named_in(&text, checkout));
            // Each line of a `.pth` is a directory, or begins with `import`.
            let lines = text.lines().filter(|line| line.starts_with(['.', '/']));
            let directories =
                lines.filter_map(|line| file.parent()?.canonicalize().ok()?.join(line.trim()).canonicalize().ok());
            let target = named.chain(directories).find(|target| leads(target))?;
            Some((file, target))
        })
    }
}

/// The places that a manifest names.
fn named_in_manifest(place: &Path) -> Vec<(usize, PathBuf)> {
    let text = regular_file::read_text_with(place, Links::Follow, FILE_LIMIT);
    text.map_or_else(|_| Vec::new(), |text| manifests::places(place, &text))
}

/// The links in a `node_modules`, also those of scopes and to programs.
fn links_of_packages(packages: &Path) -> Vec<PathBuf> {
    let is_directory = |place: &Path| {
        let name = place.file_name().unwrap_or_default().to_string_lossy();
        name.starts_with('@') || name == ".bin"
    };
    let all = entries(packages).into_iter().flat_map(|place| {
        let below = if is_directory(&place) && !place.is_symlink() { entries(&place) } else { Vec::new() };
        [vec![place], below].concat()
    });
    all.filter(|place| place.is_symlink()).collect()
}

/// The paths in `text` that are `root` or below it.
fn named_in<'t>(text: &'t str, root: &Path) -> impl Iterator<Item = PathBuf> + 't {
    let root = root.to_string_lossy().into_owned();
    let begins = |at: usize| {
        let before = text[..at].chars().next_back();
        before.is_none_or(|it| it.is_whitespace() || it.is_control() || "\"'=,;:!(".contains(it))
    };
    let starts: Vec<usize> = text.match_indices(&root).map(|(at, _)| at).filter(|at| begins(*at)).collect();
    let ends = |character: char| character.is_control() || ['"', '\'', ';', ','].contains(&character);
    starts.into_iter().map(move |at| PathBuf::from(text[at..].split(ends).next().unwrap_or_default()))
}

struct Contents {
    manifests: Vec<PathBuf>,
    /// Directories, and links that may lead to some.
    inner: Vec<PathBuf>,
}

fn contents(directory: &Path) -> Contents {
    let mut found = directory::entries_with_kinds(directory).unwrap_or_default();
    found.sort_by(|(one, _), (other, _)| one.cmp(other));
    let manifests =
        found.iter().map(|(place, _)| place).filter(|place| manifests::is_manifest(place)).cloned().collect();
    let inner = found.into_iter().filter(|(_, kind)| !kind.is_file()).map(|(place, _)| place).collect();
    Contents { manifests, inner }
}

/// Sorted, so that the same is named each time.
fn entries(directory: &Path) -> Vec<PathBuf> {
    let read = fs::read_dir(directory).into_iter().flatten();
    let mut places: Vec<PathBuf> = read.filter_map(|entry| Some(entry.ok()?.path())).collect();
    places.sort();
    places
}

/// The beginning of a regular file. A program may be anything but text.
fn beginning(file: &Path, limit: u64) -> Option<String> {
    let mut bytes = Vec::new();
    regular_file::open(file).ok()?.take(limit).read_to_end(&mut bytes).ok()?;
    let is_text = limit == FILE_LIMIT || bytes.starts_with(b"#!");
    is_text.then(|| String::from_utf8_lossy(&bytes).into_owned())
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    /// What is found in a worktree beside the checkout `checkout`, in both of which `make` made something.
    fn found(make: impl FnOnce(&Path, &Path)) -> Option<String> {
        let directory = tempfile::tempdir().unwrap();
        let root = directory.path().canonicalize().unwrap();
        let (checkout, worktree) = (root.join("checkout"), root.join("lanes/01"));
        for place in [checkout.join("packages/core"), worktree.join("node_modules"), worktree.join(SITE)] {
            fs::create_dir_all(place).unwrap();
        }
        fs::write(worktree.join(".venv/pyvenv.cfg"), "").unwrap();
        make(&checkout, &worktree);
        let checkouts = [checkout];
        let Inroad { place, .. } = Inroads::new(&checkouts, &worktree).find(NESTED, |_| true)?;
        Some(place.strip_prefix(&worktree).unwrap().to_string_lossy().into_owned())
    }

    const SITE: &str = ".venv/lib/python3/site-packages";

    fn site(name: &str) -> Option<String> {
        Some(format!("{SITE}/{name}"))
    }

    #[test]
    fn links_of_packages_that_lead_into_a_checkout_are_found() {
        let link = |name: &'static str| {
            found(move |checkout, worktree| {
                let place = worktree.join(name);
                fs::create_dir_all(place.parent().unwrap()).unwrap();
                symlink(checkout.join("packages/core"), place).unwrap();
            })
        };
        for name in [
            "node_modules/core",
            "node_modules/@x",
            "node_modules/@x/core",
            "node_modules/.bin/core",
            "node_modules/.pnpm/node_modules/@x/core",
            "packages/app/node_modules/core",
        ] {
            assert_eq!(link(name).as_deref(), Some(name));
        }
        let program = found(|checkout, worktree| {
            fs::create_dir_all(worktree.join("node_modules/.bin")).unwrap();
            let text = format!("#!/bin/sh\nexport NODE_PATH=\"{}/node_modules\"\n", checkout.display());
            fs::write(worktree.join("node_modules/.bin/test"), text).unwrap();
        });
        assert_eq!(program.as_deref(), Some("node_modules/.bin/test"));
        assert_eq!(found(|_, worktree| symlink("../lib", worktree.join("node_modules/lib")).unwrap()), None);
    }

    #[test]
    fn places_of_packages_that_lead_into_a_checkout_are_found() {
        let line = |name: &'static str, line: fn(&Path) -> String| {
            found(move |checkout, worktree| {
                fs::write(worktree.join(SITE).join(name), line(checkout)).unwrap();
            })
        };
        let text = |checkout: &Path| format!("{}/packages\n", checkout.display());
        assert_eq!(line("x.pth", text), site("x.pth"));
        assert_eq!(
            line("__editable___x.py", |at| format!("MAP = {{'x': '{}'}}", at.display())),
            site("__editable___x.py")
        );
        let dots = |at: &Path| format!("{}/lanes/../checkout/packages\n", at.parent().unwrap().display());
        assert_eq!(line("x.pth", dots), site("x.pth"));
        assert_eq!(
            found(|checkout, worktree| symlink(checkout, worktree.join(SITE).join("core")).unwrap()),
            site("core")
        );
    }

    #[test]
    fn virtual_environments_of_packages_are_looked_at() {
        let found = found(|checkout, worktree| {
            let site = worktree.join("backend").join(SITE);
            fs::create_dir_all(&site).unwrap();
            fs::write(worktree.join("backend/.venv/pyvenv.cfg"), "").unwrap();
            fs::write(site.join("x.pth"), checkout.to_str().unwrap()).unwrap();
        });
        assert_eq!(found.as_deref(), Some("backend/.venv/lib/python3/site-packages/x.pth"));
    }

    #[test]
    fn paths_that_contain_the_checkouts_lead_nowhere() {
        for line in ["/srv/mirror{}/lib", "# built by x{}/lib", "{}-other/lib"] {
            let found = found(|checkout, worktree| {
                let line = line.replace("{}", &checkout.to_string_lossy());
                fs::write(worktree.join(SITE).join("x.pth"), line).unwrap();
            });
            assert_eq!(found, None, "{line}");
        }
    }
}
