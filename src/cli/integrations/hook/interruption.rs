//! What a prompt is to a run that is under way (seed 003, Interruption Type Classification). Pure.

use std::sync::LazyLock;

use regex::Regex;

lanewright_model::word_enum! {
    /// What the user wants, in the seed's words. None of them moves the state of a lane.
    Kind {
        Resumption = "RESUMPTION",
        Audit = "AUDIT",
        Question = "QUESTION",
        StatusRequest = "STATUS_REQUEST",
        Other = "OTHER",
    }
}

/// How much of a prompt is looked at, in characters: what it wants is said at its beginning.
const LOOKED_AT: usize = 2000;

/// The kind of `prompt`. The seed's words in the seed's order, as whole words, in capitals or not; code is no speech. A
/// word that continues work counts only where its sentence neither asks about it nor says no to it: "why did it not
/// continue?" is a question, and "do not continue" is none of these.
pub(crate) fn kind(prompt: &str) -> Kind {
    let looked_at: String = prompt.chars().take(LOOKED_AT).collect();
    let speech = WORDS.code.replace_all(&looked_at, " ");
    if WORDS.sentence.split(&speech).any(wants_to_go_on) {
        return Kind::Resumption;
    }
    let others = [(&WORDS.audit, Kind::Audit), (&WORDS.question, Kind::Question), (&WORDS.status, Kind::StatusRequest)];
    others.into_iter().find(|(words, _)| words.is_match(&speech)).map_or(Kind::Other, |(_, kind)| kind)
}

/// What the user may have said to a lane that waits for an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Reply {
    Approval,
    /// Something is to be different, or is not approved yet.
    Change,
}

/// What `prompt` may answer, if anything. A sentence that asks says nothing, and one that approves with a negation or a
/// condition ("not approved", "looks good but …") is no approval; nor is the whole prompt then.
pub(crate) fn reply(prompt: &str) -> Option<Reply> {
    let looked_at: String = prompt.chars().take(LOOKED_AT).collect();
    let speech = WORDS.code.replace_all(&looked_at, " ");
    let mut from = 0;
    let ends = WORDS.sentence.find_iter(&speech).map(|end| (end.start(), end.end(), end.as_str().contains('?')));
    let ends: Vec<_> = ends.chain([(speech.len(), speech.len(), false)]).collect();
    let replies: Vec<Reply> = ends
        .into_iter()
        .filter_map(|(end, next, asks)| {
            let sentence = &speech[from..end];
            from = next;
            if asks { None } else { reply_of(sentence) }
        })
        .collect();
    if replies.contains(&Reply::Change) { Some(Reply::Change) } else { replies.first().copied() }
}

fn reply_of(sentence: &str) -> Option<Reply> {
    // "no changes needed" and "nothing to change" ask for none.
    let sentence = WORDS.no_change.replace_all(sentence, " ");
    let asked_before = |at: usize| WORDS.asks.is_match(&sentence) || WORDS.question.is_match(&sentence[..at]);
    if WORDS.refusal.is_match(&sentence) {
        return Some(Reply::Change);
    }
    if WORDS.change.find(&sentence).is_some_and(|found| !asked_before(found.start())) {
        return Some(Reply::Change);
    }
    let found = WORDS.approval.find(&sentence).filter(|found| !asked_before(found.start()))?;
    if WORDS.negation.is_match(&sentence) || WORDS.caveat.is_match(&sentence[found.end()..]) {
        return Some(Reply::Change);
    }
    // What somebody else approved, or something else, is no answer.
    WORDS.beginning.is_match(&sentence[..found.start()]).then_some(Reply::Approval)
}

fn wants_to_go_on(sentence: &str) -> bool {
    let Some(found) = WORDS.resumption.find(sentence) else { return false };
    let before = &sentence[..found.start()];
    !WORDS.question.is_match(before) && !WORDS.no.is_match(before)
}

struct Words {
    code: Regex,
    sentence: Regex,
    resumption: Regex,
    audit: Regex,
    question: Regex,
    asks: Regex,
    beginning: Regex,
    status: Regex,
    no: Regex,
    approval: Regex,
    negation: Regex,
    caveat: Regex,
    refusal: Regex,
    change: Regex,
    no_change: Regex,
}

