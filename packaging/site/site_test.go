//go:build site

package site_test

import (
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/corpus-agent/corpus-agent/artifact/artifacttest/browser"
)

// built is the site that `make site` built before the tests.
const built = "../../bin/site"

// TestLinksLeadSomewhere follows each link of each page to its file and its heading. Links to other sites are not
// followed.
func TestLinksLeadSomewhere(t *testing.T) {
	pages, links := map[string]string{}, 0
	err := filepath.WalkDir(built, func(file string, _ fs.DirEntry, err error) error {
		if err != nil || !strings.HasSuffix(file, ".html") {
			return err
		}
		data, err := os.ReadFile(file)
		pages[file] = string(data)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	attribute := regexp.MustCompile(`(?:href|src)="([^"]*)"`)
	for page, text := range pages {
		for _, m := range attribute.FindAllStringSubmatch(text, -1) {
			to, err := url.Parse(m[1])
			if err != nil {
				t.Errorf("%s: %v", page, err)
				continue
			}
			if to.Scheme != "" {
				continue
			}
			links++
			file := page
			if to.Path != "" {
				file = filepath.Join(filepath.Dir(page), to.Path)
			}
			if info, err := os.Stat(file); err != nil || info.IsDir() {
				t.Errorf("%s links to %s, which is not a file", page, m[1])
			} else if to.Fragment != "" && !strings.Contains(pages[file], `id="`+to.Fragment+`"`) {
				t.Errorf("%s links to %s, which has no such heading", page, m[1])
			}
		}
	}
	if links < 1000 || len(pages) < 40 {
		t.Errorf("there are %d links in %d pages", links, len(pages))
	}
}

// TestSiteInABrowser opens pages from file:// at three widths, light and dark: nothing is loaded from elsewhere, no
// page is wider than the window, and the search finds a section with the keyboard alone.
func TestSiteInABrowser(t *testing.T) {
	b := browser.Start(t)
	dir, err := filepath.Abs(built)
	if err != nil {
		t.Fatal(err)
	}
	for name, width := range map[string]int{"phone": 390, "tablet": 820, "desktop": 1440} {
		for _, scheme := range []string{"light", "dark"} {
			b.Shape(width, 1000, scheme)
			for _, page := range []string{"index.html", "docs/quickstart.html", "docs/states.html", "docs/trust.html",
				"CHANGELOG.html", "docs/decisions/01-own-engine.html"} {
				b.Open(filepath.Join(dir, page))
				var over int
				b.Eval("document.documentElement.scrollWidth - innerWidth", &over)
				if c := b.Complaints(); over > 0 || len(c) > 0 {
					t.Errorf("%s, %s, %s: the page is %d pixels wider than the window; %s", page, name, scheme, over, c)
				}
				b.Picture(strings.ReplaceAll(strings.TrimSuffix(page, ".html"), "/", "-") + "-" + name + "-" + scheme)
			}
			var dark bool
			b.Eval(`getComputedStyle(document.body).backgroundColor !== "rgb(255, 255, 255)"`, &dark)
			if dark != (scheme == "dark") {
				t.Errorf("%s, %s: the page is dark: %t", name, scheme, dark)
			}
		}
	}
	b.Shape(1440, 1000, "light")
	b.Open(filepath.Join(dir, "index.html"))
	b.Press("/", 191)
	var title string
	b.Eval(`(async () => {
		const field = document.activeElement;
		field.value = "host key forget"; field.dispatchEvent(new Event("input"));
		for (let i = 0; i < 100 && !document.querySelector("#found a"); i++) await new Promise(r => setTimeout(r, 50));
		return [...document.querySelectorAll("#found a")].map(a => a.textContent).join("|");
	})()`, &title)
	if title == "" {
		t.Error("the search finds nothing")
	}
	b.Picture("search")
	b.Press("Enter", 13)
	var at string
	b.Eval(`new Promise(r => setTimeout(() => r(location.pathname), 500))`, &at)
	if !strings.Contains(at, "/docs/") {
		t.Errorf("Enter leads to %s", at)
	}
}
