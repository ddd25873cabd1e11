//! The order of phases: by their places, and by what the section on dependencies says.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::ops::Range;
use std::sync::LazyLock;

use lanewright_model::LaneOrder;
use regex::Regex;

use super::phases::{Kind, Phase};
use super::references::{Reference, references};
use crate::faults::{Faults, quoted};
use crate::markdown::inline::{bare, without_parentheses};
use crate::markdown::{Document, Fence, list_item, section_title};
use crate::source_text::Span;
use crate::validate::IN_ORDER;

/// What each phase waits for, by place, each with where the text says so.
pub(super) type Order = Vec<BTreeMap<usize, Span>>;

/// Reads the order. `runs`: whether a phase has something to do. `span` gives the place of bytes of the document. Where lanes
/// are `wanted` in the order of the list, what it says of others is no error.
pub(super) fn order(
    document: &Document<'_>,
    phases: &[Phase<'_>],
    runs: &dyn Fn(usize) -> bool,
    wanted: LaneOrder,
    span: &dyn Fn(Range<usize>) -> Span,
    faults: &Faults<'_>,
) -> Order {
    let said = Reader::new(document, phases, runs, wanted, span, faults).read();
    let mut order: Order = vec![BTreeMap::new(); phases.len()];
    for (at, phase) in phases.iter().enumerate() {
        let has_own = said.iter().any(|(after, ..)| *after == at);
        by_place(phases, at, has_own).into_iter().for_each(|on| {
            order[at].insert(on, span(phase.at.clone()));
        });
    }
    for (after, before, place) in said {
        order[after].insert(before, place);
    }
    order
}

/// What a phase waits for by its place alone. `has_own`: the text says what it waits for.
fn by_place(phases: &[Phase<'_>], at: usize, has_own: bool) -> BTreeSet<usize> {
    let is_story = |at: &usize| matches!(phases[*at].kind, Kind::Stories(_));
    let first_story = (0..phases.len()).find(is_story);
    let is_prerequisite = |at: &usize| {
        matches!(phases[*at].kind, Kind::Setup | Kind::Foundation) || first_story.is_some_and(|first| *at < first)
    };
    let prerequisites = || (0..at).filter(is_prerequisite);
    match &phases[at].kind {
        Kind::Polish => (0..phases.len()).filter(|other| *other != at && (*other < at || is_story(other))).collect(),
        Kind::Stories(own) => {
            // A story that comes again builds on its first part.
            let again = |other: &usize| match &phases[*other].kind {
                Kind::Stories(others) => !own.is_disjoint(others),
                _ => false,
            };
            prerequisites().chain((0..at).filter(again)).collect()
        }
        _ if is_prerequisite(&at) || has_own => prerequisites().collect(),
        _ => (0..at).collect(),
    }
}

static SECTION: LazyLock<Regex> = pattern!(
    r"(?i)^(?:dependenc(?:y|ies)|execution order|dépendances|abhängigkeiten|depend[eê]ncias|dependencias|依存|依赖|依賴|의존)"
);
/// Parts of the section about the tasks within a story.
static NOT_ABOUT_PHASES: LazyLock<Regex> = pattern!(r"(?i)\bwithin\b|\bparallel|並列|并行|内部|dentro|paralel");

static HEAD: LazyLock<Regex> = pattern!(r"^(?:\*\*([^*]{1,120})\*\*\s*[:：]?|([^:：`]{1,80})[:：])\s*(.*)$");

static AFTER: LazyLock<Regex> = pattern!(
    r"(?i)\b(?:depends? (?:only |solely |directly |just )?(?:up)?on|after|follows?|requires?|needs?|reli(?:es|ant) (?:up)?on|blocked by|builds? (?:up)?on|waits? for|depend(?:e|em|en) d[aeo]s?|después de|después|depois d[aeo]s?|depois|após|dépend(?:ent)? d[eu]s?|après)\b|に依存|の後|完了後|依[赖賴]|之[后後]|完成[后後]|에 의존|완료 후|이후"
);
static BEFORE: LazyLock<Regex> = pattern!(
    r"(?i)\b(?:before|blocks|required (?:for|by)|prerequisite (?:for|of)|needed (?:for|by))\b|阻[塞挡擋]|的前置[条條]件|の前提"
);
/// What follows names lanes that order nothing.
static CUT: LazyLock<Regex> = pattern!(
    r"(?i)\b(?:independent(?:ly)? (?:of|from|test)|in parallel|parallel (?:to|with)|without|alongside|no dependenc|rather than)|[独獨]立|[並并平]行"
);
static NEGATED: LazyLock<Regex> = pattern!(
    r"(?i)\b(?:not|never|doesn't|don't|no longer) (?:strictly )?(?:depend|require|need|block|follow|wait)|\b(?:not|never) (?:\w+ ){1,2}before\b|\bconceptually\b|\boptional(?:ly)?\b|\btest data\b"
);
/// What says that there is no order.
static FREE: LazyLock<Regex> = pattern!(
    r"(?i)\bindependent|\bno (?:\w+ )?dependenc|\bimmediately\b|\bin parallel\b|\bparallel\b|\bcan start\b|\bfirst\b|\bblocks\b|\bblocking\b|なし|[独獨]立|[无無]依[赖賴]|[没沒]有依[赖賴]|[无無]相依|立即|[並并平]行"
);

/// A line of a phase that names what the phase waits for.
static PREREQUISITE: LazyLock<Regex> = pattern!(
    r"(?i)^\*\*(?:depends on|depend(?:ency|encies)|prerequisites?|requires|blocked by|depend[eê]ncias?|dependencias?|前置(?:条件|條件)?|前提(?:条件|條件)?|依[赖賴存](?:関係)?)\s*[:：]?\*\*\s*[:：]?\s*(.+)$"
);

static BETWEEN_CLAUSES: LazyLock<Regex> = pattern!(r"\s[–—-]\s|→|->|;|\.\s|。|；|(?i:,?\sbut\s)");

/// The verbs of a clause that order phases, each with whether what it names comes first.
fn verbs(clause: &str) -> Vec<(Range<usize>, bool)> {
    let after = AFTER.find_iter(clause).map(|verb| (verb.range(), true));
    let mut found: Vec<_> = after.chain(BEFORE.find_iter(clause).map(|verb| (verb.range(), false))).collect();
    found.sort_by_key(|(verb, _)| verb.start);
    found
}

struct Reader<'r, 'a> {
    document: &'r Document<'a>,
    phases: &'r [Phase<'a>],
    runs: &'r dyn Fn(usize) -> bool,
    wanted: LaneOrder,
    span: &'r dyn Fn(Range<usize>) -> Span,
    faults: &'r Faults<'r>,
    /// The phases that a word of the section stands for, in small letters.
    aliases: Vec<(String, BTreeSet<usize>)>,
    tasks: HashMap<&'a str, usize>,
}

/// A line of the section: whom it is about, and what it says.
struct Statement<'a> {
    at: Range<usize>,
    head: &'a str,
    rest: &'a str,
}

