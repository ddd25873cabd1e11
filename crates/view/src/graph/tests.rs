use lanewright_model::PlanParts;
use lanewright_model::cells;
use lanewright_model::safe_text::is_unsafe;
use lanewright_model::testing::plan;
use proptest::prelude::*;
use roxmltree::Document;

use super::layers::{Layers, without_implied};
use super::layout::{BOX_HEIGHT, Layout};
use super::*;

const HOSTILE: &str = "</title></svg><script>alert(1)</script>]]>&lt;\"'>\0\u{1b}[31m\u{202e}\u{2066}\n--> {{x}}";

fn node(at: usize, depends_on: &[u32]) -> Node {
    Node {
        id: LaneId::new(&format!("L{at}")).expect("an id"),
        title: None,
        state: None,
        depends_on: depends_on.iter().copied().map(LaneIndex).collect(),
        is_critical: false,
        link: None,
    }
}

fn graph(edges: &[&[u32]]) -> Graph {
    Graph::new(edges.iter().enumerate().map(|(at, on)| node(at, on)).collect())
}

fn titled(title: &str) -> Graph {
    let state = NodeState { group: StateGroup::NeedsYou, word: "waiting for approval (plan)", brief: "needs approval" };
    let links = |at| Node {
        title: Some(title.to_owned()),
        state: Some(state),
        link: Some("#\"><script>".to_owned()),
        is_critical: true,
        ..node(at, if at == 0 { &[] } else { &[0] })
    };
    Graph::new(vec![links(0), links(1)])
}

/// Any graph, its lanes in any order, some with titles and on the critical path.
fn any_graph() -> impl Strategy<Value = Graph> {
    let lanes =
        prop::collection::vec((prop::collection::vec(any::<prop::sample::Index>(), 0..4), any::<bool>()), 1..40);
    lanes.prop_perturb(|lanes, mut random| {
        let mut places: Vec<u32> = (0..).take(lanes.len()).collect();
        (1..places.len()).for_each(|at| places.swap(at, random.next_u32() as usize % (at + 1)));
        let mut nodes: Vec<Node> = (0..lanes.len()).map(|at| node(at, &[])).collect();
        for (at, (on, is_critical)) in lanes.iter().enumerate() {
            let earlier = on.iter().filter(|_| at > 0).map(|on| LaneIndex(places[on.index(at.max(1))]));
            let node = &mut nodes[places[at] as usize];
            node.depends_on = earlier.collect();
            node.is_critical = *is_critical;
            node.title = is_critical.then(|| "会計 modules and what belongs to them".repeat(at % 3));
        }
        Graph::new(nodes)
    })
}

proptest! {
    #[test]
    fn layout_orders_lanes_without_overlap(graph in any_graph()) {
        let layout = Layout::of(&graph, |lane| 80.0 + f64::from(lane.0));
        let boxes = &layout.boxes;
        for (from, to) in graph.edges() {
            let from = boxes[from.at()];
            prop_assert!(from.corner.x + from.width < boxes[to.at()].corner.x);
        }
        for (at, one) in boxes.iter().enumerate() {
            prop_assert!(one.corner.x >= 0.0 && one.corner.x + one.width <= layout.width);
            prop_assert!(one.corner.y >= 0.0 && one.corner.y + BOX_HEIGHT <= layout.height);
            for other in &boxes[..at] {
                let beside = one.corner.x + one.width <= other.corner.x || other.corner.x + other.width <= one.corner.x;
                let apart = (one.corner.y - other.corner.y).abs() >= BOX_HEIGHT;
                prop_assert!(beside || apart, "{one:?} {other:?}");
            }
        }
        // Long lines pass between the boxes: where they run straight through a layer, there is none.
        for line in layout.lines.iter().filter(|line| line.until > line.to.x) {
            let is_hit = |it: &layout::LaneBox| {
                (it.corner.y..=it.corner.y + BOX_HEIGHT).contains(&line.to.y)
                    && it.corner.x < line.until && it.corner.x + it.width > line.to.x
            };
            prop_assert!(!boxes.iter().any(is_hit), "{line:?}");
        }
    }

    #[test]
    fn graph_drawing_is_deterministic_and_fits_width(graph in any_graph(), width in 1usize..90) {
        prop_assert_eq!(graph.svg("a", SvgStyle::Own), graph.svg("a", SvgStyle::Own));
        let text = graph.text(TextForm { width, ascii: false });
        prop_assert!(text.lines().all(|line| cells::width(line) <= width), "{text}");
    }

    #[test]
    fn titles_are_never_markup(title in "[\\PC\\x00-\\x1f<>&\"'\\]\u{202a}-\u{202e}]{0,40}") {
        let svg = titled(&title).svg(&title, SvgStyle::OfPage);
        prop_assert!(!svg.contains(is_unsafe));
        let document = Document::parse(&svg).expect("XML");
        let known = ["svg", "a", "g", "title", "rect", "path", "text"];
        prop_assert!(document.descendants().filter(|it| it.is_element()).all(|it| known.contains(&it.tag_name().name())));
    }
}

