//! What holds for every page and every picture, whatever is drawn.

use proptest::prelude::*;
use servebench_plots::{
    LengthStatistics, ParetoPlot, Picture, Row, ScaleKind, SweepPlot, Timeline, TimelineOptions,
    TimelineRequest, fuzzing, page,
};
use std::borrow::Cow;

const NASTY: &str =
    "</script><script>alert(1)</script><!--&\"'\u{1}\u{202e}<img src=http://x.example/>";

fn any_text() -> impl Strategy<Value = String> {
    prop_oneof![
        Just(NASTY.to_owned()),
        any::<String>(),
        "[<>&\"'/a-z!\\-]{0,20}",
        // Long names must be cut somewhere.
        "[a-zé漢]{0,300}",
    ]
}

fn any_value() -> impl Strategy<Value = serde_json::Value> {
    prop_oneof![
        any::<f64>().prop_map(serde_json::Value::from),
        (-100..100i64).prop_map(serde_json::Value::from),
        any::<bool>().prop_map(serde_json::Value::from),
        Just(serde_json::Value::from("inf")),
        any_text().prop_map(serde_json::Value::from),
        Just(serde_json::Value::Null),
    ]
}

/// Well-formed, no element but those of pictures, no place that is not a number, nothing from outside.
fn check(picture: &Picture) -> Result<(), TestCaseError> {
    let svg = picture.to_svg();
    let document = roxmltree::Document::parse(&svg);
    let document = document.map_err(|error| TestCaseError::fail(format!("{error}\n{svg}")))?;
    let known =
        ["svg", "title", "desc", "style", "rect", "line", "path", "circle", "polygon", "text", "g"];
    for element in document.descendants().filter(roxmltree::Node::is_element) {
        prop_assert!(known.contains(&element.tag_name().name()), "{:?}", element.tag_name());
        for attribute in element.attributes() {
            prop_assert!(!attribute.name().starts_with("on") && attribute.name() != "href");
            let free = !attribute.value().contains("NaN") && !attribute.value().contains("inf");
            prop_assert!(free, "{}", attribute.value());
        }
    }
    Ok(())
}