impl<'r, 'a> Reader<'r, 'a> {
    fn new(
        document: &'r Document<'a>,
        phases: &'r [Phase<'a>],
        runs: &'r dyn Fn(usize) -> bool,
        wanted: LaneOrder,
        span: &'r dyn Fn(Range<usize>) -> Span,
        faults: &'r Faults<'r>,
    ) -> Self {
        let of_phase = |(at, phase): (usize, &Phase<'a>)| {
            phase.tasks.iter().filter_map(|task| task.number).map(move |number| (number, at)).collect::<Vec<_>>()
        };
        let tasks = phases.iter().enumerate().flat_map(of_phase).collect();
        let named = |(at, phase): (usize, &Phase<'a>)| (phase.name.to_lowercase(), BTreeSet::from([at]));
        let aliases = phases.iter().enumerate().map(named).filter(|(name, _)| name.contains(' ')).collect();
        Self { document, phases, runs, wanted, span, faults, aliases, tasks }
    }

    /// The edges that the section declares: who waits, for whom, and where that is said.
    fn read(mut self) -> Vec<(usize, usize, Span)> {
        let statements = self.statements();
        for statement in &statements {
            let name = bare(&without_parentheses(statement.head)).to_lowercase();
            let about = self.heads(statement.head);
            let first = name.split_whitespace().next().unwrap_or("").to_owned();
            for alias in [name, first] {
                let is_word = alias.chars().count() > 3 && references(&alias).is_empty() && !alias.ends_with("phase");
                if is_word && !about.is_empty() && self.aliases.iter().all(|(known, _)| *known != alias) {
                    self.aliases.push((alias, about.clone()));
                }
            }
        }
        let mut edges = Vec::new();
        for statement in &statements {
            self.take(statement, &mut edges);
        }
        (0..self.phases.len()).for_each(|phase| self.prerequisites(phase, &mut edges));
        edges
    }

    /// Adds what the lines of a phase above its tasks say that it waits for: `**Prerequisites**: Phase 2`.
    fn prerequisites(&self, phase: usize, edges: &mut Vec<(usize, usize, Span)>) {
        let own = &self.phases[phase];
        let end = own.tasks.first().map_or(own.lines.start, |task| task.check_box.line);
        for line in (own.lines.start..end).filter(|line| self.document.fence(*line) == Fence::Outside) {
            let range = self.document.trimmed(line);
            let Some(named) = PREREQUISITE.captures(&self.document.text[range.clone()]).and_then(|line| line.get(1))
            else {
                continue;
            };
            let named = without_parentheses(named.as_str());
            let named = CUT.find(&named).map_or(named.as_str(), |cut| &named[..cut.start()]);
            let others = references(named).into_iter().flat_map(|reference| self.phases_of(&reference));
            let place = (self.span)(range);
            edges.extend(others.filter(|other| *other < phase).map(|other| (phase, other, place)));
        }
    }

    fn statements(&self) -> Vec<Statement<'a>> {
        let mut found = Vec::new();
        let document = self.document;
        for at in 0..document.headings.len() {
            if !SECTION.is_match(&section_title(document.headings[at].title)) {
                continue;
            }
            let mut is_about_phases = true;
            for line in document.below(at) {
                if let Some(heading) = document.heading_at(line) {
                    is_about_phases = !NOT_ABOUT_PHASES.is_match(heading.title);
                }
                if is_about_phases && document.fence(line) == Fence::Outside {
                    found.extend(self.statement(line));
                }
            }
        }
        found.sort_by_key(|statement: &Statement<'_>| statement.at.start);
        found.dedup_by_key(|statement| statement.at.start);
        found
    }

    /// The statement of a line of a list. One without a head explains the line above.
    fn statement(&self, line: usize) -> Option<Statement<'a>> {
        let document = self.document;
        let (item, _) = list_item(document.text, document.range(line))?;
        let text: &'a str = &document.text[item.clone()];
        let captures = HEAD.captures(text)?;
        let head = captures.get(1).or(captures.get(2))?;
        let rest = captures.get(3)?;
        let statement = Statement { at: item, head: &text[head.range()], rest: &text[rest.range()] };
        (!self.heads(statement.head).is_empty()).then_some(statement)
    }

    fn take(&self, statement: &Statement<'_>, edges: &mut Vec<(usize, usize, Span)>) {
        let place = (self.span)(statement.at.clone());
        let about = self.heads(statement.head);
        let before = edges.len();
        let mut understood = FREE.is_match(statement.rest);
        for clause in BETWEEN_CLAUSES.split(&self.without_remarks(statement.rest)) {
            let clause = CUT.find(clause).map_or(clause, |cut| &clause[..cut.start()]);
            if NEGATED.is_match(clause) {
                understood = true;
                continue;
            }
            // One clause may say both: `depends on Setup, blocks all stories`.
            let verbs = verbs(clause);
            for (at, (verb, is_after)) in verbs.iter().enumerate() {
                // In Japanese and Chinese the verb may come last: `US1 完了後`, `US2 的前置條件`.
                let is_last = match is_after {
                    true => !clause[verb.clone()].is_ascii(),
                    false => clause[verb.clone()].starts_with(['的', 'の']),
                };
                let start = if is_last { at.checked_sub(1).map_or(0, |at| verbs[at].0.end) } else { verb.end };
                let end = verbs.get(at + 1).map_or(clause.len(), |(next, _)| next.start);
                let others = self.named(clause.get(start..end).unwrap_or(""), statement, &about);
                understood |= !others.is_empty();
                let pairs = about.iter().flat_map(|&own| others.iter().map(move |&other| (own, other)));
                edges.extend(
                    pairs.map(|(own, other)| if *is_after { (own, other, place) } else { (other, own, place) }),
                );
            }
        }
        // What all stories wait for, they wait for by their places, too.
        edges.retain(|(after, on, _)| after != on);
        if edges.len() == before && !understood && !statement.rest.trim().is_empty() {
            let message = format!("nothing about order is understood in {}", quoted(statement.rest));
            let help = "write for example `Depends on US1`; without it the order is that of the phases";
            self.faults.warning(place, message, help);
        }
    }

    /// The text without remarks in parentheses; one that names a phase is none.
    fn without_remarks(&self, text: &str) -> String {
        let hidden = without_parentheses(text);
        let mut kept = hidden.clone();
        let mut rest = 0;
        while let Some(open) = text[rest..].find(['(', '（']).map(|at| rest + at) {
            let close = text[open..].find([')', '）']).map_or(text.len(), |at| open + at);
            let inside = &text[open..close];
            let is_phase = |reference: &Reference| matches!(reference, Reference::Phase(_) | Reference::PhasesFrom(_));
            if hidden.len() == text.len() && references(inside).iter().any(is_phase) {
                kept.replace_range(open..close, inside);
            }
            rest = close;
        }
        kept
    }

    /// The phases that the head of a statement names: by number, else by story, else by a word.
    fn heads(&self, head: &str) -> BTreeSet<usize> {
        let all = references(head);
        let is_phase = |reference: &&Reference| matches!(reference, Reference::Phase(_) | Reference::PhasesFrom(_));
        let is_story = |reference: &&Reference| matches!(reference, Reference::Story(_));
        let of = |wanted: &dyn Fn(&&Reference) -> bool| -> BTreeSet<usize> {
            all.iter().filter(wanted).flat_map(|reference| self.phases_of(reference)).collect()
        };
        let is_word = |reference: &&Reference| !matches!(reference, Reference::Task(_));
        let found = [of(&is_phase), of(&is_story), of(&is_word)].into_iter().find(|found| !found.is_empty());
        let lower = bare(&without_parentheses(head)).to_lowercase();
        let stories = || matches!(lower.as_str(), "user stories" | "stories" | "ユーザーストーリー" | "用户故事");
        found.unwrap_or_else(|| match stories() {
            true => self.phases_of(&Reference::AllStories).into_iter().collect(),
            false => self.alias(&lower).into_iter().flatten().copied().collect(),
        })
    }

    fn alias(&self, lower: &str) -> Option<&BTreeSet<usize>> {
        self.aliases.iter().find(|(name, _)| name == lower).map(|(_, phases)| phases)
    }

    /// The phases that a clause names; what is unknown is a fault.
    fn named(&self, clause: &str, statement: &Statement<'_>, about: &BTreeSet<usize>) -> BTreeSet<usize> {
        let mut found = BTreeSet::new();
        let all = references(clause);
        for reference in &all {
            let phases = self.phases_of(reference);
            if phases.is_empty() && about.iter().any(|&at| (self.runs)(at)) {
                self.unknown(reference, statement);
            }
            found.extend(phases);
        }
        if all.is_empty() {
            let lower = clause.to_lowercase();
            let words: Vec<&str> = lower.split(|c: char| !c.is_alphanumeric() && c != '-').collect();
            let is_named = |name: &str| match name.contains(' ') {
                true => lower.contains(name),
                false => words.contains(&name),
            };
            found.extend(self.aliases.iter().filter(|(name, _)| is_named(name)).flat_map(|(_, phases)| phases));
        }
        found
    }

    fn unknown(&self, reference: &Reference, statement: &Statement<'_>) {
        let (what, known): (String, Vec<String>) = match reference {
            Reference::Story(number) => {
                let stories = self.phases.iter().filter_map(|phase| match &phase.kind {
                    Kind::Stories(own) => Some(own),
                    _ => None,
                });
                (format!("US{number}"), stories.flatten().map(|number| format!("US{number}")).collect())
            }
            Reference::Phase(number) => {
                let numbers = self.phases.iter().filter_map(|phase| phase.number.as_ref());
                (format!("phase {number}"), numbers.map(|number| format!("phase {number}")).collect())
            }
            // Setup, Foundational and the like may be left out; so may a range.
            _ => return,
        };
        let message = format!("{} waits for {what}, but this file has no such lane", quoted(bare(statement.head)));
        let (place, known) = ((self.span)(statement.at.clone()), known.join(", "));
        match self.wanted {
            LaneOrder::File => self.faults.warning(place, message, format!("known: {known}")),
            LaneOrder::Dependencies => self.faults.error_with(place, message, format!("known: {known}; {IN_ORDER}")),
        }
    }

    fn phases_of(&self, reference: &Reference) -> Vec<usize> {
        let all = || self.phases.iter().enumerate();
        let is_story = |kind: &Kind| matches!(kind, Kind::Stories(_));
        let of_kind =
            |wanted: &dyn Fn(&Kind) -> bool| all().filter(|(_, phase)| wanted(&phase.kind)).map(|(at, _)| at).collect();
        match reference {
            Reference::Phase(number) => {
                all().filter(|(_, phase)| phase.number.as_ref() == Some(number)).map(|(at, _)| at).collect()
            }
            Reference::PhasesFrom(from) => {
                let is_later = |phase: &Phase<'_>| {
                    phase.number.as_ref().and_then(|number| number.parse::<u32>().ok()).is_some_and(|own| own >= *from)
                };
                all().filter(|(_, phase)| is_story(&phase.kind) && is_later(phase)).map(|(at, _)| at).collect()
            }
            Reference::Story(number) => {
                let (mut alone, mut together) = (Vec::new(), Vec::new());
                for (at, phase) in all() {
                    match &phase.kind {
                        Kind::Stories(own) if own.contains(number) && own.len() == 1 => alone.push(at),
                        Kind::Stories(own) if own.contains(number) => together.push(at),
                        _ => {}
                    }
                }
                if alone.is_empty() { together } else { alone }
            }
            Reference::Task(task) => self.tasks.get(task.as_str()).copied().into_iter().collect(),
            Reference::Setup => of_kind(&|kind| *kind == Kind::Setup),
            Reference::Foundation => of_kind(&|kind| *kind == Kind::Foundation),
            Reference::Polish => of_kind(&|kind| *kind == Kind::Polish),
            Reference::AllStories => of_kind(&is_story),
        }
    }
}