#[test]
fn hostile_titles_stay_text_and_long_ones_are_cut() {
    let svg = titled(HOSTILE).svg("Lanes", SvgStyle::Own);
    let document = Document::parse(&svg).expect("XML");
    let title = document.descendants().find(|it| it.has_tag_name(("http://www.w3.org/2000/svg", "title")));
    let shown = title.and_then(|it| it.text()).expect("a title");
    assert!(shown.starts_with("L0: </title></svg><script>alert(1)</script>]]>&lt;\"'>␀␛[31m⟨U+202E⟩"), "{shown}");
    assert!(shown.ends_with("--> {{x}} (waiting for approval (plan), critical path)"), "{shown}");
    let (dot, mermaid) = (titled("x").dot(), titled("x").mermaid());
    assert!(dot.contains(r"x\nneeds approval") && mermaid.contains("x<br/>needs approval"), "{dot}{mermaid}");
    assert!(titled(&"x\0".repeat(1 << 20)).svg("Lanes", SvgStyle::Own).len() < 20_000);
    let lines = titled(HOSTILE).text(TextForm { width: 80, ascii: true });
    assert!(lines.lines().count() == 6 && lines.is_ascii(), "{lines}");
}

#[test]
fn implied_edges_are_not_drawn() {
    let mut nodes: Vec<Node> =
        [&[] as &[u32], &[0], &[0, 1], &[0]].iter().enumerate().map(|(at, on)| node(at, on)).collect();
    nodes[..3].iter_mut().for_each(|node| node.is_critical = true);
    let graph = Graph::new(nodes);
    assert_eq!(without_implied(&graph).len(), 3);
    let layout = Layout::of(&graph, |_| 100.0);
    assert_eq!(layout.lines.iter().map(|line| line.is_critical).collect::<Vec<_>>(), [true, true, false]);
    let svg = graph.svg("Lanes", SvgStyle::OfPage);
    let path = svg.lines().find(|line| line.starts_with("<path class=\"edge critical\"")).expect("the critical path");
    assert_eq!(path.matches('M').count(), 2, "{path}");
    assert!(graph.dot().contains("L1 -> L2 [penwidth=2.5];\n  L0 -> L3;") && graph.dot().contains("L0 -> L2;"));
}

#[test]
fn lanes_are_ordered_so_that_lines_do_not_cross() {
    let crossed = graph(&[&[], &[], &[], &[2], &[1], &[0], &[3, 0], &[5]]);
    assert_eq!(Layers::of(&crossed).crossings(), 0);
    assert_eq!(layers::inversions(&[2, 1, 0, 0, 3]), 5);
}

#[test]
fn edges_between_same_lanes_are_bundled() {
    let waves = graph(&[&[], &[], &[], &[0, 1, 2], &[0, 1, 2], &[0, 1, 2]]);
    let layout = Layout::of(&waves, |_| 100.0);
    assert_eq!((layout.lines.len(), layout.joints.len()), (6, 1));
}

#[test]
fn a_thousand_lanes_stay_small() {
    let on = |at: u32| (1..4).filter_map(|back| at.checked_sub(back * (7 + at % 31))).collect();
    let lanes: Vec<Vec<u32>> = (0..1000).map(on).collect();
    let nodes = lanes.iter().enumerate().map(|(at, on)| Node {
        title: Some("Rewrite the importer so that it streams its rows".to_owned()),
        ..node(at, on)
    });
    let length = Graph::new(nodes.collect()).svg("Lanes", SvgStyle::Own).len();
    assert!(length < 1_000_000, "{length}");
    // Half of the lanes wait for almost all of the others, each for different ones.
    let waits = |at: u32| (0..300).filter(|on| at >= 300 && (at * at * 31 + at * on) % 101 > 9).collect();
    let lanes: Vec<Vec<u32>> = (0..600).map(waits).collect();
    let dense = lanes.iter().enumerate().map(|(at, on)| node(at, on)).collect();
    let svg = Graph::new(dense).svg("Lanes", SvgStyle::Own);
    assert!(svg.len() < 1_000_000 && svg.contains(" lines left out."), "{}", svg.len());
}

#[test]
fn text_puts_lanes_below_those_that_they_wait_for() {
    let mut nodes = vec![node(0, &[]), node(1, &[0]), node(2, &[]), node(3, &[1, 2, 0])];
    nodes[0].title = Some("Table of\norders".to_owned());
    nodes[1].title = Some("A title that takes all of a line of forty".to_owned());
    (nodes[0].is_critical, nodes[1].is_critical) = (true, true);
    let text = Graph::new(nodes).text(TextForm { width: 40, ascii: false });
    insta::assert_snapshot!(text, @"
    wave 1
    ●  L0  Table of orders
       L2
    wave 2
    ●  L1  A title that takes all of a line…
         after L0
    wave 3
       L3                       after L1, L2
    ● on the critical path
    ");
}

#[test]
fn graphs_quote_what_the_plan_says() {
    let mut parts = PlanParts::from(plan(&[("A", &[], &[]), ("B", &["A"], &[]), ("C", &[], &[])]));
    parts.lanes[0].name = Some("say \"hi\"]; <b>#".to_owned());
    parts.exclusions = vec![(LaneIndex(1), LaneIndex(2))];
    let plan = Plan::new(parts).expect("no cycle");
    let drawn = Graph::of_plan(&plan, &[LaneIndex(0), LaneIndex(1)]);
    insta::assert_snapshot!(drawn.dot(), @r##"
    digraph plan {
      rankdir=LR;
      node [shape=box];
      L0 [label="A\nsay \"hi\"]; <b>#", penwidth=2.5];
      L1 [label="B", penwidth=2.5];
      L2 [label="C"];
      L0 -> L1 [penwidth=2.5];
      L1 -> L2 [dir=none, style=dotted, constraint=false];
    }
    "##);
    insta::assert_snapshot!(drawn.mermaid(), @r##"
    flowchart LR
      L0["A<br/>say #34;hi#34;#93;#59; #60;b#62;#35;"]
      L1["B"]
      L2["C"]
      L0 ==> L1
      L1 -.- L2
    "##);
}