#[expect(clippy::expect_used, reason = "constants, compiled by every test")]
static WORDS: LazyLock<Words> = LazyLock::new(|| {
    let words = |pattern: &str| Regex::new(&format!(r"(?i)\b(?:{pattern})\b")).expect("a pattern");
    let plain = |pattern: &str| Regex::new(pattern).expect("a pattern");
    Words {
        code: plain(r"(?s)```.*?(?:```|$)|`[^`\n]*`"),
        sentence: plain(r"[.!?;\n]+(?:\s|$)"),
        resumption: words(r"continue|continuing|resume|resuming|proceed|keep\b.{0,40}\bgoing"),
        audit: words(r"audit|audit-session"),
        question: words(r"what|what's|how|how's|why|when|explain|clarify|whether"),
        asks: plain(r"(?i)^\s*(?:who|which|has|have|did|does|is|are|was|were|can|could|should|would|will)\b"),
        beginning: plain(
            r"(?i)^(?:\W|\b(?:yes|yep|ok|okay|great|nice|cool|thanks|thank you|i|we|it|this|that|all|everything|and|now|so|then|\
              the (?:plan|changes?|work|code|result|diff)|reviewed|checked|read|have|has been|is|are)\b)*$",
        ),
        status: words(r"status|progress|where\b.{0,40}\bare\b.{0,40}\bwe"),
        approval: words(
            "approved?|i accept|lgtm|go ahead|ship it|looks? (?:good|fine|great|ok|okay)|\
             (?:it|this|that|all|everything)(?:'s| is| are) (?:good|fine|ok|okay)",
        ),
        negation: words(
            "not?|none|nothing|nobody|neither|nor|never|hardly|barely|cannot|without|stop|cant|dont|doesnt|isnt|[a-z]+n['’]t|\
             hold off|withdraw|revoke|deny|before|until|unless|if",
        ),
        caveat: words(
            "but|except|however|although|though|otherwise|unless|if|once|after|when|until|provided|as soon as|later|yet|\
             first|wait|pending|missing|denied|refused|broken|on my",
        ),
        refusal: plain(r"(?i)^\s*(?:no|nope|nah)\s*(?:[,.!:]|$)"),
        change: words(
            "reject|rejected|rework|redo|needs? work|not yet|needs? (?:some )?changes|changes? (?:needed|requested)|\
             (?:should|must|has to|needs? to) be (?:changed|fixed|renamed|removed|rewritten)|\
             (?:please|pls) (?:change|fix|rename|use|add|remove|move|make|rewrite|revert|drop|replace|adjust|update|simplify|split)",
        ),
        no_change: words(
            "(?:no|not|nothing|without|don['’]t|never)(?: any| further| more| to| need to| needs?)* (?:changes?|rework|redo|reject)(?: needed| requested| anything)?|\
             nothing to do|no (?:objections?|problems?|issues?|complaints?|concerns?)",
        ),
        no: words(r"not|don't|dont|never|no|stop|cannot|can't|won't|without"),
    }
});

#[cfg(test)]
mod tests {
    use super::*;

    fn are(expected: Kind, prompts: &[&str]) {
        for prompt in prompts {
            assert_eq!(kind(prompt), expected, "{prompt}");
        }
    }

    #[test]
    fn examples_of_seed_are_classified_as_stated() {
        are(
            Kind::Resumption,
            &[
                "continue",
                "resume work",
                "proceed",
                "keep going",
                "continue with the task",
                "Continue working",
                "Proceed with review",
                "Continue with the implementation plan",
                "Looks good, proceed with implementation",
            ],
        );
        are(Kind::Audit, &["/audit-session", "Run audit to verify everything is correct"]);
        are(
            Kind::Question,
            &[
                "What architecture pattern are you using?",
                "Can you explain why you chose that pattern?",
                "How will you handle error cases?",
                "What about thread safety?",
                "What's the status?",
            ],
        );
        are(Kind::StatusRequest, &["Where are we in the process?", "status please", "Progress?"]);
        are(Kind::Other, &["Will this work with existing code?", "rename the file", ""]);
    }

    #[test]
    fn words_of_approval_and_of_change_are_told_apart() {
        let are = |expected: Option<Reply>, prompts: &[&str]| {
            prompts.iter().for_each(|prompt| assert_eq!(reply(prompt), expected, "{prompt}"));
        };
        are(
            Some(Reply::Approval),
            &[
                "Approved",
                "approved!",
                "Looks good, proceed with implementation",
                "Looks good, ship it",
                "LGTM",
                "Go ahead.",
                "No objections, go ahead",
                "No changes needed, approved",
                "I reviewed it. It looks fine. Thanks",
                "this is good",
            ],
        );
        are(
            Some(Reply::Change),
            &[
                "I reject this",
                "this needs changes: smaller functions",
                "please rework it",
                "please change the name of the table",
                "not yet",
                "Not approved",
                "don't go ahead",
                "Don’t go ahead yet",
                "it does not look good",
                "This isn't approved.",
                "looks good but change x",
                "Looks good. Please rename the file, though",
                "approved if the tests pass",
                "go ahead once the name is fixed",
                "No. That looks fine to nobody",
                "Nothing looks good",
                "None of this looks good",
                "Neither of them is approved",
                "hardly looks good",
                "No way this is good",
                "Don't do this, looks fine otherwise",
                "Looks good, wait for Bob",
                "LGTM from Bob is missing",
                "rename x, everything is fine on my machine",
                "I approve of nothing here",
                "Approved by nobody",
                "Approved the other one, this needs work",
                "Too bad, looks good to nobody else",
                "the table should be renamed",
            ],
        );
        are(
            None,
            &[
                "What was approved?",
                "why is it rejected",
                "rename the file",
                "run `approve` later",
                "is it approved?",
                "how does the approval work",
                "Approval denied",
                "Bob's lgtm came in for the docs PR",
                "He said lgtm",
                "The mail says approved",
                "No approval yet",
                "I withdraw my approval",
                "who approved this",
                "Has Bob approved this",
                "Add an approval step to the login form",
                "The code that I accepted yesterday is broken",
                "```\napproved\n```",
                "no changes needed",
                "",
            ],
        );
    }

    #[test]
    fn mention_of_continuing_is_not_resumption() {
        are(
            Kind::Question,
            &["Why did it not continue?", "how do I resume a run", "What happens if I proceed?", "explain `resume`"],
        );
        are(Kind::Other, &["don't continue", "Do not proceed yet.", "stop, never resume that run", "discontinued"]);
        are(Kind::Other, &["this loop is wrong:\n```\nfor x in y { continue; }\n```", "unfinished: ```continue"]);
    }

    #[test]
    fn request_to_continue_with_question_is_resumption() {
        are(
            Kind::Resumption,
            &[
                "Can you continue?",
                "That is not it. Please continue!",
                "KEEP IT GOING",
                "Why is it red? Anyway, resume.",
            ],
        );
    }
}
