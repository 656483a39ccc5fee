package pages_test

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// TestPagesEscapeHostText checks that markup, control sequences and a line of 10 MB in a report are escaped and
// truncated.
func TestPagesEscapeHostText(t *testing.T) {
	dir, v := site(t, 30)
	seen := 0
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || !strings.HasSuffix(path, ".html") {
			return err
		}
		seen++
		data, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		text, name := string(data), strings.TrimPrefix(path, dir)
		if strings.Contains(text, "<script>document") || strings.Contains(text, "<img") ||
			strings.ContainsAny(text, "\x1b\a") {
			t.Errorf("%s has the text of a host without escapes", name)
		}
		if len(data) > 200<<10 {
			t.Errorf("%s has %d bytes", name, len(data))
		}
		for _, m := range regexp.MustCompile(`(?:src|href)="([^"]*)"`).FindAllStringSubmatch(text, -1) {
			if strings.Contains(m[1], ":") || strings.HasPrefix(m[1], "/") {
				t.Errorf("%s has a link to another site: %s", name, m[1])
				continue
			}
			to, _, _ := strings.Cut(m[1], "#")
			if _, err := os.Stat(filepath.Join(filepath.Dir(path), to)); err != nil {
				t.Errorf("%s has a link to a missing page: %s", name, m[1])
			}
		}
		if !strings.Contains(text, `http-equiv="Content-Security-Policy" content="default-src 'none'`) {
			t.Errorf("%s has no policy", name)
		}
		return nil
	})
	if err != nil || seen != 30+1+2+1+1 || len(v.Hosts) != 30 {
		t.Errorf("%d pages, %v", seen, err)
	}
	run, err := os.ReadFile(filepath.Join(dir, "host", "shop-production-useast1-00000", runID+".html"))
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"&lt;script&gt;document.title", `\x1b[31mred`, "(10.0 MiB in all)", "First failure",
		"workers = 8", "signed by the host"} {
		if !strings.Contains(strings.ReplaceAll(string(run), "MB", "MiB"), want) {
			t.Errorf("the page of the run lacks %q", want)
		}
	}
}

// TestPagesDrawTheWavesOfARollout checks the waves with their hosts and states, and each halt with its grounds: on the
// first page during the rollout, and on the page of its project.
func TestPagesDrawTheWavesOfARollout(t *testing.T) {
	dir, _ := site(t, 300)
	read := func(name string) string {
		t.Helper()
		data, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil {
			t.Fatal(err)
		}
		return string(data)
	}
	for _, page := range []string{"index.html", "project/shop/index.html"} {
		text := read(page)
		for _, want := range []string{
			"shop/production: rollout of 2.1", `<span class="state failed">halted</span> 13 of 303 hosts are healthy with it, ` +
				`and it failed on 2.`,
			`Wave canary <span class="soft">1%, 3 hosts`, "3 healthy, 0 failed, 0 waiting", "all have finished",
			"10 healthy, 2 failed, 18 waiting", "0 healthy, 0 failed, 120 waiting", "the rollout is halted",
			`<rect class="healthy" x="0" width="333"`, `<rect class="failed" x="333" width="66"`,
			`host/shop-production-useast1-00000/index.html">shop-production-useast1-00000</a> <span class="soft">at ` +
				`2026-05-01 10:00`,
			"it failed on 2 of 2 hosts, which is the limit", "corpus rollout abort shop production",
		} {
			if !strings.Contains(text, want) {
				t.Errorf("%s does not have %q", page, want)
			}
		}
		if strings.Contains(text, "base/production: rollout") {
			t.Errorf("%s has a rollout that has finished or belongs to another project", page)
		}
	}
	if !strings.Contains(read("project/base/index.html"), "base/production: rollout of 7") {
		t.Error("the page of a project lacks its finished rollout")
	}
	history := read("project/shop/index.html")
	for _, want := range []string{"<td>promote</td>", "<td>anna@example.com</td>", "(unverified)",
		"release/shop/2.0..2.1.html"} {
		if !strings.Contains(history, want) {
			t.Errorf("the history of a channel does not have %q", want)
		}
	}
}
