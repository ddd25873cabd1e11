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

/// Whether `prompt` may approve or reject what a lane waits with: in a sentence that asks nothing.
pub(crate) fn may_be_answer(prompt: &str) -> bool {
    let looked_at: String = prompt.chars().take(LOOKED_AT).collect();
    let speech = WORDS.code.replace_all(&looked_at, " ");
    let mut from = 0;
    let ends = WORDS.sentence.find_iter(&speech).map(|end| (end.start(), end.end(), end.as_str().contains('?')));
    let ends: Vec<_> = ends.chain([(speech.len(), speech.len(), false)]).collect();
    ends.into_iter().any(|(end, next, asks)| {
        let sentence = &speech[from..end];
        from = next;
        let answer = WORDS.answer.find(sentence).filter(|_| !asks);
        answer.is_some_and(|found| !WORDS.question.is_match(&sentence[..found.start()]))
    })
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
    status: Regex,
    no: Regex,
    answer: Regex,
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
        status: words(r"status|progress|where\b.{0,40}\bare\b.{0,40}\bwe"),
        answer: Regex::new(&format!(
            r"(?i)\b(?:{}|{}|{})\b",
            r"approved?|approval|i accept|accepted|lgtm|go ahead|looks? (?:good|fine|ok|okay)",
            r"(?:it|this|that|all|everything)(?:'s| is| are) (?:good|fine|ok|okay)",
            r"reject|rejected|rework|redo|needs? changes|changes? (?:needed|requested)",
        ))
        .expect("a pattern"),
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
    fn words_of_approval_and_of_change_may_be_an_answer() {
        let answers = [
            "Approved",
            "Looks good, ship it",
            "LGTM",
            "I reject this",
            "this needs changes: smaller functions",
            "please rework it",
        ];
        answers.iter().for_each(|prompt| assert!(may_be_answer(prompt), "{prompt}"));
        let others = [
            "What was approved?",
            "why is it rejected",
            "rename the file",
            "run `approve` later",
            "is it approved?",
            "",
        ];
        others.iter().for_each(|prompt| assert!(!may_be_answer(prompt), "{prompt}"));
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
