//! Pages, and what is left of them.

use haft_sandbox::web::Url;

use super::{PageFormat, readable};
use crate::blocking::StopFlag;

fn read(page: &str, form: PageFormat) -> String {
    let url = Url::parse("https://example.org/docs/page.html").unwrap();
    readable(page, &url, form, &StopFlag::default()).unwrap()
}

fn markdown(page: &str) -> String {
    read(page, PageFormat::Markdown)
}

#[test]
fn an_article_is_what_is_left_of_a_page() {
    let prose = "Some words that somebody came to read, and a few more of them. ".repeat(6);
    let page = format!(
        "<html><head><title>A page</title><style>p {{}}</style><script>alert('</p>')</script></head><body>\
         <nav><a href=/>Home</a> <a href=/all>All</a></nav>\
         <div class=sidebar><ul><li><a href=x>One</a><li><a href=y>Two</a></ul></div>\
         <div id=content><h2>About</h2><p>{prose}</p><p>{prose}</p><aside>By the way</aside></div>\
         <footer>Somebody made this</footer></body></html>"
    );
    let read = markdown(&page);
    assert!(read.starts_with("# A page\n\n## About\n\nSome words"), "{read}");
    for gone in ["Home", "One", "alert", "p {", "By the way", "Somebody made"] {
        assert!(!read.contains(gone), "{gone}: {read}");
    }
}

#[test]
fn what_is_written_is_markdown() {
    let page = "<h1>Top</h1><p>one <b>bold </b>word, <i>two</i>, <code>a `b`</code> and <a href='../x?a=1#y'>a link</a>.\
                <p>second<br>line * star snake_case<ul><li>first<li>second<ul><li>inner</ul></ul><ol start=3><li>three\
                <li>four</ol><blockquote><p>said<p>again</blockquote><pre><code class='language-rust'>fn x() {\n    1\n}\n\
                </code></pre><hr><img src=/p.png alt='A picture'><a href='javascript:x'>no</a> <a href='#here'>down</a>\
                <del>gone</del> 1 &lt; 2 &amp; &copy; 3";
    assert_eq!(
        markdown(page),
        "# Top\n\none **bold** word, *two*, `` a `b` `` and [a link](https://example.org/x?a=1#y).\n\n\
         second\nline \\* star snake_case\n\n- first\n- second\n  - inner\n\n3. three\n4. four\n\n> said\n>\n> again\n\n\
         ```rust\nfn x() {\n    1\n}\n```\n\n---\n\n![A picture](https://example.org/p.png)no down~~gone~~ 1 \\< 2 & © 3"
    );
}

#[test]
fn plain_text_has_no_marks() {
    let page = "<h1>Top</h1><p>one <b>bold</b> <a href=x>link</a></p><ul><li>a<li>b</ul><pre>x\n y</pre>";
    assert_eq!(read(page, PageFormat::Text), "Top\n\none bold link\n\n- a\n- b\n\nx\n y");
}

#[test]
fn tables_keep_their_rows() {
    let page =
        "<h1>T</h1><table><caption>Sizes</caption><tr><th>Name<th>Size<tr><td>a|b<td><b>1</b><tr><td>c</table>after";
    assert_eq!(markdown(page), "# T\n\nSizes\n\n| Name | Size |\n| --- | --- |\n| a\\|b | **1** |\n| c |  |\n\nafter");
    let layout = "<h1>T</h1><table><tr><td><ul><li>menu</ul><td><p>words</table>";
    assert_eq!(markdown(layout), "# T\n\n- menu\n\nwords");
}

#[test]
fn lines_that_look_like_marks_are_none() {
    assert_eq!(
        markdown("<h1>T</h1><p># no heading<p>1. no list<p>- no item"),
        "# T\n\n\\# no heading\n\n1\\. no list\n\n\\- no item"
    );
}

#[test]
fn hostile_pages_are_read_in_little_time() {
    let deep = 20_000;
    let pages = [
        format!("<h1>T</h1>{}words{}", "<div>".repeat(100_000), "</div>".repeat(100_000)),
        format!("{}words", "<b>".repeat(deep)),
        format!("{}words", "<p><b id=x>".repeat(deep)),
        format!("{}words", "<table><tr><td>".repeat(deep)),
        format!("{}words", "<ul><li>".repeat(deep)),
        format!("{}words", "<blockquote>".repeat(deep)),
        format!("{}words", "<a href=x>".repeat(deep)),
        format!("{}words", "</p></div></table>".repeat(deep)),
        format!("words{}", "<".repeat(256 << 10)),
        format!("words{}", "&".repeat(256 << 10)),
        format!("words<a {}>", "x=y ".repeat(100_000)),
        format!("words<a {}>", (0..50_000).map(|number| format!("x{number} ")).collect::<String>()),
        format!("words<!--{}", "-".repeat(256 << 10)),
        format!("<table>{}</table>words", "<tr><td>x".repeat(deep)),
    ];
    for page in pages {
        let shown: String = page.chars().take(40).collect();
        let started = std::time::Instant::now();
        assert!(markdown(&page).contains("words"), "{shown}");
        assert!(started.elapsed().as_secs() < 60, "{shown} took {:?}", started.elapsed());
    }
}

#[test]
fn nobody_waits_for_a_page_that_is_not_wanted() {
    let stop = StopFlag::default();
    stop.flag().store(true, std::sync::atomic::Ordering::Relaxed);
    let url = Url::parse("https://example.org").unwrap();
    assert!(readable("<p>x", &url, PageFormat::Text, &stop).is_none());
}

#[test]
fn no_page_becomes_text_that_no_memory_holds() {
    let wide = format!("<table><tr>{}{}", "<td>x".repeat(5_000), "<tr><td>x".repeat(30_000));
    let long = format!("<base href='http://h.example/{}/'>", "y".repeat(60_000));
    let (links, pictures) = ("<a href=x>l</a> ".repeat(10_000), "<img src=x alt=a> ".repeat(10_000));
    let cells = format!("<table>{}", "<tr><td>a<td><a href=x>l</a>".repeat(10_000));
    let quotes = format!("{}{}", "<blockquote>".repeat(400), "a<br>".repeat(20_000));
    for page in [wide, long.clone() + &links, long.clone() + &pictures, long + &cells, quotes] {
        for form in [PageFormat::Markdown, PageFormat::Text] {
            let text = read(&page, form);
            assert!(text.len() < 6 * page.len() + (200 << 10), "{} of {}", text.len(), page.len());
        }
    }
    let cut = markdown(&format!("<table><tr>{}{}", "<td>x".repeat(5_000), "<tr><td>x".repeat(20_000)));
    assert!(cut.ends_with("many times as long as the page]"), "{}", &cut[cut.len() - 100..]);
}