fn rows() -> impl Strategy<Value = Vec<Row>> {
    let row = (any_value(), any_value(), any_value(), any_text(), -10..10i32);
    proptest::collection::vec(row, 1..12).prop_map(|rows| {
        let row = |(x, y, curve, name, number): (serde_json::Value, _, _, String, i32)| {
            let row = serde_json::json!({
                "x": x, "y": number, "wild": y, "curve": curve, "name": name,
                "output_throughput": number, "max_concurrency": number,
            });
            row.as_object().cloned().unwrap_or_default()
        };
        rows.into_iter().map(row).collect()
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn lengths_are_always_a_picture(
        title in any_text(),
        tokens in proptest::collection::vec((any::<u64>(), 0..5000u64), 0..700),
    ) {
        check(&LengthStatistics { title, tokens }.picture())?;
    }

    #[test]
    fn sweeps_are_always_pictures(
        rows in rows(),
        scales in (0..3usize, 0..3usize),
        keys in proptest::collection::vec(proptest::sample::select(vec!["curve", "name", "x"]), 0..5),
        wild in any::<bool>(),
        height_inches in any::<f64>(),
    ) {
        let scale = |index| [ScaleKind::Linear, ScaleKind::Log, ScaleKind::Sqrt][index];
        let keys: Vec<String> = keys.into_iter().map(str::to_owned).collect();
        let plot = SweepPlot {
            x: "x".to_owned(),
            y: if wild { "wild" } else { "y" }.to_owned(),
            figure_by: keys.iter().skip(4).cloned().collect(),
            row_by: keys.iter().skip(3).take(1).cloned().collect(),
            column_by: keys.iter().skip(2).take(1).cloned().collect(),
            curve_by: keys,
            x_scale: scale(scales.0),
            y_scale: scale(scales.1),
            height_inches,
            ..SweepPlot::default()
        };
        if let Ok(figures) = plot.figures(&rows) {
            for figure in figures {
                prop_assert!(!figure.stem.contains(['/']) && !figure.stem.contains(".."));
                if let Some(picture) = &figure.picture {
                    check(picture)?;
                }
            }
        } else {
            prop_assert!(wild, "numbers were refused");
        }
    }

    #[test]
    fn frontiers_are_always_a_picture(rows in rows()) {
        let plot = ParetoPlot { label_by: vec!["name".into(), "curve".into()], ..ParetoPlot::default() };
        if let Ok(pareto) = plot.draw(&rows) {
            prop_assert!(pareto.points.len() + pareto.skipped == rows.len());
            if let Some(picture) = &pareto.picture {
                check(picture)?;
            }
        }
    }

    /// Whatever the texts say, a page has the two scripts it is made with and loads nothing.
    #[test]
    fn texts_stay_texts_in_a_timeline(
        title in any_text(),
        detail in (any_text(), any_text()),
        error in any_text(),
        start_s in any::<f64>(),
        ttft_s in any::<Option<f64>>(),
        itls_s in proptest::collection::vec(any::<f64>(), 0..20),
    ) {
        let html = |title: &str, detail: (String, String), error: &str| {
            let options = TimelineOptions { title: title.into(), details: vec![detail], ..TimelineOptions::default() };
            let mut timeline = Timeline::new(options);
            timeline.push(&TimelineRequest {
                start_s,
                ttft_s,
                itls_s: Cow::Borrowed(&itls_s),
                error: Some(Cow::Borrowed(error)),
                ..TimelineRequest::default()
            });
            timeline.into_html()
        };
        let plain = html("", (String::new(), String::new()), "");
        let page = html(&title, detail, &error);
        // Each `<` belongs to the page itself.
        prop_assert_eq!(page.matches('<').count(), plain.matches('<').count());
        prop_assert_eq!(page.matches("<script").count(), 2);
    }

    #[test]
    fn any_expression_is_read_or_refused(text in "[a-c =<>!%0-9.,'\n\\-]{0,40}") {
        fuzzing::plot_expressions(text.as_bytes());
    }

    #[test]
    fn any_bytes_are_read_or_refused(bytes in any::<Vec<u8>>()) {
        fuzzing::plot_expressions(&bytes);
        fuzzing::sweep_summary(&bytes);
    }

    #[test]
    fn any_summary_is_drawn_or_refused(rows in rows()) {
        fuzzing::sweep_summary(&serde_json::to_vec(&rows).unwrap());
    }
}

#[test]
fn pages_load_nothing() {
    let picture = LengthStatistics { title: NASTY.to_owned(), tokens: vec![(1, 2)] }.picture();
    let pictures = page(NASTY, &[("a".to_owned(), NASTY.to_owned())], &[picture]);
    let timeline = Timeline::new(TimelineOptions::default()).into_html();
    for html in [pictures, timeline] {
        // The only address is the name of SVG.
        let addresses =
            html.replace("http://www.w3.org/2000/svg", "").replace("http://x.example/", "");
        assert!(!addresses.contains("://"));
        for word in
            ["<link", " src=", " href=", "url(", "@import", "fetch(", "XMLHttpRequest", "import("]
        {
            let found = html.replace("&lt;img src=", "").contains(word);
            assert!(!found, "{word}");
        }
        assert!(html.contains("default-src 'none'"));
    }
}

#[test]
fn the_picture_of_two_requests_is_this() {
    let lengths = LengthStatistics { title: "Two".to_owned(), tokens: vec![(10, 5), (20, 5)] };
    let runs: Vec<Row> = serde_json::from_str(
        r#"[{"x": 1, "y": 10, "c": "a"}, {"x": 2, "y": 20, "c": "a"}, {"x": 2, "y": 24, "c": "a"}, {"x": 1, "y": 5, "c": "b"}]"#,
    )
    .unwrap();
    let plot = SweepPlot {
        x: "x".into(),
        y: "y".into(),
        curve_by: vec!["c".into()],
        ..SweepPlot::default()
    };
    let curves = plot.figures(&runs).unwrap().remove(0).picture.unwrap();
    let pictures = [
        ("lengths", lengths.picture().to_svg(), include_str!("golden/lengths.svg")),
        ("curves", curves.to_svg(), include_str!("golden/curves.svg")),
    ];
    let mut changed = Vec::new();
    for (name, svg, golden) in pictures {
        if svg != golden {
            let new = std::env::temp_dir().join(format!("servebench-{name}.svg"));
            std::fs::write(&new, &svg).unwrap();
            changed.push(new);
        }
    }
    assert!(changed.is_empty(), "if this is meant, copy to tests/golden: {changed:?}");
}
