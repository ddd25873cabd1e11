//! Which part of an output is read, and its lines without colours.

use lanewright_model::safe_text::last_shown;

/// How much of the start of an output is read: compilers complain early.
const HEAD_BYTES: usize = 256 * 1024;

/// How much of its end: tests fail late, and summaries come last.
const TAIL_BYTES: usize = 768 * 1024;

/// How much of a line: longer ones are bundles and data, not messages.
const LINE_BYTES: usize = 2 * 1024;

/// How many bytes of the start and of the end of an output a caller has to read; what is between is not read.
pub const EXCERPT_BYTES: [usize; 2] = [HEAD_BYTES + LINE_BYTES, TAIL_BYTES + LINE_BYTES];

/// The lines of the start of `output` and those of its end, as one section where nothing lies between them.
pub(super) fn sections(output: &str) -> Vec<Vec<String>> {
    if output.len() <= HEAD_BYTES + TAIL_BYTES {
        return vec![lines(output)];
    }
    let head = &output[..output.floor_char_boundary(HEAD_BYTES)];
    let tail = &output[output.ceil_char_boundary(output.len() - TAIL_BYTES)..];
    let whole_head = head.rfind('\n').map_or(head, |end| &head[..end]);
    let whole_tail = tail.find('\n').map_or(tail, |end| &tail[end + 1..]);
    vec![lines(whole_head), lines(whole_tail)]
}

fn lines(text: &str) -> Vec<String> {
    text.lines().map(|line| last_shown(&line[..line.floor_char_boundary(LINE_BYTES)]).trim_end().to_owned()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn excerpt_has_no_colours_or_carriage_returns() {
        let text = "\u{1b}[1m\u{1b}[31merror\u{1b}[0m: x  \r\n10%\r100%\r\n\u{1b}(B\u{1b}[ma";
        assert_eq!(sections(text), [["error: x", "100%", "a"]]);
    }

    #[test]
    fn long_output_keeps_whole_lines_of_both_ends() {
        let text = (0..400_000).map(|number| format!("ä{number}\n")).collect::<String>();
        let [head, tail] = &sections(&text)[..] else { panic!("two sections") };
        assert_eq!((head[0].as_str(), tail.last().unwrap().as_str()), ("ä0", "ä399999"));
        let numbers: Vec<usize> = [head.last().unwrap(), &tail[0]].map(|line| line[2..].parse().unwrap()).to_vec();
        assert_eq!(head.len(), numbers[0] + 1);
        assert_eq!(tail.len(), 400_000 - numbers[1]);
        let bytes = |lines: &[String]| lines.iter().map(|line| line.len() + 1).sum::<usize>();
        assert!((HEAD_BYTES - 16..=HEAD_BYTES).contains(&bytes(head)), "{}", bytes(head));
        assert!((TAIL_BYTES - 16..=TAIL_BYTES).contains(&bytes(tail)), "{}", bytes(tail));
    }

    #[test]
    fn long_line_is_truncated() {
        let text = "ä".repeat(3_000_000);
        assert!(sections(&text).concat().iter().all(|line| line.len() <= LINE_BYTES));
    }
}
